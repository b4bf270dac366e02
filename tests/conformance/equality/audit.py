"""Decisions as Kafka's audit log tells them and as ours does, in one form."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kustos.authorizer.index.by_type import PROBED_NAME

LINE = re.compile(
    r"(?P<level>\w+) Principal = (?P<principal>.*) is (?P<decision>Allowed|Denied)"
    r" operation = (?P<operation>\w+)"
    r" from host = (?P<host>\S+) on resource = (?P<kind>\w+):LITERAL:(?P<name>.*)"
    r" for request = (?P<request>\w+) with resourceRefCount = (?P<references>\d+) based on rule (?P<rule>\w+)"
)
TOKEN_ID_LENGTH = 22
INTERNAL = "User:broker"
"""Whom the reference's broker and controller are to each other."""


class Audited(NamedTuple):
    """One decision in the audit log."""

    level: str
    principal: str
    decision: str
    operation: str
    host: str
    kind: str
    name: str
    request: str
    references: int
    rule: str

    @classmethod
    def of_line(cls, line: str) -> "Audited":
        """Return the decision of a line of Kafka's; ValueError if it is none."""
        match = LINE.match(line)
        if match is None:
            raise ValueError(f"no line of Kafka's authorizer: `{line}`")
        words: dict[str, Any] = match.groupdict()
        words |= {"decision": words["decision"].upper(), "name": common_name(words["kind"], words["name"])}
        return cls(**words | {"references": int(words["references"])})

    @classmethod
    def of_event(cls, event: Mapping[str, Any]) -> "Audited":
        """Return the decision of one of our events."""
        allowed = event["decision"] == "ALLOWED"
        flagged = event["log_if_allowed"] if allowed else event["log_if_denied"]
        level = ("DEBUG" if allowed else "INFO") if flagged else "TRACE"
        return cls(
            level=level,
            principal=f"{event['principal_type']}:{event['principal_name']}",
            decision=event["decision"],
            operation=event["operation"],
            host=event["host"],
            kind=camel_case(event["resource_type"]),
            name=common_name(
                camel_case(event["resource_type"]),
                PROBED_NAME if event["resource_name"] is None else event["resource_name"],
            ),
            request=event["api_name"],
            references=event["reference_count"],
            rule=event["rule"]["kind"],
        )


def gathered(found: Counter[Audited]) -> Counter[Audited]:
    """Return the decisions with how many references all equal ones have together, as their number."""
    together: Counter[Audited] = Counter()
    for each, count in found.items():
        together[each._replace(references=1)] += count * each.references
    return together


def common_name(kind: str, name: str) -> str:
    """Return the name that both sides have for a resource: the ids of tokens are random."""
    return "A TOKEN" if kind == "DelegationToken" and len(name) == TOKEN_ID_LENGTH else name


def camel_case(words: str) -> str:
    """Return `DESCRIBE_CONFIGS` as `DescribeConfigs`."""
    return "".join(word.capitalize() for word in words.split("_"))


def of_lines(lines: Iterable[str]) -> list[Audited]:
    """Return the decisions about clients."""
    found = [Audited.of_line(line) for line in lines if "Principal = " in line]
    return [item for item in found if item.principal != INTERNAL]
