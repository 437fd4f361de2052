"""`pilotfish` and `python -m pilotfish`."""

import sys


def main() -> None:
    from pilotfish.surfaces.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
