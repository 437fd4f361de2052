"""Which files mention which words."""

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.feedback.word_index import MAX_FILE_BYTES, WordIndex, checksum
from pilotfish.model import AbsPath

A, B, C = AbsPath("/a"), AbsPath("/b"), AbsPath("/c")


def test_files_are_found_by_whole_words_and_counted() -> None:
    index = WordIndex()
    index.put(A, b"from lib import total, count\n")
    index.put(B, b"totals = subtotal\n")
    index.put(C, "größe = $scope + total".encode())
    assert index.mentions(["total", "count"]) == {A: 2, C: 1}
    assert index.mentions(["größe"]) == index.mentions(["$scope"]) == {C: 1}
    assert index.mentions(["nothing"]) == index.mentions([]) == {}


def test_the_files_with_each_of_many_words() -> None:
    index = WordIndex()
    index.put(A, b"total, count")
    index.put(B, b"total")
    index.put(C, b" " * (MAX_FILE_BYTES + 1))
    total, count, nothing = map(checksum, ("total", "count", "nothing"))
    assert index.holders([total, count, nothing]) == {total: {A, B, C}, count: {A, C}, nothing: {C}}
    assert index.holders([]) == {}


def test_a_file_that_changes_or_goes_is_found_no_more() -> None:
    index = WordIndex()
    index.put(A, b"total")
    index.put(A, b"other")
    index.put(B, b"total")
    index.remove(B)
    index.remove(C)
    assert index.mentions(["total"]) == {}
    assert list(index) == [A]


def test_a_file_that_is_too_large_is_a_candidate_for_everything() -> None:
    index = WordIndex()
    index.put(A, b" " * (MAX_FILE_BYTES + 1))
    assert index.mentions(["total", "count"]) == {A: 2}


WORDS = st.lists(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True))


@given(st.dictionaries(st.sampled_from([A, B, C]), WORDS), WORDS)
def test_no_mention_is_missed(files: dict[AbsPath, list[str]], words: list[str]) -> None:
    index = WordIndex()
    for path, content in files.items():
        index.put(path, " ".join(content).encode())
    found = index.mentions(words)
    assert all(path in found for path, content in files.items() if set(content) & set(words))
