"""Where tests that make thousands of files put them."""

import os

IN_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""A file system in memory, where there is one: quicker, and no disk is worn."""
