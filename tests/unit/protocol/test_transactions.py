"""Transactions: the rights that each request needs, and the form of denials.

Expected values: the handlers of `KafkaApis`, Kafka 4.3.1.
"""

import sys
from dataclasses import dataclass
from typing import Any

import pytest

from kustos.acl import AclBinding
from kustos.protocol import Effect, GiveWay, Opened
from kustos.protocol.exchange import ITEMS_PER_TURN
from kustos.protocol.topic_patterns import PATTERN_CHARACTERS_MAX, TopicPattern
from testkit.protocol.cluster_model import PARTITIONS
from testkit.protocol.driver import Driver, Outcome
from testkit.protocol.random_requests import ALL_ALLOWED, batch, model
from tests.unit.protocol.protocol_requests import (
    ALPHA,
    GROUP_NAME,
    TRANSACTION,
    ask,
    connection,
    forwarded,
    may,
)

HIDDEN = "hidden-gamma"
NONE, TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TRANSACTION_DENIED = 0, 29, 30, 31, 53
UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC, NOT_ATTEMPTED = 3, 17, 55
FAILED = -1
PRODUCER = {"producer_id": 7, "producer_epoch": 0}


WRITES = may("WRITE", "TRANSACTIONAL_ID")


class TestInitProducerId:
    @pytest.mark.behaviour("B142", "B143")
    @pytest.mark.parametrize("version", [0, 4, 6])
    def test_a_transaction_needs_write_on_its_id(self, version: int) -> None:
        for acls, code in (
            ([WRITES], NONE),
            ([may("DESCRIBE", "TRANSACTIONAL_ID"), may("ALL"), may("ALL", "CLUSTER")], TRANSACTION_DENIED),
            ([may("WRITE", "TRANSACTIONAL_ID", "tx-two")], TRANSACTION_DENIED),
        ):
            outcome, answer = ask(connection(*acls), 22, version, transactional_id=TRANSACTION)
            assert answer["error_code"] == code
            assert len(outcome.forwarded) == (code == NONE)
            if code:
                assert (answer["producer_id"], answer["producer_epoch"]) == (-1, -1)

    @pytest.mark.behaviour("B169")
    @pytest.mark.parametrize(("acls", "code"), [([WRITES], TRANSACTION_DENIED), (ALL_ALLOWED, NONE)])
    def test_two_phase_commit_needs_its_own_right(self, acls: list[AclBinding], code: int) -> None:
        outcome, answer = ask(connection(*acls), 22, 6, transactional_id=TRANSACTION, enable2_pc=True)
        assert answer["error_code"] == code
        assert len(outcome.forwarded) == (code == NONE)


def written(records: bytes, name: str | None, version: int = 9, acks: int = -1) -> dict[str, Any]:
    data = [{"name": ALPHA, "partition_data": [{"index": 0, "records": records}]}]
    return {"acks": acks, "transactional_id": name, "topic_data": data}


TRANSACTIONAL = batch(transactional=True)


class TestProduce:
    @pytest.mark.behaviour("B143")
    @pytest.mark.parametrize("version", [3, 9, 12])
    @pytest.mark.parametrize("records", [TRANSACTIONAL, batch() + TRANSACTIONAL], ids=["first", "second"])
    @pytest.mark.parametrize(
        ("acls", "name", "code"),
        [
            ([WRITES, may("WRITE")], TRANSACTION, NONE),
            ([WRITES], TRANSACTION, TOPIC_DENIED),
            ([may("WRITE")], TRANSACTION, TRANSACTION_DENIED),
            (ALL_ALLOWED, None, TRANSACTION_DENIED),
        ],
    )
    def test_transactional_records_need_rights_on_the_id_and_the_topic(
        self, acls: list[AclBinding], name: str | None, code: int, records: bytes, version: int
    ) -> None:
        outcome, answer = ask(connection(*acls), 0, version, **written(records, name))
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == code
        assert len(outcome.forwarded) == (code == NONE)

    def test_an_id_without_transactional_records_is_not_decided(self) -> None:
        outcome, answer = ask(connection(may("WRITE")), 0, 9, **written(batch(), TRANSACTION))
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == NONE
        assert outcome.opened is not None
        assert [str(each.action.resource_type.name) for each in outcome.opened.exchange.granted] == ["TOPIC"]

    def test_a_denied_transaction_without_acks_closes_the_connection(self) -> None:
        outcome, _ = ask(connection(may("WRITE")), 0, 9, **written(TRANSACTIONAL, TRANSACTION, acks=0))
        assert outcome.closed is not None
        assert (outcome.response, outcome.forwarded) == (None, [])


