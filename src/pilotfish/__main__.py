"""`pilotfish` and `python -m pilotfish`."""

import os
import sys

HELP = ("-h", "--help")


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"] and not any(word in HELP for word in arguments):
        # It runs for every edit: the rest of the command line would cost more than the edit's own feedback.
        from pilotfish.ipc.hook_program import run as relay

        relay(arguments[1:])
    from pilotfish.ipc.question_program import answer

    code = answer(arguments, os.environ)
    if code is not None:
        # Nothing is left to be done, and to take all apart costs a tenth of the time.
        os._exit(code)
    from pilotfish.surfaces.cli.main import run

    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
