"""What ACLs entitle to, by the words of the docs alone: every client, host and name is tried.

Plain Python that shares no code with kustos. An ACL is a tuple of texts in the order of ACL_NAMES.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import product
from random import Random
from typing import Any

from tests.pipeline.plain_record import DAY, day_of, is_enough

ACL_NAMES = (
    "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type",
)  # fmt: skip
Acl = tuple[str, str, str, str, str, str, str]
Use = Mapping[str, Any]

TYPES = {
    "TOPIC": (
        "READ", "WRITE", "CREATE", "DESCRIBE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
    ),
    "GROUP": ("READ", "DESCRIBE", "DELETE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
}  # fmt: skip
IMPLIED = dict.fromkeys(("READ", "WRITE", "DELETE", "ALTER"), "DESCRIBE")
IMPLIED["ALTER_CONFIGS"] = "DESCRIBE_CONFIGS"
HOSTS = ("*", "*", "*", "10.0.0.1", "10.1.0.2", "10.2.0.0")
NAMES = ("payments", "orders", "payments.retry", "pay", "orders.old", "*")


def drawn_acls(random: Random, principals: Iterable[str]) -> list[Acl]:
    """Return ACLs that meet one another and the drawn events in many ways, each once."""
    who = [*(f"User:{name}" for name in principals), "User:*", "User:root"]
    found = {
        (
            kind := random.choice(["TOPIC", "TOPIC", "TOPIC", "GROUP"]),
            random.choice(NAMES[:-1] if is_prefix else NAMES),
            "PREFIXED" if is_prefix else "LITERAL",
            random.choice(who),
            random.choice(HOSTS),
            random.choice([*TYPES[kind], "ALL", "READ"]),
            random.choice(["ALLOW", "ALLOW", "ALLOW", "DENY"]),
        )
        for is_prefix in random.choices([True, False, False], k=40)
    }
    # whom no event and no other ACL names
    return sorted({*found, ("TOPIC", "orders", "LITERAL", "User:nobody", "*", "WRITE", "ALLOW")})


def text_of(acls: Iterable[Acl]) -> str:
    """Return the ACLs as `kafka-acls.sh --list` prints them."""
    return "".join(
        f"Current ACLs for resource `ResourcePattern(resourceType={kind}, name={name}, patternType={pattern})"
        f"`:\n \t(principal={who}, host={host}, operation={operation}, permissionType={permission})\n"
        for kind, name, pattern, who, host, operation, permission in acls
    )


def holds(acl: Acl, kind: str, name: str) -> bool:
    """Return whether an ACL is on a name."""
    if acl[0] != kind:
        return False
    return name.startswith(acl[1]) if acl[2] == "PREFIXED" else acl[1] in (name, "*")


def is_for(acl: Acl, who: str, host: str) -> bool:
    return acl[3] in (who, "User:*") and acl[4] in (host, "*")


def operations(acl: Acl) -> set[str]:
    """Return what an ALLOW allows."""
    if acl[5] == "ALL":
        return set(TYPES[acl[0]])
    found = {acl[5], IMPLIED.get(acl[5], acl[5])}
    return found & {*TYPES[acl[0]]}


@dataclass(frozen=True)
class Plain:
    """A set of ACLs and its settings, the recorded decisions of a cluster, and the moment of the review."""

    acls: list[Acl]
    super_users: frozenset[str]
    is_open: bool
    recorded: list[Use]
    as_of_ms: int
    limit_days: int

    def rows(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """Return by ACL (or principal) and operation what the row says, in the order of COUNTED."""
        found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for acl in self.acls:
            if acl[6] == "ALLOW":
                for operation in operations(acl):
                    found[acl, operation] = self._row(acl, operation)
        for who in self.super_users:
            uses = [use for use in self._uses() if use["principal"] == who]
            found[who, "ALL"] = self._of_uses(uses, ("WILDCARD", "SuperUser", False, "WHOLE", [], 1, None))
        if self.is_open:
            uses = [use for use in self._uses() if self._is_by_default(use)]
            everyone = len(self._principals())
            row = self._of_uses(uses, ("EVERYONE", "DefaultAllow", False, "WHOLE", [], everyone, None))
            found["User:*", "ALL"] = row
        return found

    def _row(self, acl: Acl, operation: str) -> tuple[Any, ...]:
        breadth = "NAMED"
        if acl[3] == "User:*":
            breadth = "EVERYONE"
        elif acl[2] == "PREFIXED":
            breadth = "PREFIXED"
        elif acl[1] == "*":
            breadth = "WILDCARD"
        effect, denies = self.effect(acl, operation)
        uses = [
            use
            for use in self._uses()
            if use["principal"] not in self.super_users
            and use["operation"] == operation
            and is_for(acl, use["principal"], use["host"])
            and (
                holds(acl, "TOPIC", use["resource_name"])
                if use["resource_name"] is not None
                else self.allows_some_topic(acl, use)
            )
        ]
        names = {
            use["resource_name"]
            for use in self.recorded
            if use["resource_name"] is not None
            and "ALLOWED" in (use["decision"], "ALLOWED" if use["access"] == "LISTING" else None)
            and holds(acl, "TOPIC", use["resource_name"])
        }
        who = len(self._principals()) if acl[3] == "User:*" else 1
        known = (breadth, "MatchingAcl", operation != acl[5], effect, denies, who, len(names))
        return self._of_uses(uses, known)

    def _uses(self) -> list[Use]:
        return [one for one in self.recorded if (one["decision"], one["access"]) == ("ALLOWED", "ACCESS")]

    def _of_uses(self, uses: list[Use], known: tuple[Any, ...]) -> tuple[Any, ...]:
        last = max((use["time_ms"] for use in uses), default=None)
        day = self.as_of_ms // 86_400_000
        since = None if last is None else day - last // 86_400_000
        is_used = last is not None and last > self.as_of_ms - self.limit_days * 86_400_000
        return (
            *known, len(uses), len({use["principal"] for use in uses}),
            len({use["resource_name"] for use in uses} - {None}), last, since,
            False if is_used else True if self.is_enough() else None,
        )  # fmt: skip

    def recorded_days(self) -> set[date]:
        """Return the days with a record: with a decision that allowed."""
        return {day_of(one["time_ms"]) for one in self.recorded if one["decision"] == "ALLOWED"}

    def is_enough(self) -> bool:
        """Return whether the record can show that something was not used; the moment is a midnight."""
        return is_enough(self.recorded_days(), day_of(self.as_of_ms) - DAY, self.limit_days)

    def effect(self, acl: Acl, operation: str) -> tuple[str, list[Acl]]:
        """Return what DENYs leave of one operation of an ALLOW, and these DENYs."""
        if acl[3] in self.super_users:
            return "WHOLE", []
        everyone = {one[3] for one in self.acls} - {"User:*"} - self.super_users | {"User:~"}
        names = {name for one in self.acls for name in (one[1], f"{one[1]}~")} - {"*", "*~"} | {"~"}
        questions = [
            asked
            for asked in product(everyone, {*HOSTS, "~"} - {"*"}, names)
            if is_for(acl, *asked[:2]) and holds(acl, acl[0], asked[2])
        ]
        denied = {
            one: {asked for asked in questions if is_for(one, *asked[:2]) and holds(one, acl[0], asked[2])}
            for one in self.acls
            if one[6] == "DENY" and one[5] in (operation, "ALL")
        }
        taken = set().union(*denied.values())
        effect = "WHOLE" if not taken else "PARTLY_DENIED" if len(taken) < len(questions) else "VOID"
        return effect, sorted(one for one, some in denied.items() if some)

    def allows(self, who: str, host: str, operation: str, name: str | None) -> bool:
        """Return whether a client may do something with a topic, or with any topic at all."""
        if who in self.super_users:
            return True
        if name is None:
            asked = {"principal": who, "host": host, "operation": operation}
            return any(
                one[6] == "ALLOW"
                and is_for(one, who, host)
                and operation in operations(one)
                and self.allows_some_topic(one, asked)
                for one in self.acls
            )
        named = [one for one in self.acls if holds(one, "TOPIC", name)]
        mine = [one for one in named if is_for(one, who, host)]
        if any(one[6] == "DENY" and one[5] in (operation, "ALL") for one in mine):
            return False
        if any(one[6] == "ALLOW" and operation in operations(one) for one in mine):
            return True
        return self.is_open and not named

    def allows_some_topic(self, acl: Acl, use: Use) -> bool:
        """Return whether an ALLOW is on some name that no DENY of the client holds with it.

        By KIP-679 such questions imply nothing: READ allows no DESCRIBE of any topic. But Kafka first asks
        about the topic `hardcode` alone, like about any other.
        """
        if acl[0] != "TOPIC":
            return False
        denies = [
            one
            for one in self.acls
            if one[6] == "DENY" and one[0] == "TOPIC" and one[5] in (use["operation"], "ALL")
            and is_for(one, use["principal"], use["host"])
        ]  # fmt: skip
        if holds(acl, "TOPIC", "hardcode") and not any(holds(one, "TOPIC", "hardcode") for one in denies):
            return True
        if acl[5] not in (use["operation"], "ALL"):
            return False
        return not any(
            (one[2], one[1]) == ("LITERAL", "*")
            or (one[2] == "PREFIXED" and acl[1].startswith(one[1]) and acl[1] != "*")
            or (one[2] == acl[2] == "LITERAL" and one[1] == acl[1])
            for one in denies
        )

    def _is_by_default(self, use: Use) -> bool:
        is_named = any(holds(one, "TOPIC", use["resource_name"]) for one in self.acls)
        return use["principal"] not in self.super_users and not is_named

    def _principals(self) -> set[str]:
        named = {one[3] for one in self.acls} | {one["principal"] for one in self.recorded}
        return (named | self.super_users) - {"User:*"}


COUNTED = (
    "breadth", "basis", "is_implied", "effect", "denied_by", "principal_count", "name_count", "use_count",
    "used_by_count", "used_name_count", "last_used", "dormant_days", "is_dormant",
)  # fmt: skip
"""The columns that are compared, in order; `deny_count` is the length of `denied_by`."""


def counted(row: Mapping[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return key and values of a row of `entitlements`, as `Plain.rows` has them."""

    def acl_of(texts: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(texts[name] for name in ACL_NAMES)

    values = {name: row[name] for name in COUNTED}
    values["denied_by"] = sorted(map(acl_of, row["denied_by"]))
    if (last := row["last_used"]) is not None:
        zoned: datetime = last if last.tzinfo else last.replace(tzinfo=UTC)
        values["last_used"] = round(zoned.timestamp() * 1000)
    (held,) = map(acl_of, row["granted_by"]) if row["granted_by"] else (row["principal"],)
    return (held, row["operation"]), tuple(values.values())