def added(version: int, topics: dict[str, list[int]], name: str = TRANSACTION) -> dict[str, Any]:
    named = [{"name": topic, "partitions": indexes} for topic, indexes in topics.items()]
    if version >= 4:
        return {"transactions": [{"transactional_id": name, "topics": named, **PRODUCER}]}
    producer = {f"v3_and_below_{field}": value for field, value in PRODUCER.items()}
    return {"v3_and_below_transactional_id": name, "v3_and_below_topics": named, **producer}


def codes(answer: dict[str, Any]) -> dict[str, list[int]]:
    return {
        topic["name"]: [each["partition_error_code"] for each in topic["results_by_partition"]]
        for topic in answer["results_by_topic_v3_and_below"]
    }


class TestAddPartitions:
    @pytest.mark.behaviour("B166")
    @pytest.mark.parametrize("version", [0, 2, 3])
    def test_a_denied_id_fails_every_partition(self, version: int) -> None:
        fields = added(version, {ALPHA: [0, 1], HIDDEN: [0]})
        outcome, answer = ask(connection(may("WRITE")), 24, version, **fields)
        assert codes(answer) == {ALPHA: [TRANSACTION_DENIED] * 2, HIDDEN: [TRANSACTION_DENIED]}
        assert outcome.forwarded == []

    @pytest.mark.behaviour("B166", "B145")
    @pytest.mark.parametrize("version", [0, 3])
    def test_one_denied_topic_fails_the_whole_request(self, version: int) -> None:
        asked = {ALPHA: [0, PARTITIONS, -1], HIDDEN: [0, 5], "missing-topic": [0]}
        rights = [WRITES, may("WRITE"), may("WRITE", name="missing-topic")]
        outcome, answer = ask(connection(*rights), 24, version, **added(version, asked))
        assert codes(answer) == {
            ALPHA: [NOT_ATTEMPTED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_OR_PARTITION],
            HIDDEN: [TOPIC_DENIED] * 2,
            "missing-topic": [UNKNOWN_TOPIC_OR_PARTITION],
        }
        assert outcome.forwarded == []
        # the transaction is as it was, and can be ended
        assert ask(connection(*rights), 26, 3, transactional_id=TRANSACTION, **PRODUCER)[1]["error_code"] == 0

    @pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
    def test_internal_topics_are_denied_without_a_decision(self, name: str) -> None:
        outcome, answer = ask(connection(*ALL_ALLOWED), 24, 3, **added(3, {name: [0], ALPHA: [0]}))
        assert codes(answer) == {name: [TOPIC_DENIED], ALPHA: [NOT_ATTEMPTED]}
        assert outcome.forwarded == []
        assert outcome.opened is not None
        assert name not in [each.name for each in outcome.opened.exchange.decided]

    @pytest.mark.parametrize("version", [0, 3])
    def test_an_allowed_request_is_forwarded_complete(self, version: int) -> None:
        fields = added(version, {ALPHA: [0, 1], HIDDEN: []})
        outcome, answer = ask(connection(WRITES, may("WRITE")), 24, version, **fields)
        assert len(outcome.forwarded) == 1
        assert codes(answer) == {ALPHA: [NONE, NONE], HIDDEN: []}

    @pytest.mark.parametrize("version", [4, 5])
    def test_broker_batches_need_the_right_on_the_cluster(self, version: int) -> None:
        fields = added(version, {HIDDEN: [0]})
        others = [may("ALL"), may("ALL", "TRANSACTIONAL_ID"), may("ALTER", "CLUSTER")]
        outcome, answer = ask(connection(*others), 24, version, **fields)
        assert (answer["error_code"], answer["results_by_transaction"]) == (CLUSTER_DENIED, [])
        assert outcome.forwarded == []
        outcome, answer = ask(connection(may("CLUSTER_ACTION", "CLUSTER")), 24, version, **fields)
        assert (answer["error_code"], len(outcome.forwarded)) == (NONE, 1)

    def test_every_partition_fails_before_the_acls_are_loaded(self) -> None:
        _, answer = ask(connection(ready=False), 24, 3, **added(3, {ALPHA: [0], HIDDEN: [1]}))
        assert codes(answer) == {ALPHA: [FAILED], HIDDEN: [FAILED]}


