"""What two clusters cannot have in common is given a common name before their answers are compared."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kustos.wire import ZERO_UUID, Message
from kustos.wire.api_keys import ApiKey
from testkit.equality.sides import Side

UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[A-Za-z0-9_-]{22}$")
OWN_ID = re.compile(r'(?<=["=])[A-Za-z0-9_-]{22}(?=[")])')
REQUEST_DUMP = re.compile(r"Request Request\(.*\) needs \w+ permission\.", re.DOTALL)
TIMES = frozenset({"throttle_time", "log_append_time", "timestamp"})
MEMBERS = frozenset({"member_id", "leader"})


@dataclass(frozen=True, slots=True)
class Normalizer:
    """Gives the answers of one side their common form."""

    side: Side
    rules: Mapping[str, Callable[[Any], Any]] = field(default_factory=lambda: RULES)

    def normal(self, message: Message | None, topic_names: Mapping[bytes, str]) -> Any:
        """Return an answer as plain containers with common names; None is a closed connection."""
        if message is None:
            return "the connection is closed"
        return self._plain(message, topic_names)

    def _plain(self, value: Any, names: Mapping[bytes, str]) -> Any:
        if isinstance(value, Message):
            is_acl = "principal" in value.FIELDS
            return {name: self._field(name, getattr(value, name), names, is_acl) for name in value.FIELDS}
        if isinstance(value, list):
            return [self._plain(item, names) for item in value]
        return value

    def _field(self, name: str, value: Any, names: Mapping[bytes, str], is_acl: bool) -> Any:
        rule = None if name == "host" and is_acl else self.rules.get(name)
        if rule is not None:
            return rule(value)
        if name in {"topic_id", "replica_directory_id"}:
            return value if value in {None, ZERO_UUID} else names.get(value, f"no topic: {value.hex()}")
        if name == "cluster_id":
            return "THE CLUSTER" if value == self.side.cluster_id else value
        return self._plain(value, names)


def _time(value: int) -> object:
    # -1 stands for "no time", which is an answer
    return "A TIME" if value > 0 else value


def _text(value: str | None) -> str | None:
    return None if value is None else REQUEST_DUMP.sub("Cluster authorization failed.", value)


def _given(word: str) -> Callable[[int], object]:
    return lambda value: word if value > 0 else value


def _uuid_text(value: str | None) -> str | None:
    return None if value is None else UUID_TEXT.sub("A UUID", value)


RULES: dict[str, Callable[[Any], Any]] = {
    "throttle_time": lambda _: "ANY",
    "log_append_time": _time,
    "max_timestamp": _time,
    "issue_timestamp": _time,
    "expiry_timestamp": _time,
    "token_id": lambda value: "A TOKEN" if value else value,
    "hmac": lambda value: f"AN HMAC of {len(value)} bytes" if value else value,
    "host": lambda value: "A HOST" if value else value,
    "port": lambda value: "A PORT" if value > 0 else value,
    "session_id": _given("A SESSION"),
    "transaction_start_time": _time,
    "last_timestamp": _time,
    "producer_id": lambda value: "A PRODUCER" if value >= 0 else value,
    "member_id": _uuid_text,
    "leader": lambda value: _uuid_text(value) if isinstance(value, str) else value,
    "error_message": _text,
    "finalized_features_epoch": lambda value: "AN EPOCH" if value >= 0 else value,
}


def _place(word: str) -> Callable[[Any], Any]:
    return lambda value: word if value >= 0 else value


QUORUM_RULES: dict[str, Callable[[Any], Any]] = {
    "leader_epoch": _place("AN EPOCH"),
    "high_watermark": _place("AN OFFSET"),
    "log_end_offset": _place("AN OFFSET"),
    "last_fetch_timestamp": _place("A TIME"),
    "last_caught_up_timestamp": _place("A TIME"),
    "replica_directory_id": lambda value: value if value in {None, ZERO_UUID} else "A DIRECTORY",
}
"""Also what two logs of metadata cannot have in common."""

VOTER_RULES: dict[str, Callable[[Any], Any]] = {
    "error_message": lambda value: None if value is None else OWN_ID.sub("AN ID", _text(value) or "")
}
"""Also the ids of two clusters and of their directories, which a refusal tells."""

RULES_OF: dict[int, dict[str, Callable[[Any], Any]]] = {
    ApiKey.DESCRIBE_QUORUM: QUORUM_RULES,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: {
        "client_instance_id": lambda value: value if value in {None, ZERO_UUID} else "AN INSTANCE",
        "subscription_id": lambda value: "A SUBSCRIPTION" if value else value,
    },
    # a broker assigns in the background, a second after it did so before at the earliest
    ApiKey.LIST_GROUPS: {
        "group_state": lambda state: "AN ASSIGNMENT" if state in {"Assigning", "Reconciling"} else state
    },
    ApiKey.ADD_RAFT_VOTER: VOTER_RULES,
    ApiKey.REMOVE_RAFT_VOTER: VOTER_RULES,
    ApiKey.DESCRIBE_LOG_DIRS: {
        "log_dir": lambda value: "A PATH" if value else value,
        **{name: _place("A SIZE") for name in ("partition_size", "total_bytes", "usable_bytes")},
    },
}
"""More rules for single APIs."""


def canonical(value: Any) -> Any:
    """Return the value with every list in one order, but for those whose items only their place names."""
    if isinstance(value, dict):
        return {
            key: [canonical(each) for each in item]
            if key in BY_PLACE and is_by_place(item)
            else canonical(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return sorted((canonical(item) for item in value), key=repr)
    return value


BY_PLACE = frozenset({"results", "filter_results"})
"""The results of CreateAcls and DeleteAcls."""


def is_by_place(items: list[Any]) -> bool:
    """Return whether nothing in the items says what they are about."""
    return all(item.keys() <= {"error_code", "error_message", "matching_acls"} for item in items)


def differences(reference: Any, kustos: Any, path: str = "") -> list[str]:
    """Return where two normal answers differ, one line a place."""
    if isinstance(reference, dict) and isinstance(kustos, dict):
        return [
            line
            for key in reference.keys() | kustos.keys()
            for line in differences(reference.get(key), kustos.get(key), f"{path}.{key}")
        ]
    if isinstance(reference, list) and isinstance(kustos, list) and len(reference) == len(kustos):
        return [
            line
            for index, (theirs, ours) in enumerate(zip(reference, kustos, strict=True))
            for line in differences(theirs, ours, f"{path}[{index}]")
        ]
    return [] if reference == kustos else [f"{path or 'answer'}: Kafka {reference!r}, kustos {kustos!r}"]
