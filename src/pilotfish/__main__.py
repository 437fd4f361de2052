"""`pilotfish` and `python -m pilotfish`."""

import sys

HELP = ("-h", "--help")


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"] and not any(word in HELP for word in arguments):
        # It runs for every edit: the rest of the command line would cost more than the edit's own feedback.
        from pilotfish.ipc.hook_program import run as relay

        relay(arguments[1:])
    from pilotfish.surfaces.cli.main import run

    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
