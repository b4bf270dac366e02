"""A shell over a tree of metadata, without a terminal: command lines in, lines of text out.

`COMMANDS` is the whole language. Paths have file system syntax: `/` is the root, `..` the folder above, `*`,
`?` and `[...]` match parts of names. A slash in a name is written `%2F`.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from kustos.metadata.inspection.tree import Folder, Leaf, Node

_GLOB: Final = re.compile(r"[*?\[]")


class ShellError(Exception):
    """A command line that is invalid, or names a missing node."""


class Found(NamedTuple):
    """A node and its names from the root."""

    names: tuple[str, ...]
    node: Node

    @property
    def path(self) -> str:
        """The path from the root."""
        return "/" + "/".join(self.names)


class ShellCommand(NamedTuple):
    """A command: its arguments, its help and its function."""

    usage: str
    meaning: str
    run: "Callable[[MetadataShell, Sequence[str]], Iterator[str]]"


class MetadataShell:
    """Walks one tree; keeps the current folder and whether to exit."""

    def __init__(self, root: Folder) -> None:
        self._root = root
        self._here: tuple[str, ...] = ()
        self.has_ended = False

    @property
    def path(self) -> str:
        """The path of the current folder."""
        return "/" + "/".join(self._here)

    def look_at(self, root: Folder) -> None:
        """Switch to another tree, keeping the current path."""
        self._root = root

    def run_line(self, line: str) -> Iterator[str]:
        """Yield the output of a command line; a blank line and a comment (`#`) have none.

        Raises `ShellError`.
        """
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise ShellError(f"the line has a quote that does not end: {str(error).lower()}") from None
        return self.run(words) if words else iter(())

    def run(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the output of a command; raise `ShellError`, possibly during iteration."""
        command = COMMANDS.get(words[0])
        if command is None:
            raise ShellError(f"there is no command `{words[0]}`; `help` shows those that there are")
        return command.run(self, words[1:])

    def completions(self, line: str) -> list[str]:
        """Return completions of the last word of a line, as whole words; folders end in a slash."""
        words = line.split()
        unfinished = "" if not words or line[-1:].isspace() else words[-1]
        if not words or (len(words) == 1 and unfinished):
            return [name for name in COMMANDS if name.startswith(unfinished)]
        parent, slash, beginning = unfinished.rpartition("/")
        try:
            found = self._find(parent + slash or ".")
        except ShellError:
            return []
        children = found.node.children if isinstance(found.node, Folder) else {}
        return [
            f"{parent}{slash}{name}{'/' if isinstance(child, Folder) else ''}"
            for name, child in children.items()
            if name.startswith(beginning)
        ]

    def _names(self, path: str) -> tuple[str, ...]:
        names = [] if path.startswith("/") else list(self._here)
        for part in path.split("/"):
            if part == "..":
                del names[-1:]
            elif part not in {"", "."}:
                names.append(part)
        return tuple(names)

    def _find(self, path: str) -> Found:
        names, node = self._names(path), self._root
        found: Node = node
        for name in names:
            child = found.children.get(name) if isinstance(found, Folder) else None
            if child is None:
                raise ShellError(f"there is no `{path}` here; `ls` and `find` show what there is")
            found = child
        return Found(names, found)

    def _expand(self, paths: Sequence[str]) -> Iterator[Found]:
        """Yield the nodes that paths name, matches of patterns in order; each path must name one."""
        for path in paths:
            if not _GLOB.search(path):
                yield self._find(path)
                continue
            matched = False
            for found in _matching(Found((), self._root), self._names(path)):
                matched = True
                yield found
            if not matched:
                raise ShellError(f"nothing matches `{path}`")

    def _list(self, words: Sequence[str]) -> Iterator[str]:
        for found in self._expand(words or ["."]):
            if isinstance(found.node, Folder):
                if len(words) > 1 or any(map(_GLOB.search, words)):
                    yield f"{found.path}:"
                yield from (
                    f"{name}/" if isinstance(child, Folder) else name
                    for name, child in found.node.children.items()
                )
            else:
                yield found.path if words and words[0].startswith("/") else found.names[-1]

    def _change(self, words: Sequence[str]) -> Iterator[str]:
        if len(words) > 1:
            raise ShellError("`cd` takes one path")
        found = self._find(words[0] if words else "/")
        if isinstance(found.node, Leaf):
            raise ShellError(f"`{found.path}` is not a folder; `cat` shows its contents")
        self._here = found.names
        return iter(())

    def _where(self, words: Sequence[str]) -> Iterator[str]:
        _require_none("pwd", words)
        yield self.path

    def _show(self, words: Sequence[str]) -> Iterator[str]:
        if not words:
            raise ShellError("`cat` takes one path or more")
        for found in self._expand(words):
            if isinstance(found.node, Folder):
                raise ShellError(f"`{found.path}` is a folder; `ls` and `tree` show what is in it")
            yield from json.dumps(found.node.document, indent=2, ensure_ascii=False).split("\n")

    def _tree(self, words: Sequence[str]) -> Iterator[str]:
        for found in self._expand(words or ["."]):
            yield from _drawn(found.names[-1] if found.names else "/", found.node, 0)

    def _search_names(self, words: Sequence[str]) -> Iterator[str]:
        paths, pattern = list(words), "*"
        if "-name" in paths:
            at = paths.index("-name")
            if at + 1 >= len(paths):
                raise ShellError("`-name` takes a pattern, as `-name 'User:a*'`")
            pattern = paths[at + 1]
            del paths[at : at + 2]
        for found in self._expand(paths or ["."]):
            for each in _below(found):
                if fnmatchcase(each.names[-1] if each.names else "", pattern):
                    yield each.path

    def _search_contents(self, words: Sequence[str]) -> Iterator[str]:
        if not words:
            raise ShellError("`grep` takes a regular expression, and the paths to look below")
        try:
            wanted = re.compile(words[0])
        except re.error as error:
            raise ShellError(f"`{words[0]}` is not a regular expression: {error}") from None
        for found in self._expand(words[1:] or ["."]):
            for each in _below(found):
                if isinstance(each.node, Leaf):
                    text = json.dumps(each.node.document, ensure_ascii=False)
                    if wanted.search(text):
                        yield f"{each.path}: {text}"

    def _help(self, words: Sequence[str]) -> Iterator[str]:
        _require_none("help", words)
        for name, command in COMMANDS.items():
            usage = f"{name} {command.usage}".rstrip()
            yield f"{usage:<28}{command.meaning}"
        yield "Paths may hold * ? and [...]; a slash in a name is written %2F."

    def _exit(self, words: Sequence[str]) -> Iterator[str]:
        _require_none("exit", words)
        self.has_ended = True
        return iter(())


