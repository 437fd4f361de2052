"""`python -I -S …/hook.py HOST`: the hook program as hosts start it, without the packages of any environment.

A script is compiled each time it runs and an imported module is not, so this file is as short as possible. Hosts' files
hold its path: it must not move. The wheel has a copy of it in `share/pilotfish`, whose path survives a new Python.
"""

import os
import sys

if __name__ == "__main__":
    try:
        above = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        sys.path += [above, f"{above}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"]
        from pilotfish.ipc.hook_program import run

        run(sys.argv[1:])
    finally:
        os._exit(0)
