"""Declarations of settings: name, values, default, meaning, and the time when a change takes effect.

`Setting(...).field()` declares a field of a frozen dataclass, so one class is both a group of settings and
the declarations of its keys. The code that uses a group declares it, as in Kafka (`MetadataLogConfig`,
`SaslConfigs`). `kustos.server.settings` collects all declarations and builds the groups from a file.
"""

import dataclasses
import ipaddress
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

T = TypeVar("T")
U = TypeVar("U")
E = TypeVar("E", bound=Enum)
Section = Literal[
    "Node",
    "Listeners",
    "SASL",
    "Limits",
    "Authorization",
    "Upstream",
    "HTTP",
    "Delegation tokens",
    "Principals",
    "TLS",
    "Bearer tokens",
    "Audit",
    "Metadata log",
    "Quorum",
    "Workers",
]
"""The sections of the reference page, in its order."""

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@unique
class TakesEffect(Enum):
    """The time when a new value in the properties file takes effect; the text is for the reference page."""

    RESTART = "restart"
    RELOAD = "SIGHUP"
    RELOAD_FOR_PLAIN = "SIGHUP for `PLAIN`, else restart"
    AUTHORIZER = "SIGHUP if the authorizer accepts it"


@unique
class Scope(Enum):
    """The scope of a key; the text is for the reference page."""

    NODE = ""
    LISTENER = "listener"
    """For the node, or with the prefix `listener.name.<listener>.` for one listener."""
    ONLY_LISTENER = "listener only"
    """Only with that prefix."""
    MECHANISM = "listener, mechanism"
    """As `LISTENER`, and with `<mechanism>.` in lower case before the name for one SASL mechanism."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """The parser of a value. `takes` completes the sentence "use ..."."""

    name: str
    takes: str
    read: Callable[[str], T]
    """Raises ValueError (its text is not shown) or `SettingsError` (its text is shown) for other texts."""

    def into(self, make: Callable[[T], U]) -> "Kind[U]":
        """Return the same kind with its values converted; `make` may raise ValueError."""
        return Kind(self.name, self.takes, lambda text: make(self.read(text)))


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """The declaration of one key. `default` None: no default; `required`: the node needs a value."""

    name: str
    kind: Kind[T]
    default: T | None
    section: Section
    doc: str
    _: dataclasses.KW_ONLY
    required: bool = False
    secret: bool = False
    scope: Scope = Scope.NODE
    takes_effect: TakesEffect = TakesEffect.RESTART
    dynamic: bool = False
    """Whether `IncrementalAlterConfigs` can change the value of one listener."""
    since: str = "0.1.0"
    """The first release with the key."""
    kafkas_classes: Collection[str] | None = None
    """The values of a key for a class that do not name a custom class; None: the key is not for a class."""

    def field(self) -> T:
        """Return the dataclass field of a key that has a default or is required."""
        missing = dataclasses.MISSING
        made: Any = dataclasses.field(
            default=missing if self.required else self.default,
            repr=not self.secret,
            metadata={_DECLARATION: self},
        )
        return made  # type: ignore[no-any-return]

    def optional_field(self) -> T | None:
        """Return the dataclass field of a key without a default."""
        return self.field()

    def behind(self, prefix: str, section: Section) -> "Setting[T]":
        """Return the declaration of the same key for outgoing connections, whose keys have this prefix."""
        return dataclasses.replace(
            self,
            name=prefix + self.name,
            section=section,
            scope=Scope.NODE,
            takes_effect=TakesEffect.RESTART,
            dynamic=False,
        )

    @property
    def default_text(self) -> str | None:
        """Return the default in the syntax of a properties file."""
        match self.default:
            case None:
                return None
            case bool():
                return str(self.default).lower()
            case Enum():
                return str(self.default.value)
            case tuple() | frozenset():
                return ",".join(map(str, self.default))
            case _:
                return str(self.default)


_DECLARATION: Final = "setting"
"""The key of a declaration in the metadata of a field."""


def settings_of(group: type) -> Mapping[str, Setting[Any]]:
    """Return the declarations in a dataclass, by the name of the field."""
    return {
        each.name: each.metadata[_DECLARATION]
        for each in dataclasses.fields(group)
        if _DECLARATION in each.metadata
    }


def whole_number(lowest: int, highest: int, unit: str = "") -> Kind[int]:
    """Return the kind of whole numbers within these bounds, both inclusive."""

    def read(text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or not lowest <= int(text) <= highest:
            raise ValueError
        return int(text)

    shown = f"a whole number{' of ' + unit if unit else ''} from {lowest} to {highest}"
    return Kind("long" if highest > INT32_MAX else "int", shown, read)


def number(lowest: float, highest: float) -> Kind[float]:
    """Return the kind of numbers within these bounds, both inclusive."""

    def read(text: str) -> float:
        # not a number is not within any bounds
        if not lowest <= float(text) <= highest:
            raise ValueError
        return float(text)

    return Kind("string", f"a number from {lowest} to {highest}", read)


def one_of(*words: str) -> Kind[str]:
    """Return the kind of one of these words, case-sensitive."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return Kind("string", " or ".join(f"`{word}`" for word in words), read)


def member_of(members: type[E]) -> Kind[E]:
    """Return the kind of the values of an enumeration, case-sensitive."""
    return one_of(*(each.value for each in members)).into(members)


def list_of(*words: str) -> Kind[tuple[str, ...]]:
    """Return the kind of comma-separated lists of these words (of any words if none are given), each once."""

    def read(text: str) -> tuple[str, ...]:
        items = tuple(item.strip() for item in text.split(",") if item.strip())
        if len(set(items)) != len(items) or (words and not set(items) <= set(words)):
            raise ValueError
        return items

    shown = f"some of {', '.join(f'`{word}`' for word in words)}" if words else "words"
    return Kind("list", f"{shown}, each once, with commas between them", read)


def _read_networks(text: str) -> tuple[Network, ...]:
    # raises ValueError for invalid addresses, and for host bits after the prefix
    return tuple(ipaddress.ip_network(item.strip()) for item in text.split(",") if item.strip())


def _read_boolean(text: str) -> bool:
    # Kafka accepts only these two words, in any case
    return one_of("true", "false").read(text.lower()) == "true"


def _read_text(text: str) -> str:
    if not text:
        raise ValueError
    return text


BOOLEAN: Final = Kind("boolean", "`true` or `false`", _read_boolean)
NETWORKS: Final = Kind("list", "addresses or networks such as `10.0.0.0/24`, with commas", _read_networks)
TEXT: Final = Kind("string", "a text that is not empty", _read_text)
ANY_TEXT: Final[Kind[str]] = Kind("string", "a text", str)
PATH: Final[Kind[Path]] = Kind("path", "a path", _read_text).into(Path)
