"""Streams groups: no forwarded heartbeat makes upstream create topics without the user's right (KIP-1071).

Expected values: `KafkaApis.handleStreamsGroupHeartbeat` of Kafka 4.3.1.
"""

from typing import Any

import pytest

from kustos.protocol.subscriptions import MEMBERS_PER_CONNECTION
from testkit.protocol.driver import Driver, Outcome
from tests.unit.protocol.protocol_requests import ALPHA, GROUP_NAME, ask, connection, forwarded, may

HEARTBEAT, DESCRIBE = 88, 89
TOPIC_DENIED, GROUP_DENIED, INVALID_REQUEST, INVALID_TOPOLOGY = 29, 30, 42, 130
CHANGELOG, REPARTITION = "app-counts-changelog", "app-words-repartition"
MEMBER = {"group_id": GROUP_NAME, "member_id": "member", "rebalance_timeout": 1000}
SOURCE = (may("READ", "GROUP"), may("DESCRIBE"))
SEEN = (*SOURCE, may("DESCRIBE", name=CHANGELOG), may("DESCRIBE", name=REPARTITION))
CREATES = (may("CREATE", name=CHANGELOG), may("CREATE", name=REPARTITION))


def topology(*sources: str, makes: tuple[str, ...] = (CHANGELOG, REPARTITION)) -> dict[str, Any]:
    """Return a topology that reads topics, and keeps a changelog and repartitions."""
    part: dict[str, Any] = {"subtopology_id": "0", "source_topics": list(sources)}
    for name in makes:
        kind = "repartition_source_topics" if name.endswith("repartition") else "state_changelog_topics"
        part[kind] = [{"name": name, "partitions": 0, "replication_factor": 0, "topic_configs": []}]
    return {"epoch": 0, "subtopologies": [part]}


def beat(driver: Driver, epoch: int = 1, **fields: Any) -> tuple[Outcome, dict[str, Any], bool]:
    """Return the outcome of a heartbeat, its answer, and whether it was forwarded."""
    outcome, answer = ask(driver, HEARTBEAT, 0, **MEMBER, member_epoch=epoch, **fields)
    passed = any(frame[:2] == HEARTBEAT.to_bytes(2, "big") for frame in outcome.forwarded)
    return outcome, answer, passed


def join(driver: Driver, *sources: str) -> tuple[dict[str, Any], bool]:
    """Return the answer to a joining member, and whether the request was forwarded."""
    return beat(driver, 0, topology=topology(*(sources or (ALPHA,))))[1:]


def asked_for(outcome: Outcome) -> int:
    """Return how often the group was queried from upstream."""
    return sum(frame[:2] == DESCRIBE.to_bytes(2, "big") for frame in outcome.forwarded)


class TestJoining:
    """Heartbeats with a topology."""

    @pytest.mark.behaviour("B163")
    def test_the_group_and_every_topic_need_rights(self) -> None:
        assert join(connection(*SEEN[1:], *CREATES))[0]["error_code"] == GROUP_DENIED
        for hidden in SEEN[1:]:
            answer, passed = join(connection(*(acl for acl in SEEN if acl != hidden)))
            assert (answer["error_code"], passed) == (TOPIC_DENIED, False)
            assert answer["error_message"] is None

    def test_a_member_with_create_on_missing_topics_joins(self) -> None:
        for rights in (CREATES, (may("CREATE", "CLUSTER"),)):
            answer, passed = join(connection(*SEEN, *rights))
            assert (answer["error_code"], passed) == (0, True)

    @pytest.mark.behaviour("B163")
    def test_a_member_without_create_on_missing_topics_does_not_join(self) -> None:
        for missing, name in zip(CREATES, (CHANGELOG, REPARTITION), strict=True):
            driver = connection(*SEEN, *(acl for acl in CREATES if acl != missing))
            answer, passed = join(driver)
            assert (answer["error_code"], passed) == (TOPIC_DENIED, False)
            assert answer["error_message"] == f"Unauthorized to CREATE on topics {name}."

    def test_existing_topics_need_no_create(self) -> None:
        driver = connection(*SEEN)
        driver.model.create(CHANGELOG)
        driver.model.create(REPARTITION)
        assert join(driver)[1]

    def test_the_topology_of_the_group_applies(self) -> None:
        driver = connection(*SEEN, *CREATES)
        driver.model.made_by_streams[GROUP_NAME] = ["others-changelog"]
        answer, passed = join(driver)
        assert (answer["error_code"], passed) == (TOPIC_DENIED, False)
        assert answer["error_message"] == "Unauthorized to CREATE on topics others-changelog."

    @pytest.mark.parametrize("epoch", [0, 1, -1])
    def test_topic_expressions_are_not_forwarded(self, epoch: int) -> None:
        """Brokers do not read them yet; kustos rejects them before a broker compiles a user's expression."""
        driver = connection(*SEEN, *CREATES)
        of = topology(ALPHA)
        of["subtopologies"].append({"subtopology_id": "1", "source_topics": [], "source_topic_regex": [".*"]})
        outcome, answer, _ = beat(driver, epoch, topology=of)
        assert (answer["error_code"], outcome.forwarded) == (INVALID_REQUEST, [])
        assert answer["error_message"] == "Regular expressions for source topics are not supported yet."

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("__consumer_offsets", "Use of Kafka internal topics __consumer_offsets in a Kafka Streams"),
            ("a b", "Topic names a b are not valid"),
            ("..", "Topic names .. are not valid"),
            ("x" * 250, "are not valid"),
            ("", "Topic names  are not valid"),
        ],
    )
    def test_invalid_topology_names_are_reported_before_topics_are_decided(self, name: str, why: str) -> None:
        answer, passed = join(connection(may("READ", "GROUP")), name)
        assert (answer["error_code"], passed) == (INVALID_TOPOLOGY, False)
        assert why in answer["error_message"]


