"""The earlier path of Aider's linter: configurations that an earlier `setup` wrote hold it."""

import os
import runpy

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
runpy.run_path(os.path.join(PACKAGE, "hosts", "plugins", "aider_lint.py"), run_name="__main__")
