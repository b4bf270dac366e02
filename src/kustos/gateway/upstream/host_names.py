"""Host names of brokers: one port for all, and the `server_name` of a TLS client selects its broker.

An unauthenticated client sends the name, before any login (RFC 6066, section 3). The listener compares the
whole name, ignoring case and one dot at the end. It refuses every other name and never routes it to a broker.
A node id has only one spelling, so a broker has one name. Names are ASCII: internationalized names are
A-labels (`xn--...`, RFC 5890) on both sides.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Self

NODE_ID: Final = "$(nodeId)"
NODE_ID_MAX: Final = 2**31 - 1
NAME_MAX_CHARACTERS: Final = 253
"""RFC 1035, section 2.3.4: 255 bytes with the lengths of the first label and of the root."""

_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")


class UnknownHostError(Exception):
    """A TLS client sends an unknown host name. The text is safe to log: no client chose its bytes."""


def is_host_name(text: str) -> bool:
    """Return whether the text is a lower-case host name of two or more labels, and not an address.

    Java's clients send no `server_name` for a name of one label, or with other characters than letters,
    digits and hyphens (`sun.security.ssl.Utilities`).
    """
    labels = text.split(".")
    return (
        len(text) <= NAME_MAX_CHARACTERS
        and len(labels) > 1
        and all(map(_LABEL.fullmatch, labels))
        and not labels[-1].isdigit()
    )


def is_address(text: str) -> bool:
    """Return whether the text is an IP address; clients send no `server_name` for an address."""
    with suppress(ValueError):
        ip_address(text)
        return True
    return False


@dataclass(frozen=True, slots=True)
class BrokerHostPattern:
    """The names of all brokers: `before`, the node id, `after`."""

    before: str
    after: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the pattern of a text such as `broker-$(nodeId).example.com`; raise ValueError."""
        if text.count(NODE_ID) != 1:
            raise ValueError(f"a pattern has `{NODE_ID}` once")
        before, _, after = text.partition(NODE_ID)
        pattern = cls(before.lower(), after.lower())
        if not all(is_host_name(pattern.host_of(node_id)) for node_id in (0, NODE_ID_MAX)):
            raise ValueError("its names are not host names of two labels or more")
        return pattern

    def host_of(self, node_id: int) -> str:
        """Return the name of a broker."""
        return f"{self.before}{node_id}{self.after}"

    def node_of(self, host: str) -> int | None:
        """Return the node id in a lower-case name, None if the name is not a broker's."""
        ends = len(host) - len(self.after)
        if not (host.startswith(self.before) and host.endswith(self.after) and ends > len(self.before)):
            return None
        number = host[len(self.before) : ends]
        if _NUMBER.fullmatch(number) is None or int(number) > NODE_ID_MAX:
            return None
        return int(number)

    def __str__(self) -> str:
        return f"{self.before}{NODE_ID}{self.after}"


@dataclass(frozen=True, slots=True)
class BrokerHosts:
    """The names of one gateway listener; all of them lead to its one port.

    `bootstrap_host` is a name that `is_host_name` accepts, or an IP address; the pattern does not match it.
    """

    bootstrap_host: str
    pattern: BrokerHostPattern
    advertised_port: int

    def advertised(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        """Return the address to give to clients in place of an upstream broker's own."""
        del host, port  # clients must not learn upstream's own address
        return self.pattern.host_of(node_id), self.advertised_port

    def broker_of(self, server_name: str | None) -> int | None:
        """Return the node id of the broker that a client names, None for the bootstrap name.

        `server_name` None: the client sent none. It means the bootstrap name only if that name is an IP
        address, because clients must not send one for an address. Raise `UnknownHostError`.
        """
        if server_name is None:
            if is_address(self.bootstrap_host):
                return None
            raise UnknownHostError("a client names no host (`server_name`), which chooses the broker here")
        host = server_name.lower().removesuffix(".")
        if host == self.bootstrap_host:
            return None
        node_id = self.pattern.node_of(host)
        if node_id is None:
            raise UnknownHostError(
                f"a client names {shown(host)}, which is neither `{self.bootstrap_host}` nor `{self.pattern}`"
            )
        return node_id


def shown(host: str) -> str:
    """Return a client's name in a form for logs: a host name as it is, otherwise only its length."""
    return f"`{host}`" if is_host_name(host) else f"a host of {len(host)} characters that is not a host name"
