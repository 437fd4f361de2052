"""Texts of Python, parsed. Pure."""

import ast
import re
import warnings

_NAME = "<a text that pilotfish reads>"

# Of a string with `\d` in it the parser complains on standard error; it is the project's, and nobody asked us.
warnings.filterwarnings("ignore", module=re.escape(_NAME))


def parsed(text: str) -> ast.Module | None:
    """None where it cannot be read."""
    try:
        return ast.parse(text, _NAME)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
