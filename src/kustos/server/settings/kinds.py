"""Settings and their kinds: each kind parses a text and describes in words what it takes."""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from typing import Final, Generic, Literal, TypeVar

from kustos.client import NodeAddress, SettingsError, parse_address
from kustos.gateway.upstream import BrokerHostPattern

T = TypeVar("T")
Section = Literal[
    "Node",
    "Metadata log",
    "Quorum",
    "Listeners",
    "SASL",
    "TLS",
    "Bearer tokens",
    "Delegation tokens",
    "Principals",
    "Limits",
    "Authorization",
    "Upstream",
    "Audit",
    "HTTP",
    "Workers",
]

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@unique
class TakesEffect(Enum):
    """When a new value of a setting in the file is in force; the text is that of the reference page."""

    RESTART = "restart"
    RELOAD = "SIGHUP"
    RELOAD_FOR_PLAIN = "SIGHUP for `PLAIN`, else restart"


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How a value is parsed. `takes` completes the sentence "use ..."."""

    name: str
    takes: str
    read: Callable[[str], T]
    """Raises ValueError (its text is not shown) or `SettingsError` (its text is shown) for other texts."""


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """One key. `default` None: it has none, and `required` says whether the node needs a value."""

    name: str
    kind: Kind[T]
    default: T | None
    section: Section
    doc: str
    required: bool = False
    secret: bool = False
    per_listener: bool = False
    """Whether the prefix `listener.name.<listener>.` may restrict it to one listener."""
    per_mechanism: bool = False
    """Whether `<mechanism>.` in lower case may follow the listener's prefix."""
    takes_effect: TakesEffect = TakesEffect.RESTART


def whole_number(lowest: int, highest: int, unit: str = "") -> Kind[int]:
    """Return the kind of whole numbers within these bounds, both inclusive."""

    def read(text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or not lowest <= int(text) <= highest:
            raise ValueError
        return int(text)

    shown = f"a whole number{' of ' + unit if unit else ''} from {lowest} to {highest}"
    return Kind("long" if highest > INT32_MAX else "int", shown, read)


def one_of(*words: str) -> Kind[str]:
    """Return the kind of one of these words, case-sensitive."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return Kind("string", " or ".join(f"`{word}`" for word in words), read)


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
    # raises ValueError for what is not an address, and for bits behind the prefix
    return tuple(ipaddress.ip_network(item.strip()) for item in text.split(",") if item.strip())


def _read_boolean(text: str) -> bool:
    # Kafka accepts only these two words, in any case
    return {"true": True, "false": False}[text.lower()]


def _read_text(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _read_path(text: str) -> Path:
    return Path(_read_text(text))


def _read_bind_address(text: str) -> NodeAddress:
    if text.startswith(":"):
        raise SettingsError(
            "an address to listen on needs its host: write `127.0.0.1` for this machine only, or "
            "`0.0.0.0` to be reached from everywhere"
        )
    return parse_address(text)


BOOLEAN: Final = Kind("boolean", "`true` or `false`", _read_boolean)
NETWORKS: Final = Kind("list", "addresses or networks such as `10.0.0.0/24`, with commas", _read_networks)
TEXT: Final = Kind("string", "a text that is not empty", _read_text)
ANY_TEXT: Final[Kind[str]] = Kind("string", "a text", str)
PATH: Final = Kind("path", "a path", _read_path)
HOST_PATTERN: Final = Kind(
    "string",
    "a host name with `$(nodeId)` in it, such as `broker-$(nodeId).example.com`",
    BrokerHostPattern.parse,
)
BIND_ADDRESS: Final = Kind("address", "`host:port`", _read_bind_address)
