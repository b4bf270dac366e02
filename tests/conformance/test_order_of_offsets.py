"""OffsetFetch lists topics in a broker's order: those that it answers, then those that it refuses."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest

from kustos.wire import request_codec
from kustos.wire.api_keys import ApiKey
from testkit.equality.sides import Side
from testkit.equality.stories import message_of
from tests.conformance.equality.both_sides import BothSides, both_sides
from tests.conformance.equality.world import SOME

UNKNOWN_ID = b"\x77" * 16
TOPICS = ("orders", "pay-in", "hidden", "pay-secret")
"""Two that the user may describe, and two that it may not."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothSides]:
    with both_sides(tmp_path_factory.mktemp("order"), auto_create_topics=True) as (stage, _):
        yield stage


def listed(side: Side, api: ApiKey, version: int, names: tuple[str, ...]) -> list[tuple[Any, list[int]]]:
    """Return the topics of the answer with their errors; a name that the cluster does not have is an id."""
    ids = {name: side.topic_ids.get(name, UNKNOWN_ID) for name in names}
    inner = "partitions" if api == ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS else "partition_indexes"
    topics = [{"name": name, "topic_name": name, "topic_id": ids[name], inner: [0]} for name in names]
    groups = [{"group_id": "g-open", "topics": topics}]
    codec = request_codec(api, version)
    fields = {"group_id": "g-open", "topics": topics, "groups": groups, "require_stable": False}
    known = {name: given for name, given in fields.items() if name in codec.root.FIELDS}
    answer = side.ask(SOME, api, codec, message_of(codec.root, known, lambda value: value))
    assert answer is not None
    group = answer.groups[0] if "groups" in answer.FIELDS else answer
    names_of = {topic_id: name for name, topic_id in ids.items()}
    answered = [
        (
            topic.get("topic_name") or topic.get("name") or names_of[topic.topic_id],
            [each.error_code for each in topic.partitions],
        )
        for topic in group.topics
    ]
    if api == ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS:
        # the coordinator keeps described topics in a hash map by topic id, and each cluster draws its own ids
        refused = [topic for topic in answered if any(topic[1])]
        assert answered[len(answered) - len(refused) :] == refused
        return sorted(topic for topic in answered if topic not in refused) + refused
    return answered


@pytest.mark.parametrize(
    ("api", "version", "names"),
    [
        (ApiKey.OFFSET_FETCH, 1, TOPICS),
        (ApiKey.OFFSET_FETCH, 7, TOPICS),
        (ApiKey.OFFSET_FETCH, 9, TOPICS),
        (ApiKey.OFFSET_FETCH, 10, (*TOPICS[:3], "unknown")),
        (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, TOPICS),
    ],
)
def test_topics_are_listed_as_by_a_broker(
    stage: BothSides, api: ApiKey, version: int, names: tuple[str, ...]
) -> None:
    for order in permutations(names):
        reference, kustos = (listed(side, api, version, order) for side in stage.sides)
        assert kustos == reference