READS_GROUP = may("READ", "GROUP")


class TestOffsets:
    @pytest.mark.behaviour("B144")
    @pytest.mark.parametrize("version", [0, 4])
    @pytest.mark.parametrize(
        ("acls", "code"),
        [
            ([WRITES, READS_GROUP], NONE),
            ([WRITES, may("DESCRIBE", "GROUP")], GROUP_DENIED),
            ([READS_GROUP], TRANSACTION_DENIED),
        ],
    )
    def test_adding_offsets_needs_the_id_and_the_group(
        self, acls: list[AclBinding], code: int, version: int
    ) -> None:
        fields = {"transactional_id": TRANSACTION, "group_id": GROUP_NAME, **PRODUCER}
        outcome, answer = ask(connection(*acls), 25, version, **fields)
        assert answer["error_code"] == code
        assert len(outcome.forwarded) == (code == NONE)

    @pytest.mark.behaviour("B144")
    @pytest.mark.parametrize("version", [0, 3, 5])
    @pytest.mark.parametrize(
        ("acls", "expected"),
        [
            ([WRITES, READS_GROUP, may("READ")], {ALPHA: NONE, HIDDEN: TOPIC_DENIED}),
            ([WRITES, READS_GROUP], {ALPHA: TOPIC_DENIED, HIDDEN: TOPIC_DENIED}),
            ([WRITES, may("READ")], {ALPHA: GROUP_DENIED, HIDDEN: GROUP_DENIED}),
            ([READS_GROUP, may("READ")], {ALPHA: TRANSACTION_DENIED, HIDDEN: TRANSACTION_DENIED}),
        ],
    )
    def test_committing_offsets_needs_the_id_the_group_and_the_topic(
        self, acls: list[AclBinding], expected: dict[str, int], version: int
    ) -> None:
        partitions = [{"partition_index": 0, "committed_offset": 1}]
        topics = [{"name": name, "partitions": partitions} for name in (ALPHA, HIDDEN)]
        fields = {"transactional_id": TRANSACTION, "group_id": GROUP_NAME, "topics": topics, **PRODUCER}
        outcome, answer = ask(connection(*acls), 28, version, **fields)
        reported = {topic["name"]: topic["partitions"][0]["error_code"] for topic in answer["topics"]}
        assert reported == expected
        kept = [topic["name"] for topic in forwarded(outcome)["topics"]] if outcome.forwarded else []
        assert kept == [name for name, code in expected.items() if code == NONE]


class TestEnds:
    @pytest.mark.behaviour("B143")
    @pytest.mark.parametrize("version", [0, 5])
    def test_ending_needs_the_id(self, version: int) -> None:
        fields = {"transactional_id": TRANSACTION, "committed": True, **PRODUCER}
        for acls, code in (([WRITES], NONE), ([may("DESCRIBE", "TRANSACTIONAL_ID")], TRANSACTION_DENIED)):
            outcome, answer = ask(connection(*acls), 26, version, **fields)
            assert answer["error_code"] == code
            assert len(outcome.forwarded) == (code == NONE)

    @pytest.mark.behaviour("B165")
    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.parametrize(
        ("right", "asked"),
        [
            (None, ["ALTER", "CLUSTER_ACTION"]),
            ("CLUSTER_ACTION", ["ALTER", "CLUSTER_ACTION"]),
            ("ALTER", ["ALTER"]),
        ],
    )
    def test_markers_need_alter_or_cluster_action_on_the_cluster(
        self, right: str | None, asked: list[str], version: int
    ) -> None:
        topics = [{"name": ALPHA, "partition_indexes": [0, 1]}]
        fields = {"markers": [{"transaction_result": True, "topics": topics, **PRODUCER}]}
        driver = connection(*([] if right is None else [may(right, "CLUSTER")]))
        outcome, answer = ask(driver, 27, version, **fields)
        if right is None:
            assert outcome.forwarded == []
            [marker] = answer["markers"]
            assert marker["producer_id"] == PRODUCER["producer_id"]
            reported = [each["error_code"] for topic in marker["topics"] for each in topic["partitions"]]
            assert reported == [CLUSTER_DENIED] * 2
        else:
            assert len(outcome.forwarded) == 1
        assert outcome.opened is not None
        decided = outcome.opened.exchange.decided
        assert [each.action.operation.name for each in decided] == asked
        assert [each.is_probe for each in decided] == [
            each.action.operation.name == "ALTER" and right != "ALTER" for each in decided
        ]


