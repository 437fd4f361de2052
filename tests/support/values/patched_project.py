"""The files of a small project of Python, with one old error, for patches of it."""

GREETING = "def greet(name: str) -> str:\n    return name\n"
MAIN = 'from greeting import greet\n\nprint(greet("x"))\n'
COUNT = 'wrong: int = "many"\n\n\ndef count() -> int:\n    return 1\n'
FILES = {"greeting.py": GREETING, "main.py": MAIN, "count.py": COUNT, "pyproject.toml": "", ".gitignore": "made/\n"}
BREAKING = GREETING.replace("name: str", "name: int").replace("return name", "return str(name)")
"""A greeting that `main.py` has no use for."""
