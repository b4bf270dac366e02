"""Files of sentences in YAML or JSON, which is also YAML. Each error names its line.

A file is a mapping with its `version` and one list. The entries of the list have sentences (see `sentences`),
texts and flags; each value is taken literally.
"""

from typing import Final

import yaml

from kustos.analysis.policy import PolicyError
from kustos.analysis.sentences import Sentence, SentenceError, parse_sentence

FILE_CHARACTERS_MAX: Final = 4_194_304
"""Longest accepted file: tens of thousands of sentences, and at most a minute of work."""


class SentenceFile:
    """The nodes of one file's text, with their lines. Every method raises `PolicyError`."""

    def __init__(self, text: str, file: str) -> None:
        self.file: Final = file
        self._root: Final = self._composed(text)

    def _composed(self, text: str) -> yaml.Node | None:
        if len(text) > FILE_CHARACTERS_MAX:
            rule = f"a file has at most {FILE_CHARACTERS_MAX} characters"
            raise PolicyError(self.file, 1, f"{text[:16]}...", rule)
        try:
            root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = 1 if error.problem_mark is None else error.problem_mark.line + 1
            raise PolicyError(self.file, line, error.problem or "?", "this is not YAML") from error
        except yaml.YAMLError as error:
            raise PolicyError(self.file, 1, str(error).splitlines()[0], "this is not YAML") from error
        except RecursionError as error:
            raise PolicyError(self.file, 1, "...", "this is nested too deeply") from error
        return root

    def wrong(self, node: yaml.Node | None, value: str, rule: str) -> PolicyError:
        """Return the error for a value that violates a rule; without a node the error is for the file."""
        return PolicyError(self.file, 1 if node is None else node.start_mark.line + 1, value, rule)

    def entries(self, version: int, name: str, entries_max: int | None = None) -> list[yaml.Node]:
        """Return the entries, at least one, of the list with this name in a file of this version."""
        root = self._root
        fields = self.mapping(root, ("version", name))
        if "version" not in fields:
            raise self.wrong(root, "version", f"is missing, begin with `version: {version}`")
        if (found := self.text(fields["version"])) != str(version):
            raise self.wrong(fields["version"], found, f"the version is {version}")
        if name not in fields:
            raise self.wrong(root, name, "is missing, list at least one")
        node = fields[name]
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise self.wrong(node, _shown(node), f"here should be a list of {name}")
        if entries_max is not None and len(node.value) > entries_max:
            raise self.wrong(node, name, f"a file has at most {entries_max} of them")
        return list(node.value)

    def mapping(self, node: yaml.Node | None, keys: tuple[str, ...]) -> dict[str, yaml.Node]:
        """Return the fields of a mapping that has only these keys, each at most once."""
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(node, _shown(node), f"here should be a mapping with {', '.join(keys)}")
        fields: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            key = self.text(key_node)
            if key not in keys:
                raise self.wrong(key_node, key, f"nothing is called so here, there are {', '.join(keys)}")
            if key in fields:
                raise self.wrong(key_node, key, "is there twice")
            fields[key] = value_node
        return fields

    def text(self, node: yaml.Node) -> str:
        """Return a non-empty text."""
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise self.wrong(node, _shown(node), "here should be a text")
        return str(node.value)

    def flag(self, node: yaml.Node | None) -> bool:
        """Return a flag, false without a node."""
        value = "false" if node is None else self.text(node)
        if value not in {"true", "false"}:
            raise self.wrong(node, value, "here should be `true` or `false`")
        return value == "true"

    def sentence(self, node: yaml.Node, text: str) -> Sentence:
        """Return the sentence in a node's text."""
        try:
            return parse_sentence(text)
        except SentenceError as error:
            raise self.wrong(node, error.value, error.rule) from error


def _shown(node: yaml.Node | None) -> str:
    if node is None:
        return "end of the file"
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
