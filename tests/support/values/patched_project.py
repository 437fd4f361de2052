"""The files of a small project of Python, with one old error, for patches of it."""

GREETING = "def greet(name: str) -> str:\n    return name\n"
MAIN = 'from greeting import greet\n\nprint(greet("x"))\n'
COUNT = 'wrong: int = "many"\n\n\ndef count() -> int:\n    return 1\n'
STATE = "class State:\n    value = 1\n    def stop(self) -> None:\n        pass\n"
FILES = {
    "greeting.py": GREETING,
    "main.py": MAIN,
    "count.py": COUNT,
    "state.py": STATE,
    "stops.py": "from state import State\n\nState().stop()\n",
    "pyproject.toml": "",
    ".gitignore": "made/\n",
}
BREAKING = GREETING.replace("name: str", "name: int").replace("return name", "return str(name)")
"""A greeting that `main.py` has no use for."""
NO_METHOD = STATE.replace("    def", "def").replace("        pass", "    pass")
"""The same words, and a class without its method, which `stops.py` calls."""
