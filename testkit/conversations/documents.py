"""Conversations as documents: a YAML file is a subject, its cases are what a client says step by step.

    about: what the cases have in common
    cases:
      wrong password:
        "on": [SASL_PLAINTEXT, SASL_SSL]    # by default the first alone
        says:
          - handshake: PLAIN
          - token: "\\0alice\\0wrong"
        differs:                            # only where kustos answers otherwise on purpose
          because: the reason
          kafka: [handshake, ...]
          kustos: [handshake, ...]

The first key of a step is its kind, the others are its options (`speaker.SAYINGS`). What both sides answer is
not written down: it must be equal, byte by byte.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from testkit.paths import ROOT

CORPUS: Final = ROOT / "tests" / "conformance" / "conversations"

SASL_PLAINTEXT: Final = "SASL_PLAINTEXT"
LISTENERS: Final = (SASL_PLAINTEXT, "SASL_SSL", "SSL")

_CASE_KEYS: Final = frozenset({"on", "says", "differs", "tls"})
_DIFFERENCE_KEYS: Final = frozenset({"because", "kafka", "kustos"})


class DocumentError(ValueError):
    """A document is not one of conversations."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a client says: the kind, its argument, and its options."""

    kind: str
    argument: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "Step":
        """Return the step of a YAML mapping; its first key is the kind."""
        kind, *rest = entry
        return cls(kind, entry[kind], {name: entry[name] for name in rest})


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference that is meant: the reason, and what each side answers, in the words of `answers`."""

    because: str
    kafka: Sequence[str]
    kustos: Sequence[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One case on one listener."""

    subject: str
    name: str
    listener: str
    steps: Sequence[Step]
    tls: Mapping[str, Any]
    differs: Difference | None

    @property
    def title(self) -> str:
        """What a test is called by."""
        place = "" if self.listener == SASL_PLAINTEXT else f" ({self.listener})"
        return f"{self.subject}: {self.name}{place}"


def conversations(corpus: Path = CORPUS) -> tuple[Conversation, ...]:
    """Return every conversation of a folder; raise `DocumentError`."""
    return tuple(each for file in sorted(corpus.glob("*.yaml")) for each in _of_file(file))


def _of_file(file: Path) -> Iterator[Conversation]:
    document = yaml.safe_load(file.read_text())
    if set(document) != {"about", "cases"}:
        raise DocumentError(f"`{file.name}` has other keys than `about` and `cases`")
    for name, case in document["cases"].items():
        where = f"`{file.name}`, case `{name}`"
        unknown = set(case) - _CASE_KEYS
        if unknown or not case.get("says"):
            raise DocumentError(f"{where}: {sorted(unknown) or 'nothing is said'}")
        listeners = case.get("on", SASL_PLAINTEXT)
        for listener in [listeners] if isinstance(listeners, str) else listeners:
            if listener not in LISTENERS:
                raise DocumentError(f"{where}: there is no listener `{listener}`")
            yield Conversation(
                file.stem,
                name,
                listener,
                tuple(Step.of(entry) for entry in case["says"]),
                case.get("tls", {}),
                _difference(case.get("differs"), where),
            )


def _difference(given: Mapping[str, Any] | None, where: str) -> Difference | None:
    if given is None:
        return None
    if set(given) != _DIFFERENCE_KEYS:
        raise DocumentError(f"{where}: a difference has a reason and the answers of both")
    return Difference(given["because"], given["kafka"], given["kustos"])
