"""Where Aider's linter was before: configurations that an earlier `setup` wrote hold this path."""

import os
import runpy

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
runpy.run_path(os.path.join(PACKAGE, "hosts", "aider_lint.py"), run_name="__main__")
