"""Which version this is, and what the package is built with.

Asking the installed package for it reads files and imports more than the rest of a small program.
"""

VERSION = "0.2.0"