DESCRIBES = may("DESCRIBE", "TRANSACTIONAL_ID")


class TestDescriptions:
    @pytest.mark.behaviour("B151")
    def test_hidden_topics_are_omitted(self) -> None:
        # the model's first transaction is in `delta-topic` and `hidden-gamma`
        described = may("DESCRIBE", name="delta-topic")
        outcome, answer = ask(connection(DESCRIBES, described), 65, 0, transactional_ids=[TRANSACTION])
        [state] = answer["transaction_states"]
        assert [topic["topic"] for topic in state["topics"]] == ["delta-topic"]
        assert outcome.response is not None
        assert HIDDEN.encode() not in outcome.response
        _, answer = ask(connection(*ALL_ALLOWED), 65, 0, transactional_ids=[TRANSACTION])
        assert len(answer["transaction_states"][0]["topics"]) == 2

    def test_describing_transactions_needs_describe(self) -> None:
        asked = ["tx-two", TRANSACTION]
        outcome, answer = ask(connection(DESCRIBES), 65, 0, transactional_ids=asked)
        reported = [
            (state["transactional_id"], state["error_code"]) for state in answer["transaction_states"]
        ]
        assert reported == [("tx-two", TRANSACTION_DENIED), (TRANSACTION, NONE)]
        assert forwarded(outcome)["transactional_ids"] == [TRANSACTION]

    @pytest.mark.behaviour("B150")
    @pytest.mark.parametrize("version", [0, 1, 2])
    def test_listed_transactions_are_limited_to_describable_ones(self, version: int) -> None:
        for acls, names in (([DESCRIBES], [TRANSACTION]), ([], []), (ALL_ALLOWED, [TRANSACTION, "tx-two"])):
            _, answer = ask(connection(*acls), 66, version, state_filters=[], producer_id_filters=[])
            assert [state["transactional_id"] for state in answer["transaction_states"]] == names

    def test_describing_producers_needs_read(self) -> None:
        names = (ALPHA, HIDDEN, "no/name", "", ".", "x" * 250, "é")
        asked = [{"name": name, "partition_indexes": [0, 1]} for name in names]
        rights = [may("READ"), may("DESCRIBE", name=HIDDEN)]
        outcome, answer = ask(connection(*rights), 61, 0, topics=asked)
        reported = {
            topic["name"]: {(each["error_code"], each["error_message"]) for each in topic["partitions"]}
            for topic in answer["topics"]
        }
        assert reported.pop(ALPHA) == {(NONE, None)}
        assert reported.pop(HIDDEN) == {(TOPIC_DENIED, "Topic authorization failed.")}
        assert {code for each in reported.values() for code, _ in each} == {INVALID_TOPIC}
        assert reported["."] == {(INVALID_TOPIC, "Topic name is invalid: '.' is not allowed")}
        assert [topic["name"] for topic in forwarded(outcome)["topics"]] == [ALPHA]


ENDLESS = "(?i)[a-\u212a]"
"""Kafka's RE2/J 1.8 never terminates on this expression (google/re2j#168)."""
UNSUPPORTED, INVALID_EXPRESSION = 35, 128
LISTS_ALL = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}


