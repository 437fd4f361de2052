"""A file system that is only a set of paths, and counts the questions it is asked."""

from collections.abc import Mapping, Sequence


class VirtualTree:
    """Files by path with their text; `None` is a folder. Parents exist by themselves."""

    def __init__(self, files: Mapping[str, str | None]) -> None:
        self._files = dict(files)
        self._folders: dict[str, set[str]] = {"/": set()}
        for path in files:
            self._add(path)
        self.questions: list[tuple[str, str]] = []

    def exists(self, path: str) -> bool:
        self.questions.append(("exists", path))
        return path in self._files or path in self._folders

    def names(self, folder: str) -> Sequence[str]:
        self.questions.append(("names", folder))
        return sorted(self._folders.get(folder, ()))

    def read(self, path: str, limit: int) -> str | None:
        self.questions.append(("read", path))
        text = self._files.get(path)
        return None if text is None else text[:limit]

    def _add(self, path: str) -> None:
        while path != "/":
            parent, _, name = path.rpartition("/")
            folder = self._folders.setdefault(parent or "/", set())
            if name in folder:
                return
            folder.add(name)
            path = parent or "/"
