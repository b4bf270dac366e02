"""What two clusters cannot have in common is given a common name before their answers are compared."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kustos.wire import ZERO_UUID, Message
from kustos.wire.api_keys import ApiKey, api_name
from testkit.equality.sides import Side

UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[A-Za-z0-9_-]{22}$")
OWN_ID = re.compile(r'(?<=["=])[A-Za-z0-9_-]{22}(?=[")])')
REQUEST_DUMP = re.compile(r"Request Request\(.*\) needs \w+ permission\.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a value was seen: on which side, and what topics are called there."""

    side: Side
    topic_names: Mapping[bytes, str]


Common = Callable[[Any, Seen], Any]
"""Returns the common name of a value, or the value itself where both sides must have the same."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A field of the answers of some APIs (None: of all) whose values two clusters cannot have in common."""

    field: str
    apis: tuple[ApiKey, ...] | None
    why: str
    common: Common

    @property
    def row(self) -> str:
        """Return the rule as a row of the table in the docs."""
        where = "all" if self.apis is None else ", ".join(map(api_name, self.apis))
        return f"| `{self.field}` | {where} | {self.why} |"


class Rules:
    """Rules by the field that they are for, and which of them gave a value of which API its common name."""

    def __init__(self, table: Iterable[Rule]) -> None:
        self.table = tuple(table)
        self.used: set[tuple[str, int]] = set()

    def of(self, api: int) -> Mapping[str, Rule]:
        """Return the rules for the answers of an API, by field."""
        return {rule.field: rule for rule in self.table if rule.apis is None or api in rule.apis}

    def unused(self, table: Iterable[Rule]) -> list[str]:
        """Return the rules of a table that have changed no value, by API where they are for some."""
        fields = {field for field, _ in self.used}
        return [
            f"{rule.field} of {'all' if api is None else api_name(api)}"
            for rule in table
            for api in rule.apis or (None,)
            if ((rule.field, api) not in self.used if api is not None else rule.field not in fields)
        ]


class Normalizer:
    """Gives the answers of one side to requests of one API their common form."""

    def __init__(self, side: Side, api: int, topic_names: Mapping[bytes, str], rules: Rules) -> None:
        self._seen = Seen(side, topic_names)
        self._rules = rules
        self._by_field = rules.of(api)
        self._api = api

    def normal(self, message: Message | None) -> Any:
        """Return an answer as plain containers with common names; None is a closed connection."""
        return "the connection is closed" if message is None else self._plain(message)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Message):
            return {name: self._field(name, getattr(value, name)) for name in value.FIELDS}
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        return value

    def _field(self, name: str, value: Any) -> Any:
        rule = self._by_field.get(name)
        if rule is None:
            return self._plain(value)
        common = rule.common(value, self._seen)
        if common != value:
            self._rules.used.add((rule.field, self._api))
        return common


def _word(word: str, is_one: Callable[[Any], object] = bool) -> Common:
    return lambda value, _: word if is_one(value) else value


def _text(value: str | None, _: Seen) -> str | None:
    return None if value is None else REQUEST_DUMP.sub("Cluster authorization failed.", value)


def _no_ids(value: str | None, seen: Seen) -> str | None:
    return None if value is None else OWN_ID.sub("AN ID", _text(value, seen) or "")


def _hmac(value: bytes, _: Seen) -> object:
    return f"AN HMAC of {len(value)} bytes" if value else value


def _uuid_text(value: str | None, _: Seen) -> str | None:
    return None if value is None else UUID_TEXT.sub("A UUID", value)


def _topic_id(value: bytes | None, seen: Seen) -> Any:
    return value if value in {None, ZERO_UUID} else seen.topic_names.get(value, f"no topic: {value.hex()}")


def _cluster_id(value: str | None, seen: Seen) -> str | None:
    return "THE CLUSTER" if value == seen.side.cluster_id else value


def _is_positive(value: int) -> bool:
    # -1 stands for "no time", which is an answer
    return value > 0


def _is_place(value: int) -> bool:
    return value >= 0


def _is_assigned(state: str) -> bool:
    return state in {"Assigning", "Reconciling"}


def _is_id(value: bytes | None) -> bool:
    return value not in {None, ZERO_UUID}


_time = _word("A TIME", _is_positive)

_TOKENS = (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN)
_QUORUM = (ApiKey.DESCRIBE_QUORUM,)
_LOG_DIRS = (ApiKey.DESCRIBE_LOG_DIRS,)
_ADDRESSES = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_QUORUM, ApiKey.DESCRIBE_CLUSTER)
_VOTERS = (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER)
_GROWS = "two logs of metadata grow each at its own pace"
_DISKS = "another broker has other disks, and writes other batches"
_TIMES_OF_TOKENS = "both make a token, one after the other"
_TEXT = "Kafka's text of some refusals prints the whole request"

