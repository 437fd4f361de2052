"""Lines of `.gitignore`: a rule that judges any folder, or none."""

from fuzz.pieces import Pieces
from pilotfish.model import AbsPath
from pilotfish.system.watching.ignoring import IgnoreRules, is_ignored, maybe_rule

WORDS = (b"**/", b"/**", b"!", b"[!a-z]", b"\\ ", b"{a,b}", b"[", b"]", b"?", b"#", b"*" * 30, b"[[:space:]]", b"\\")
SEEDS = (b"node_modules/\n!keep\n/build\n**/gen/**\n*.py[cod]\n", b"a/**/b\n\\#x\ntrailing\\ \n[a-\n{x}\n")
FOLDERS = ("/w/a", "/w/a/b/c", "/w/" + "a/" * 30 + "b", "/w/*", "/w/ä [x]")


def run(data: bytes) -> None:
    lines = Pieces(data).rest().decode("utf-8", "surrogateescape").splitlines()
    rules = tuple(rule for line in lines if (rule := maybe_rule(line)) is not None)
    for folder in FOLDERS:
        assert is_ignored(AbsPath(folder), [IgnoreRules(AbsPath("/w"), rules)]) in {True, False}
