"""Decides again, from Kafka's authorization facts alone, about everything that passes a wire.

`check_request` looks at a frame on its way to the trusting upstream, `check_response` at an answer on
its way to the client; both read with kio and decide with the specification of the authorizer. They know
nothing of kustos's protocol room, so they can sit behind it in a property test and in a tap of a real
gateway alike. Frames are without their length.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kustos.acl import CLUSTER_NAME, AclBinding
from kustos.wire.schemas import APIS
from testkit.tap import answers, daily_answers, share_answers, transaction_answers
from testkit.tap.answers import Coded, Key
from testkit.tap.client import (
    AUTHORIZATION_CODES,
    INVALID_REQUEST,
    NOT_ASKED,
    TOPIC_DENIED,
    Client,
    Op,
    Type,
    Violation,
)
from testkit.tap.frames import Request, code, read_request, read_response, topic_key
from testkit.tap.needs import NEEDS

__all__ = ["Client", "Violation", "check_request", "check_response", "violations"]

DESCRIBE_ACLS = 29


@dataclass(frozen=True)
class Rule:
    """How an answer is held against its request."""

    expected: Callable[[Request, Client], Coded]
    answered: Callable[[Request, Any], Coded]
    ordered: bool = True
    unforeseen: frozenset[int] = frozenset()


def plain(read: Callable[[Any], Coded]) -> Callable[[Request, Any], Coded]:
    return lambda request, body: read(body)


def by_items(items: str, field: str | None = None) -> Callable[[Request, Any], Coded]:
    key = (lambda item: answers.TOP) if field is None else answers.by(field)
    return plain(answers.answered_items(items, key))


def topic_items(items: str) -> Callable[[Request, Any], Coded]:
    return plain(answers.answered_items(items, lambda item: (topic_key(item),)))


def answered_metadata(request: Request, body: Any) -> Coded:
    """Return the topics by id where they were asked by id: an answer then has its name as well."""
    by_id = any(getattr(topic, "topic_id", None) for topic in request.body.topics or ())
    if by_id and request.version >= 12:
        return [((t.topic_id.bytes if t.topic_id else bytes(16),), code(t)) for t in body.topics]
    return topic_items("topics")(request, body)


TOP = plain(answers.answered_top)
PARTITIONS = plain(answers.answered_by_partition("topics", "partitions", "partition_index"))
ALTERED_CONFIGS = Rule(
    daily_answers.altered_configs, plain(answers.answered_items("responses", daily_answers.resource_key))
)
RULES: dict[int, Rule] = {
    0: Rule(
        answers.produce,
        plain(answers.answered_by_partition("responses", "partition_responses", "index")),
        ordered=False,  # a broker answers in the order of a hash table
    ),
    1: Rule(
        answers.fetch,
        plain(answers.answered_by_partition("responses", "partitions", "partition_index")),
        ordered=False,
    ),
    2: Rule(
        lambda request, client: answers.by_partition(
            request.body.topics,
            "partitions",
            "partition_index",
            lambda key: client.topic_refusal(Op.DESCRIBE, key),
        ),
        PARTITIONS,
        ordered=False,  # a broker answers in the order of a hash table
    ),
    3: Rule(answers.metadata, answered_metadata),
    8: Rule(answers.offset_commit, PARTITIONS),
    9: Rule(answers.offset_fetch, answers.answered_offset_fetch),
    10: Rule(answers.find_coordinator, plain(answers.answered_coordinators)),
    **dict.fromkeys((11, 12, 13, 14, 93), Rule(answers.one_group(Op.READ), TOP)),
    15: Rule(answers.groups("groups"), by_items("groups", "group_id")),
    17: Rule(answers.SASL_REFUSED, TOP),
    19: Rule(answers.create_topics, by_items("topics", "name")),
    20: Rule(answers.delete_topics, answers.answered_delete_topics, ordered=False),
    21: Rule(daily_answers.on_topics(Op.DELETE), PARTITIONS, ordered=False),
    22: Rule(transaction_answers.init_producer_id, TOP),
    23: Rule(daily_answers.epochs, plain(daily_answers.answered_epochs), ordered=False),
    24: Rule(
        transaction_answers.add_partitions,
        transaction_answers.answered_partitions_of_transaction,
        ordered=False,
    ),
    25: Rule(transaction_answers.add_offsets, TOP),
    26: Rule(transaction_answers.end_transaction, TOP),
    27: Rule(transaction_answers.markers, plain(transaction_answers.answered_markers)),
    28: Rule(transaction_answers.commit_in_transaction, PARTITIONS),
    29: Rule(answers.whole(Op.DESCRIBE), TOP),
    30: Rule(answers.whole(Op.ALTER, "creations"), by_items("results")),
    31: Rule(answers.whole(Op.ALTER, "filters"), by_items("filter_results")),
    32: Rule(
        answers.describe_configs,
        plain(answers.answered_items("results", lambda r: (r.resource_type, str(r.resource_name)))),
    ),
    **dict.fromkeys((33, 44), ALTERED_CONFIGS),
    34: Rule(daily_answers.moved_logs, plain(daily_answers.answered_moved_logs), ordered=False),
    35: Rule(daily_answers.log_dirs, daily_answers.answered_log_dirs),
    36: Rule(answers.SASL_REFUSED, TOP),
    37: Rule(daily_answers.partition_counts, by_items("results", "name"), ordered=False),
    38: Rule(answers.create_token, TOP),
    **dict.fromkeys((39, 40, 41), Rule(answers.top(None), TOP)),
    42: Rule(daily_answers.groups, by_items("results", "group_id"), ordered=False),
    43: Rule(
        daily_answers.whole(Op.ALTER, "topic_partitions", "partitions", ""),
        daily_answers.answered_with_top(daily_answers.answered_elections),
        ordered=False,
    ),
    45: Rule(
        daily_answers.whole(Op.ALTER, "topics", "partitions", "partition_index"),
        daily_answers.answered_with_top(daily_answers.answered_reassignments),
        ordered=False,
    ),
    46: Rule(answers.whole(Op.DESCRIBE), TOP),
    47: Rule(
        daily_answers.offsets,
        daily_answers.answered_with_top(
            answers.answered_by_partition("topics", "partitions", "partition_index")
        ),
        ordered=False,
    ),
    48: Rule(answers.whole(Op.DESCRIBE_CONFIGS), TOP),
    49: Rule(answers.whole(Op.ALTER_CONFIGS, "entries"), by_items("entries")),
    50: Rule(answers.whole(Op.DESCRIBE), TOP),
    51: Rule(answers.scram_users, by_items("results", "user")),
    55: Rule(answers.whole(Op.DESCRIBE), TOP),
    **dict.fromkeys((57, 80, 81), Rule(answers.whole(Op.ALTER), TOP)),
    60: Rule(answers.top(None), TOP),
    61: Rule(transaction_answers.producers, PARTITIONS),
    **dict.fromkeys((64, 94), Rule(answers.whole(Op.ALTER), TOP)),
    65: Rule(transaction_answers.transactions, by_items("transaction_states", "transactional_id")),
    68: Rule(answers.consumer_group_heartbeat, TOP),
    # a group is refused as well for the hidden topics that its members have
    69: Rule(
        answers.groups("group_ids"), by_items("groups", "group_id"), unforeseen=frozenset({TOPIC_DENIED})
    ),
    **dict.fromkeys((71, 72), Rule(answers.top(None), TOP)),
    74: Rule(answers.whole(Op.DESCRIBE_CONFIGS), TOP),
    75: Rule(answers.describe_topic_partitions, topic_items("topics"), ordered=False),
    76: Rule(share_answers.heartbeat, TOP),
    77: Rule(
        answers.groups("group_ids"), by_items("groups", "group_id"), unforeseen=frozenset({TOPIC_DENIED})
    ),
    78: Rule(
        share_answers.fetch,
        daily_answers.answered_with_top(
            answers.answered_by_partition("responses", "partitions", "partition_index")
        ),
        ordered=False,
    ),
    79: Rule(lambda request, client: [(answers.TOP, share_answers.refused(request, client))], TOP),
    88: Rule(answers.streams_group_heartbeat, TOP, unforeseen=frozenset({TOPIC_DENIED})),
    89: Rule(
        answers.groups("group_ids"), by_items("groups", "group_id"), unforeseen=frozenset({TOPIC_DENIED})
    ),
    90: Rule(share_answers.offsets, share_answers.answered_offsets),
    91: Rule(share_answers.altered, share_answers.answered_altered, ordered=False),
    92: Rule(share_answers.deleted, share_answers.answered_deleted, ordered=False),
}
LISTINGS = frozenset({9, 16, 18, 66})


def check_request(
    frame: bytes,
    principal: str,
    host: str,
    acls: Collection[AclBinding],
    topic_names: Mapping[bytes, str],
    *,
    auto_creates_topics: bool = True,
    super_users: frozenset[str] = frozenset(),
) -> list[Violation]:
    """Return why this frame must not have gone upstream; nothing if it may."""
    subject = Client(principal, host, acls, topic_names, auto_creates_topics, super_users)
    return violations(read_request(frame), subject)


def violations(request: Request, client: Client) -> list[Violation]:
    """Return why this request must not have gone upstream; nothing if it may."""
    name = APIS[request.api_key].name
    if request.api_key not in NEEDS:
        return [Violation(name, "only known APIs go upstream", f"API {request.api_key}")]
    return [
        Violation(name, "nothing unauthorised goes upstream", f"v{request.version} needs one of {need}")
        for need in NEEDS[request.api_key](request, client)
        if not any(client.may(*question) for question in need)
    ]


def check_response(
    request_frame: bytes,
    response_frame: bytes,
    principal: str,
    host: str,
    acls: Collection[AclBinding],
    topic_names: Mapping[bytes, str],
    *,
    auto_creates_topics: bool = True,
    super_users: frozenset[str] = frozenset(),
    session_partitions: Collection[Key] | None = None,
) -> list[Violation]:
    """Return what is wrong with an answer that the client got; nothing if it is as Kafka's.

    `session_partitions`: all that an incremental Fetch asks for, its session's earlier ones included.
    """
    subject = Client(principal, host, acls, topic_names, auto_creates_topics, super_users)
    request = read_request(request_frame)
    name = APIS[request.api_key].name
    correlation_id, body = read_response(response_frame, request.api_key, request.version)
    found: list[str] = []
    if correlation_id != request.correlation_id:
        found.append(f"answers {correlation_id}, not {request.correlation_id}")
    said = request_frame + b"".join(
        key[0].encode() for key in session_partitions or () if isinstance(key[0], str)
    )
    # ACLs name topics, to whoever may see ACLs
    if request.api_key != DESCRIBE_ACLS or not subject.may_cluster(Op.DESCRIBE):
        found += list(hidden_names(said, response_frame, subject))
    found += list(wrong_operations(request, body, subject))
    if is_listing(request):
        found += [f"shows {key}" for key in listed(request, body, subject) if not visible(subject, key)]
    if request.api_key == 9 or not is_listing(request):
        rule = RULES[request.api_key]
        expected = rule.expected(request, subject)
        if session_partitions is not None:
            expected = answers.fetched(request, subject, session_partitions)
        answered = rule.answered(request, body)
        if getattr(body, "next_cursor", None) is not None:
            # a page: what is allowed may be on a later one
            shown = {key for key, _ in answered}
            expected = [(key, refusal) for key, refusal in expected if refusal is not None or key in shown]
        # the answer to a first ShareFetch has only partitions with records or errors
        partial = session_partitions is not None or request.api_key == share_answers.FETCH
        found += differences(expected, answered, rule.ordered, partial, rule.unforeseen)
    return [Violation(name, "the answer is Kafka's", f"v{request.version} {text}") for text in found]


def differences(
    expected: Coded, answered: Coded, ordered: bool, partial: bool, unforeseen: frozenset[int]
) -> Iterable[str]:
    """Say how an answer differs; `partial`: what is allowed need not be in it, in no order.

    `unforeseen`: refusals that the request alone does not foretell.
    """
    refusals = dict(expected)
    if partial:
        missing = {key for key, refusal in expected if refusal is not None} - {key for key, _ in answered}
        strange = {key for key, _ in answered} - refusals.keys()
        if missing or strange:
            yield f"leaves out {missing}, adds {strange}"
    else:
        keys, asked = [key for key, _ in answered], [key for key, _ in expected]
        if not ordered:
            keys, asked = sorted(keys, key=repr), sorted(asked, key=repr)
        if keys != asked:
            yield f"names {keys}, asked for were {asked}"
    for key, got in answered:
        refusal = refusals.get(key)
        if refusal is not None and got != refusal:
            yield f"says {got} of {key}, should be {refusal}"
        if refusal is None and got in AUTHORIZATION_CODES and got not in unforeseen:
            yield f"refuses {key} with {got}, which is allowed"


def is_listing(request: Request) -> bool:
    body = request.body
    match request.api_key:
        case 3:
            return body.topics is None or (request.version == 0 and not body.topics)
        case 75:
            return not body.topics and (body.cursor is None or body.cursor.partition_index >= 0)
    return request.api_key in LISTINGS


def listed(request: Request, body: Any, client: Client) -> Iterable[tuple[Op, Type, str | None]]:
    """Return what an answer shows that nobody asked for by name, with what it takes to see it."""
    match request.api_key:
        case 9:
            return [
                (Op.DESCRIBE, Type.TOPIC, client.topic_names.get(key) if isinstance(key, bytes) else key)
                for group in answers.all_topic_groups(request, body)
                for key in map(topic_key, group.topics)
            ]
        case 3 | 75:
            return [(Op.DESCRIBE, Type.TOPIC, str(topic.name)) for topic in body.topics]
        case 16:
            return [(Op.DESCRIBE, Type.GROUP, str(group.group_id)) for group in body.groups]
        case 66:
            return [
                (Op.DESCRIBE, Type.TRANSACTIONAL_ID, str(state.transactional_id))
                for state in body.transaction_states
            ]
    return []


def visible(client: Client, question: tuple[Op, Type, str | None]) -> bool:
    operation, kind, name = question
    if kind is Type.GROUP and client.may_cluster(Op.DESCRIBE):
        return True
    return name is not None and client.may(operation, kind, name)


def hidden_names(said: bytes, response: bytes, client: Client) -> Iterable[str]:
    """Find names of topics that the client may not know and did not say itself."""
    for name in client.topic_names.values():
        if len(name) < 6 or name.encode() in said:
            continue  # too short to be told from chance, or the client's own word
        if client.may(Op.DESCRIBE, Type.TOPIC, name) or client.may_cluster(Op.DELETE):
            continue
        # DELETE without DESCRIBE shows the name of a topic deleted by its id (ControllerApis.deleteTopics)
        if name.encode() in response and not client.may(Op.DELETE, Type.TOPIC, name):
            yield f"holds the hidden name `{name}`"


def wrong_operations(request: Request, body: Any, client: Client) -> Iterable[str]:
    """Hold the authorized operations in an answer against the specification."""
    if hasattr(body, "cluster_authorized_operations"):
        asked = getattr(request.body, "include_cluster_authorized_operations", False)
        allowed = client.may_cluster(Op.DESCRIBE)
        bits = client.bits(Type.CLUSTER, CLUSTER_NAME) if allowed else 0
        failed = hasattr(body, "error_code") and code(body) != 0
        failed |= request.api_key == 3 and any(code(topic) == INVALID_REQUEST for topic in body.topics)
        if body.cluster_authorized_operations != (bits if asked and not failed else NOT_ASKED):
            yield f"has cluster operations {body.cluster_authorized_operations}"
    flags = {3: "include_topic_authorized_operations", 15: "include_authorized_operations"}
    flags |= dict.fromkeys((69, 77), flags[15])
    kind = Type.TOPIC if request.api_key in {3, 75} else Type.GROUP
    items = getattr(body, "topics" if kind is Type.TOPIC else "groups", ())
    field = "topic_authorized_operations" if kind is Type.TOPIC else "authorized_operations"
    for item in items if request.api_key in {3, 15, 69, 75, 77} else ():
        if not hasattr(item, field):
            continue
        name = item.name if kind is Type.TOPIC else item.group_id
        asked = request.api_key == 75 or getattr(request.body, flags[request.api_key], False)
        # what is refused or unknown shows none; a missing topic shows them, a group in error does not
        shown = code(item) in {0, 3, 17} if kind is Type.TOPIC else code(item) == 0
        expected = client.bits(kind, str(name)) if asked and shown and name is not None else NOT_ASKED
        if getattr(item, field) != expected:
            yield f"has operations {getattr(item, field)} of `{name}`, should be {expected}"