COMMANDS: Final[dict[str, ShellCommand]] = {
    "ls": ShellCommand("[PATH...]", "list what is in a folder", MetadataShell._list),
    "cd": ShellCommand("[PATH]", "go to a folder, else to /", MetadataShell._change),
    "pwd": ShellCommand("", "show where you are", MetadataShell._where),
    "cat": ShellCommand("PATH...", "show the contents of a node, as JSON", MetadataShell._show),
    "tree": ShellCommand("[PATH...]", "show all below, with contents", MetadataShell._tree),
    "find": ShellCommand(
        "[PATH...] [-name GLOB]", "list the paths of all below", MetadataShell._search_names
    ),
    "grep": ShellCommand(
        "REGEX [PATH...]", "search the contents of all below", MetadataShell._search_contents
    ),
    "help": ShellCommand("", "show the commands", MetadataShell._help),
    "exit": ShellCommand("", "end the shell", MetadataShell._exit),
}


def _require_none(name: str, words: Sequence[str]) -> None:
    if words:
        raise ShellError(f"`{name}` takes nothing")


def _matching(found: Found, patterns: tuple[str, ...]) -> Iterator[Found]:
    if not patterns:
        yield found
        return
    if not isinstance(found.node, Folder):
        return
    pattern = patterns[0]
    children = found.node.children
    names = (
        [name for name in children if fnmatchcase(name, pattern)]
        if _GLOB.search(pattern) and pattern not in children
        else [pattern] * (pattern in children)
    )
    for name in names:
        yield from _matching(Found((*found.names, name), children[name]), patterns[1:])


def _below(found: Found) -> Iterator[Found]:
    yield found
    if isinstance(found.node, Folder):
        for name, child in found.node.children.items():
            yield from _below(Found((*found.names, name), child))


def _drawn(name: str, node: Node, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(node, Leaf):
        yield f"{indent}{name}: {node.summary}"
        return
    yield f"{indent}{name}{'' if name == '/' else '/'}"
    for child_name, child in node.children.items():
        yield from _drawn(child_name, child, depth + 1)
