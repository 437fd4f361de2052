"""`python -I -S …/aider_lint.py FILE…`: what Aider runs as its linter.

It prints the feedback and exits with 1 when there is some: Aider shows its model only what a failing linter prints.
On any error it prints nothing and exits with 0, which Aider takes for "nothing to fix".
"""

import os
import signal
import sys

if __name__ == "__main__":
    status = 0
    try:
        above = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        # Of the file in the package, and of its copy in `share/pilotfish`.
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        sys.path += [os.path.dirname(above), os.path.join(above, "lib", version, "site-packages")]
        from pilotfish.ipc.hook_program import DEADLINE_SECONDS, relay

        if sys.platform != "win32":
            signal.signal(signal.SIGALRM, lambda _number, _frame: os._exit(0))
            signal.setitimer(signal.ITIMER_REAL, DEADLINE_SECONDS)
        text = relay("aider", b"".join(os.fsencode(name) + b"\0" for name in sys.argv[1:]))
        if text:
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
            status = 1
    finally:
        os._exit(status)
