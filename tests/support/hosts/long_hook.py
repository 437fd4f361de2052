"""A hook, or a linter, that prints the next of the answers beside it after every edit, however long it is."""

import os
import sys

AFTER = (b'"PostToolUse"', b'"AfterTool"', b'"tool_result"')
"""What the event of a tool's end is called by one host or the other."""

event = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "answers")
left = sorted(os.listdir(folder))
is_linter = "lint" in os.path.basename(__file__)
if left and (is_linter or any(name in event for name in AFTER)):
    answer = os.path.join(folder, left[0])
    with open(answer, "rb") as file:
        sys.stdout.buffer.write(file.read())
    os.unlink(answer)
    sys.exit(is_linter)