def listed(
    pattern: str | None, *acls: AclBinding, also: tuple[str, ...] = ()
) -> tuple[Outcome, list[str], int]:
    """Return the outcome of a ListTransactions, the ids in its answer, and its error code."""
    driver = connection(*acls)
    driver.model.transactions |= {name: [] for name in also}
    outcome, answer = ask(driver, 66, 2, **LISTS_ALL, transactional_id_pattern=pattern)
    ids = [state["transactional_id"] for state in answer["transaction_states"]]
    return outcome, ids, answer["error_code"]


class TestLists:
    """ListTransactions by a pattern (KIP-1152), which any client may send."""

    @pytest.mark.parametrize(
        ("pattern", "shown"),
        [
            ("tx-.*", ["tx-one", "tx-two"]),
            ("tx-(two|three)", ["tx-two"]),
            ("tx", []),
            (ENDLESS, ["K"]),
            ("[", None),
            ("a" * (PATTERN_CHARACTERS_MAX + 1), None),
        ],
    )
    def test_the_pattern_is_not_forwarded(self, pattern: str, shown: list[str] | None) -> None:
        outcome, ids, code = listed(pattern, *ALL_ALLOWED, also=("K",))
        if shown is None:
            assert (ids, code, outcome.forwarded) == ([], INVALID_EXPRESSION, [])
        else:
            assert (ids, code) == (shown, NONE)
            assert forwarded(outcome)["transactional_id_pattern"] == ""

    @pytest.mark.parametrize("pattern", [None, ""])
    def test_a_request_without_a_pattern_is_forwarded_unchanged(self, pattern: str | None) -> None:
        outcome, ids, code = listed(pattern, *ALL_ALLOWED)
        assert (ids, code) == (["tx-one", "tx-two"], NONE)
        assert forwarded(outcome)["transactional_id_pattern"] == pattern

    def test_only_matching_ids_are_decided_and_only_allowed_ids_are_shown(self) -> None:
        outcome, ids, _ = listed("tx-.*", DESCRIBES, also=("other",))
        assert ids == [TRANSACTION]
        assert outcome.opened is not None
        decided = outcome.opened.exchange.decided
        assert [each.name for each in decided] == ["tx-one", "tx-two"]

    def test_a_pattern_is_unsupported_without_re2(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "re2", None)
        outcome, _, code = listed(".*", *ALL_ALLOWED)
        assert (outcome.forwarded, code) == ([], UNSUPPORTED)
        assert listed("", *ALL_ALLOWED)[2] == NONE

    def test_an_id_that_would_exceed_a_turn_is_omitted(self) -> None:
        """The writer of a transaction chooses its id, of 32,767 bytes at most."""
        long = "t" * 32_000
        assert listed("t*", *ALL_ALLOWED, also=(long,))[1] == [long]
        assert listed("t*(one|two|three|four|five|six)?", *ALL_ALLOWED, also=(long, "tt"))[1] == ["tt"]

    def test_the_largest_expression_still_matches_short_ids(self) -> None:
        largest = f"{TRANSACTION}|(abcd|efgh){{248}}aaaaaa"
        assert TopicPattern.compile(largest).cost > ITEMS_PER_TURN
        assert listed(largest, *ALL_ALLOWED)[1] == [TRANSACTION]

    def test_matching_yields_by_the_length_of_the_ids(self) -> None:
        driver = TurnCounter(model(), ALL_ALLOWED)
        ids = [f"{'t' * 10_000}{number}" for number in range(40)]
        driver.model.transactions = {name: [] for name in ids}
        ask(driver, 66, 2, **LISTS_ALL, transactional_id_pattern="nothing")
        pattern = TopicPattern.compile("nothing")
        assert driver.turns > sum(map(pattern.cost_of, ids)) // ITEMS_PER_TURN > 1


@dataclass
class TurnCounter(Driver):
    """A connection that counts how often its requests give way to others."""

    turns: int = 0

    def _perform(self, opened: Opened, effect: Effect, outcome: Outcome) -> Any:
        self.turns += isinstance(effect, GiveWay)
        return super()._perform(opened, effect, outcome)
