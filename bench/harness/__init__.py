"""What every benchmark uses: projects and servers, a user's home, clients, processes, numbers, tables.

Whoever imports it can import `support` of the tests, too.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