RULES: tuple[Rule, ...] = (
    Rule("throttle_time", None, "quotas count what a client did before", lambda *_: "ANY"),
    Rule("host", _ADDRESSES, "the address that one listens at", _word("A HOST")),
    Rule("port", _ADDRESSES, "the address that one listens at", _word("A PORT", _is_positive)),
    Rule(
        "cluster_id",
        (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER),
        "random; the side's own becomes one word, another one stays",
        _cluster_id,
    ),
    Rule(
        "topic_id",
        (
            ApiKey.PRODUCE,
            ApiKey.FETCH,
            ApiKey.METADATA,
            ApiKey.OFFSET_COMMIT,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.OFFSET_FETCH,
            ApiKey.CREATE_TOPICS,
            ApiKey.DELETE_TOPICS,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_DESCRIBE,
            ApiKey.SHARE_FETCH,
            ApiKey.SHARE_ACKNOWLEDGE,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ),
        "random; becomes the name of the topic, and no id stays no id",
        _topic_id,
    ),
    Rule("session_id", (ApiKey.FETCH,), "random", _word("A SESSION", _is_positive)),
    Rule(
        "producer_id",
        (
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.END_TXN,
            ApiKey.WRITE_TXN_MARKERS,
            ApiKey.DESCRIBE_PRODUCERS,
            ApiKey.DESCRIBE_TRANSACTIONS,
            ApiKey.LIST_TRANSACTIONS,
        ),
        "each cluster counts its own; no id stays no id",
        _word("A PRODUCER", _is_place),
    ),
    Rule("last_timestamp", (ApiKey.DESCRIBE_PRODUCERS,), "when it wrote; no time stays no time", _time),
    Rule("transaction_start_time", (ApiKey.DESCRIBE_TRANSACTIONS,), "when it began", _time),
    Rule(
        "member_id",
        (
            ApiKey.JOIN_GROUP,
            ApiKey.LEAVE_GROUP,
            ApiKey.DESCRIBE_GROUPS,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_DESCRIBE,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.STREAMS_GROUP_DESCRIBE,
        ),
        "the random id in it; what stands around it stays",
        _uuid_text,
    ),
    Rule("leader", (ApiKey.JOIN_GROUP,), "a member's id", _uuid_text),
    Rule(
        "group_state",
        (ApiKey.LIST_GROUPS,),
        "a broker assigns in the background, a second after it did so before at the earliest",
        _word("AN ASSIGNMENT", _is_assigned),
    ),
    Rule("token_id", _TOKENS, "random", _word("A TOKEN")),
    Rule("hmac", _TOKENS, "follows from the id; its length stays", _hmac),
    Rule("issue_timestamp", _TOKENS, _TIMES_OF_TOKENS, _time),
    Rule("max_timestamp", _TOKENS, _TIMES_OF_TOKENS, _time),
    Rule(
        "expiry_timestamp",
        (*_TOKENS, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN),
        _TIMES_OF_TOKENS,
        _time,
    ),
    Rule(
        "error_message",
        (
            ApiKey.DESCRIBE_ACLS,
            ApiKey.CREATE_ACLS,
            ApiKey.DELETE_ACLS,
            ApiKey.ELECT_LEADERS,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            ApiKey.UPDATE_FEATURES,
            ApiKey.UNREGISTER_BROKER,
            ApiKey.UNREGISTER_CONTROLLER,
        ),
        _TEXT,
        _text,
    ),
    Rule(
        "error_message",
        _VOTERS,
        f"{_TEXT}, others the ids of cluster and directories",
        _no_ids,
    ),
    Rule(
        "finalized_features_epoch",
        (ApiKey.API_VERSIONS,),
        "an offset in the log of metadata",
        _word("AN EPOCH", _is_place),
    ),
    Rule("leader_epoch", _QUORUM, _GROWS, _word("AN EPOCH", _is_place)),
    Rule("high_watermark", _QUORUM, _GROWS, _word("AN OFFSET", _is_place)),
    Rule("log_end_offset", _QUORUM, _GROWS, _word("AN OFFSET", _is_place)),
    Rule("last_fetch_timestamp", _QUORUM, _GROWS, _word("A TIME", _is_place)),
    Rule("last_caught_up_timestamp", _QUORUM, _GROWS, _word("A TIME", _is_place)),
    Rule("replica_directory_id", _QUORUM, "random", _word("A DIRECTORY", _is_id)),
    Rule("log_dir", _LOG_DIRS, "a path on a broker's machine", _word("A PATH")),
    Rule("partition_size", _LOG_DIRS, _DISKS, _word("A SIZE", _is_place)),
    Rule("total_bytes", _LOG_DIRS, _DISKS, _word("A SIZE", _is_place)),
    Rule("usable_bytes", _LOG_DIRS, _DISKS, _word("A SIZE", _is_place)),
    Rule(
        "client_instance_id",
        (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,),
        "random; no id stays no id",
        _word("AN INSTANCE", _is_id),
    ),
    Rule(
        "subscription_id",
        (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,),
        "a checksum that has the instance's id in it",
        _word("A SUBSCRIPTION"),
    ),
)
"""What brokers answer; whatever is not here must be the same on both sides."""

CONTROLLER_RULES: tuple[Rule, ...] = (Rule("error_message", (ApiKey.DESCRIBE_CLUSTER,), _TEXT, _text),)
"""What only controllers answer."""


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
