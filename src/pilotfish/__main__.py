"""`pilotfish` and `python -m pilotfish`."""

import io
import os
import sys

HELP = ("-h", "--help")

PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder that this package lies in."""


def main() -> None:
    look_nowhere_else()
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"] and not any(word in HELP for word in arguments):
        # It runs for every edit: the rest of the command line would cost more than the edit's own feedback.
        from pilotfish.ipc.hook_program import run as relay

        relay(arguments[1:])
    from pilotfish.ipc.question_program import answer

    if sys.platform == "win32":
        write_utf8()
    code = answer(arguments, os.environ)
    if code is not None:
        # Nothing is left to be done, and to take all apart costs a tenth of the time.
        os._exit(code)
    from pilotfish.surfaces.cli.main import run

    sys.exit(run(arguments))


def write_utf8() -> None:
    """Windows gives a pipe the encoding of the person's language, which lacks most characters; hosts read UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def look_nowhere_else() -> None:
    """Import nothing of folders that come before the standard library: `PYTHONPATH=.`, or the folder of `python -m`."""
    standard = os.path.dirname(os.__file__)
    if standard in sys.path:
        first = sys.path.index(standard)
        sys.path[:first] = [path for path in sys.path[:first] if path == PACKAGES or _is_standard(path, standard)]


def _is_standard(path: str, standard: str) -> bool:
    """Whether it is the rest of the standard library: Windows has compiled modules beside it, and first."""
    names = "DLLs", f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    return os.path.dirname(path) == os.path.dirname(standard) and os.path.basename(path) in names


if __name__ == "__main__":
    main()