class TestLater:
    """Heartbeats without a topology, as almost all are."""

    def test_the_group_is_queried_from_upstream_once(self) -> None:
        driver = connection(*SEEN, *CREATES)
        join(driver)
        outcome, _, passed = beat(driver)
        assert (asked_for(outcome), passed) == (0, True)

    def test_a_revoked_create_right_applies_once_a_topic_is_missing(self) -> None:
        driver = connection(*SEEN, *CREATES)
        join(driver)
        driver.model.create(CHANGELOG)
        driver.model.create(REPARTITION)
        driver.replace_acls(list(SEEN))
        assert beat(driver)[2]
        del driver.model.topics[CHANGELOG]
        _, answer, passed = beat(driver)
        assert (answer["error_code"], passed) == (TOPIC_DENIED, False)

    def test_a_reconnected_member_is_looked_up(self) -> None:
        driver = connection(*SOURCE)
        driver.model.made_by_streams[GROUP_NAME] = [CHANGELOG]
        outcome, answer, passed = beat(driver)
        assert (answer["error_code"], asked_for(outcome), passed) == (TOPIC_DENIED, 1, False)

    def test_members_over_the_limit_are_evicted(self) -> None:
        driver = connection(*SEEN, *CREATES)
        join(driver)
        for number in range(MEMBERS_PER_CONNECTION):
            member = {**MEMBER, "member_id": f"other-{number}", "member_epoch": 1}
            ask(driver, HEARTBEAT, 0, **member)
        assert asked_for(beat(driver)[0]) == 1

    def test_a_leaving_member_creates_no_topic(self) -> None:
        driver = connection(may("READ", "GROUP"))
        driver.model.made_by_streams[GROUP_NAME] = [CHANGELOG]
        outcome, _, passed = beat(driver, -1)
        assert (asked_for(outcome), passed) == (0, True)


def test_the_upstream_query_names_only_the_group() -> None:
    driver = connection(*SOURCE)
    outcome, _, _ = beat(driver)
    assert forwarded(outcome)["group_ids"] == [GROUP_NAME]


@pytest.mark.behaviour("B164", "B175")
def test_a_group_with_a_hidden_topic_is_not_described() -> None:
    driver = connection(may("DESCRIBE", "GROUP"), may("DESCRIBE"))
    driver.model.groups[GROUP_NAME] = [ALPHA]
    _, answer = ask(driver, DESCRIBE, 0, group_ids=[GROUP_NAME, "group-nobody"])
    assert [group["error_code"] for group in answer["groups"]] == [0, GROUP_DENIED]
    driver.model.made_by_streams[GROUP_NAME] = [CHANGELOG]
    _, answer = ask(driver, DESCRIBE, 0, group_ids=[GROUP_NAME])
    [group] = answer["groups"]
    assert (group["error_code"], group["topology"], group["members"]) == (TOPIC_DENIED, None, [])
