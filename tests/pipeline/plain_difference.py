"""What other ACLs allow and take away: every question is asked of both, and equal answers make a region.

Plain Python that shares no code with kustos. The regions of a difference are read from its JSON.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address, ip_network
from itertools import product
from typing import Any

from tests.pipeline.plain_entitlements import HOSTS, IMPLIED, Acl

OPERATIONS = (
    "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT", "ALL",
)  # fmt: skip
"""All that a request could ask for, of any type: an authorizer answers, whether it means something or not."""
TYPES = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
SOMEBODY, SOMEWHERE, SOME_NAME = "User:~", "192.0.2.1", "~"
"""A principal, a host and a name of which no ACL speaks."""

Region = tuple[str, str, frozenset[str], frozenset[str], frozenset[str], frozenset[str]]
"""Direction, type, principals, hosts, operations and names: of those that are tried."""


@dataclass(frozen=True)
class Rules:
    """A set of ACLs, and what is allowed without any."""

    acls: Sequence[Acl]
    super_users: frozenset[str]
    is_open: bool

    def on(self, kind: str, name: str) -> list[Acl]:
        """Return the ACLs on a resource."""
        return [acl for acl in self.acls if is_on(acl, kind, name)]

    def allowed(self, on_it: Sequence[Acl], who: str, host: str) -> frozenset[str]:
        """Return the operations that a principal may do from a host with a resource of these ACLs."""
        if who in self.super_users or (self.is_open and not on_it):
            return frozenset(OPERATIONS)
        mine = [acl for acl in on_it if acl[3] in (who, "User:*") and acl[4] in (host, "*")]
        allows = {operation for acl in mine if acl[6] == "ALLOW" for operation in named(acl[5])}
        implied = {IMPLIED[operation] for operation in allows & IMPLIED.keys()}
        denies = {operation for acl in mine if acl[6] == "DENY" for operation in named(acl[5])}
        return frozenset((allows | implied) - denies)


def named(operation: str) -> Iterable[str]:
    return OPERATIONS if operation == "ALL" else (operation,)


def is_on(acl: Acl, kind: str, name: str) -> bool:
    """Return whether an ACL is on a resource; LITERAL `*` is on no name that only begins with it."""
    if acl[0] != kind:
        return False
    if acl[2] == "PREFIXED":
        return name.startswith(acl[1])
    return acl[1] == name or (acl[1] == "*" and not name.startswith("*"))


@dataclass(frozen=True)
class PlainDifference:
    """Two sets of ACLs: what is asked are their texts, and texts beside them."""

    before: Rules
    after: Rules

    @cached_property
    def _principals(self) -> list[str]:
        everyone = {acl[3] for rules in (self.before, self.after) for acl in rules.acls} - {"User:*"}
        return sorted(everyone | self.before.super_users | self.after.super_users | {SOMEBODY})

    @cached_property
    def _hosts(self) -> list[str]:
        written = {acl[4] for rules in (self.before, self.after) for acl in rules.acls}
        return sorted({*written, *HOSTS, SOMEWHERE} - {"*"})

    def _names(self, kind: str) -> list[str]:
        if kind == "CLUSTER":
            return ["kafka-cluster"]
        written = {acl[1] for rules in (self.before, self.after) for acl in rules.acls if acl[0] == kind}
        return sorted({*written, *(f"{name}~" for name in written), "*", "*~", SOME_NAME})

    def counts(self) -> dict[str, int]:
        """Return how many regions are gained and lost."""
        directions = [region[0] for region in self.regions]
        return {direction: directions.count(direction) for direction in ("GAINED", "LOST")}

    @cached_property
    def regions(self) -> set[Region]:
        """The regions: names, then hosts, then principals with the same answers are one."""
        found: dict[Any, set[str]] = {}
        sides = (self.before, self.after)
        acls_on = {
            (kind, name): [(rules, rules.on(kind, name)) for rules in sides]
            for kind in TYPES
            for name in self._names(kind)
        }
        for kind, who in product(TYPES, self._principals):
            by_answers: dict[Any, set[str]] = {}
            for name in self._names(kind):
                answers = []
                for host in self._hosts:
                    was, now = (rules.allowed(acls, who, host) for rules, acls in acls_on[kind, name])
                    answers.append((now - was, was - now))
                by_answers.setdefault(tuple(answers), set()).add(name)
            for answers, names in by_answers.items():
                for side, direction in enumerate(("GAINED", "LOST")):
                    of_hosts: dict[frozenset[str], set[str]] = {}
                    for operation in OPERATIONS:
                        hosts = {
                            host
                            for host, answer in zip(self._hosts, answers, strict=True)
                            if operation in answer[side]
                        }
                        of_hosts.setdefault(frozenset(hosts), set()).add(operation)
                    for some, operations in of_hosts.items():
                        if some:
                            key = (direction, kind, some, frozenset(operations), frozenset(names))
                            found.setdefault(key, set()).add(who)
        return {
            (direction, kind, frozenset(whom), hosts, operations, names)
            for (direction, kind, hosts, operations, names), whom in found.items()
        }

    def check(self, shown: Mapping[str, Any]) -> None:
        """Check every region of a difference in its JSON, and that none is missing."""
        changes = shown["changes"]
        read = [self._read(change) for change in changes]
        assert len(set(read)) == len(read)
        assert set(read) == self.regions
        assert (shown["cut"], shown["same"]) == (False, not self.regions)
        for change in changes:
            asked = change["witness"]
            was, now = (
                rules.allowed(
                    rules.on(asked["resource_type"], asked["resource_name"]),
                    asked["principal"],
                    asked["host"],
                )
                for rules in (self.before, self.after)
            )
            assert asked["operation"] in (now - was if change["direction"] == "GAINED" else was - now)
            assert asked["operation"] in change["operations"]
            assert asked["resource_type"] == change["resource_type"]
            assert is_in(asked["principal"], change["principals"])
            assert is_at(asked["host"], change["hosts"])
            assert is_called(asked["resource_name"], change["names"])

    def _read(self, change: Mapping[str, Any]) -> Region:
        kind = change["resource_type"]
        return (
            change["direction"], kind,
            frozenset(who for who in self._principals if is_in(who, change["principals"])),
            frozenset(host for host in self._hosts if is_at(host, change["hosts"])),
            frozenset(change["operations"]),
            frozenset(name for name in self._names(kind) if is_called(name, change["names"])),
        )  # fmt: skip


def is_in(who: str, principals: Mapping[str, Sequence[str]]) -> bool:
    return who in principals["in"] if "in" in principals else who not in principals["except"]


def is_at(host: str, hosts: Mapping[str, Sequence[str]]) -> bool:
    return _is_among(host, hosts["in"]) if "in" in hosts else not _is_among(host, hosts["except"])


def _is_among(host: str, texts: Iterable[str]) -> bool:
    """Return whether an IPv4 address is one of the addresses and ranges (`/` or `-`)."""
    for text in texts:
        first, is_range, last = text.partition("-")
        if text == "every IPv4 address" or ("/" in text and ip_address(host) in ip_network(text)):
            return True
        if is_range and int(ip_address(first)) <= int(ip_address(host)) <= int(ip_address(last)):
            return True
        if host == text:
            return True
    return False


def is_called(name: str, terms: Iterable[Mapping[str, Any]]) -> bool:
    return any(
        _is_of(name, term) and not any(_is_of(name, one) for one in term.get("except", ())) for term in terms
    )


def _is_of(name: str, site: Mapping[str, str]) -> bool:
    return name == site["name"] if site["pattern_type"] == "LITERAL" else name.startswith(site["name"])
