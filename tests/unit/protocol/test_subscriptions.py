"""Subscriptions by regular expression: the topics that upstream gets instead, and their updates (KIP-848).

Expected values: `KafkaApis`, `TopicRegexResolver` and `GroupMetadataManager` of Kafka 4.3.1.
"""

import sys
from dataclasses import replace
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.protocol.quoted_patterns import shown_to_clients, shown_upstream
from kustos.protocol.subscriptions import BYTES_PER_CONNECTION, MATCHED_BYTES_MAX, MEMBERS_PER_CONNECTION
from kustos.protocol.topic_patterns import (
    PATTERN_CHARACTERS_MAX,
    PATTERNS_KEPT_MAX,
    UNICODE_CLASSES_MAX,
    ClusterTopics,
    TopicPattern,
)
from testkit.protocol.driver import HOST, PRINCIPAL, Driver
from testkit.protocol.random_requests import EXISTING
from tests.unit.protocol.protocol_requests import ALPHA, GROUP_NAME, ask, connection, forwarded, may

HEARTBEAT, DESCRIBE = 68, 69
LOADING, TOPIC_DENIED, GROUP_DENIED, UNSUPPORTED, INVALID_EXPRESSION = 14, 29, 30, 35, 128
BRAVO, HIDDEN, ONE, TWO = "bravo-topic", "hidden-gamma", "prefixed-one", "prefixed-two"
MEMBER = {"group_id": GROUP_NAME, "member_id": "member", "rebalance_timeout": 1000, "topic_partitions": []}
NOTHING = {"subscribed_topic_names": None, "subscribed_topic_regex": None}


def beat(driver: Driver, epoch: int = 1, **fields: Any) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the forwarded request, None for none, and the answer."""
    outcome, answer = ask(driver, HEARTBEAT, 1, **MEMBER, member_epoch=epoch, **{**NOTHING, **fields})
    return (forwarded(outcome) if outcome.forwarded else None), answer


def joined(*acls: Any, expression: str = ".*-topic", **fields: Any) -> tuple[Driver, dict[str, Any]]:
    """Return a connection whose member has joined, and its request to upstream."""
    driver = connection(may("READ", "GROUP"), *acls)
    sent, answer = beat(driver, 0, subscribed_topic_regex=expression, **fields)
    assert sent is not None
    assert answer["error_code"] == 0
    return driver, sent


@pytest.mark.behaviour("B157")
def test_upstream_gets_the_describable_topics_and_an_expression_without_matches() -> None:
    _, sent = joined(may("DESCRIBE"), may("READ", name=HIDDEN), expression=".*-(topic|gamma)")
    assert sent["subscribed_topic_names"] == [ALPHA, HIDDEN]
    assert sent["subscribed_topic_regex"] == r"/\Q.*-(topic|gamma)\E"


@pytest.mark.behaviour("B158")
def test_members_of_one_group_get_their_own_visible_topics() -> None:
    assert joined(may("DESCRIBE"))[1]["subscribed_topic_names"] == [ALPHA]
    assert joined(may("DESCRIBE", name=BRAVO))[1]["subscribed_topic_names"] == [BRAVO]


def test_an_expression_matches_the_whole_name() -> None:
    for expression, names in (("alpha", []), ("alpha.*", [ALPHA]), ("alpha-topic|nothing", [ALPHA])):
        assert joined(may("DESCRIBE"), expression=expression)[1]["subscribed_topic_names"] == names


def test_topics_named_in_addition_to_an_expression_need_rights() -> None:
    driver, sent = joined(may("DESCRIBE"), may("DESCRIBE", name=ONE), subscribed_topic_names=[ONE])
    assert sent["subscribed_topic_names"] == [ALPHA, ONE]
    assert sent["subscribed_topic_regex"] == rf"/\Q.*-topic\E|/{ONE}"
    sent_again, answer = beat(driver, 0, subscribed_topic_names=[HIDDEN], subscribed_topic_regex="x")
    assert (sent_again, answer["error_code"]) == (None, TOPIC_DENIED)


def test_an_expression_is_not_evaluated_without_a_right_on_the_group() -> None:
    sent, answer = beat(connection(may("DESCRIBE")), 0, subscribed_topic_regex="[")
    assert (sent, answer["error_code"]) == (None, GROUP_DENIED)


class TestLater:
    """Heartbeats without changes, as almost all are."""

    def test_no_topics_are_added_while_nothing_changed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        driver, _ = joined(may("DESCRIBE"))
        # nor is anything matched or decided
        monkeypatch.setattr(ClusterTopics, "known_matches", None)
        sent, _ = beat(driver)
        assert sent is not None
        assert (sent["subscribed_topic_names"], sent["subscribed_topic_regex"]) == (None, None)

    @pytest.mark.behaviour("B158")
    def test_a_granted_or_revoked_right_updates_the_topics(self) -> None:
        driver, _ = joined(may("DESCRIBE"))
        driver.replace_acls([may("READ", "GROUP"), may("DESCRIBE", name=BRAVO)])
        sent, _ = beat(driver)
        assert sent is not None
        assert sent["subscribed_topic_names"] == [BRAVO]
        assert sent["subscribed_topic_regex"] == r"/\Q.*-topic\E"
        sent, _ = beat(driver)
        assert sent is not None
        assert sent["subscribed_topic_names"] is None

    def test_an_unrelated_acl_change_does_not_update_the_topics(self) -> None:
        driver, _ = joined(may("DESCRIBE"))
        driver.replace_acls([may("READ", "GROUP"), may("DESCRIBE"), may("READ", name=ONE)])
        sent, _ = beat(driver)
        assert sent is not None
        assert sent["subscribed_topic_names"] is None

    def test_a_new_topic_updates_the_topics(self) -> None:
        driver, _ = joined(may("DESCRIBE", name="*"))
        driver.model.create("charlie-topic")
        sent, _ = beat(driver)
        assert sent is not None
        assert sent["subscribed_topic_names"] == [ALPHA, BRAVO, "charlie-topic", "delta-topic"]

    def test_explicit_topics_stay_with_the_expression(self) -> None:
        driver, _ = joined(may("DESCRIBE"), may("DESCRIBE", name=ONE), subscribed_topic_names=[ONE])
        driver.replace_acls([may("READ", "GROUP")])
        sent, _ = beat(driver)
        assert sent is not None
        # as in Kafka, which decides on named topics when they are named
        assert sent["subscribed_topic_names"] == [ONE]

    def test_explicit_topics_are_unchanged_without_an_expression(self) -> None:
        driver, _ = joined(may("DESCRIBE"), may("DESCRIBE", name=ONE), subscribed_topic_names=[ONE])
        sent, _ = beat(driver, subscribed_topic_regex="")
        assert sent is not None
        assert (sent["subscribed_topic_names"], sent["subscribed_topic_regex"]) == ([ONE], "")
        driver.replace_acls([may("READ", "GROUP"), may("DESCRIBE")])
        sent, _ = beat(driver)
        assert sent is not None
        assert sent["subscribed_topic_names"] is None


def beats(driver: Driver, epoch: int = 1, **fields: Any) -> tuple[list[int], dict[str, Any], dict[str, Any]]:
    """Return the API keys of the forwarded requests, the last request, and the answer."""
    outcome, answer = ask(driver, HEARTBEAT, 1, **MEMBER, member_epoch=epoch, **{**NOTHING, **fields})
    sent = [int.from_bytes(each[:2], "big") for each in outcome.forwarded]
    return sent, forwarded(outcome, -1) if sent else {}, answer


def reconnected(driver: Driver, *acls: Any) -> Driver:
    """Return another connection to the same cluster."""
    return Driver(driver.model, [may("READ", "GROUP"), *acls])


class TestUnknownMembers:
    """Members unknown to a connection, since their clients reconnected."""

    def test_a_member_without_an_expression_continues_on_every_connection(self) -> None:
        driver = connection(may("READ", "GROUP"), may("DESCRIBE"))
        beat(driver, 0, subscribed_topic_names=[ALPHA])
        for _ in range(3):
            driver = reconnected(driver, may("DESCRIBE"))
            sent, last, answer = beats(driver)
            assert (sent, answer["error_code"]) == ([DESCRIBE, HEARTBEAT], 0)
            assert (last["subscribed_topic_names"], last["subscribed_topic_regex"]) == (None, None)
        assert beats(driver)[0] == [HEARTBEAT], "the connection now knows the member"

    def test_an_expression_is_learned_and_sent_only_after_a_change(self) -> None:
        driver, _ = joined(may("DESCRIBE"), may("DESCRIBE", name=ONE), subscribed_topic_names=[ONE])
        again = reconnected(driver, may("DESCRIBE"), may("DESCRIBE", name=ONE))
        sent, last, _ = beats(again)
        assert sent == [DESCRIBE, HEARTBEAT]
        assert (last["subscribed_topic_names"], last["subscribed_topic_regex"]) == (None, None)
        again = reconnected(driver, may("DESCRIBE", name=BRAVO))
        sent, last, _ = beats(again)
        assert sent == [DESCRIBE, HEARTBEAT]
        assert last["subscribed_topic_names"] == [BRAVO, ONE]
        assert last["subscribed_topic_regex"] == rf"/\Q.*-topic\E|/{ONE}"
        assert beats(again)[1]["subscribed_topic_names"] is None

    def test_other_groups_of_the_client_update_the_topics(self) -> None:
        bravo = may("DESCRIBE", name=BRAVO)
        of_ops = replace(bravo, entry=replace(bravo.entry, principal="Group:ops"))
        driver, sent = joined(may("DESCRIBE"), of_ops)
        assert sent["subscribed_topic_names"] == [ALPHA]
        in_ops = replace(KafkaPrincipal.parse(PRINCIPAL), groups=("ops",))
        driver.guard.renew(driver.guard.context_of, driver.authorizer.session(in_ops, HOST))
        assert beats(driver)[1]["subscribed_topic_names"] == [ALPHA, BRAVO]
        driver.guard.renew(driver.guard.context_of, None)
        assert beats(driver)[1]["subscribed_topic_names"] is None

    def test_an_expression_resolved_by_upstream_is_replaced(self) -> None:
        driver = connection(may("READ", "GROUP"), may("DESCRIBE"))
        driver.model.subscribed[GROUP_NAME] = {"member": ([ONE], ".*-(topic|gamma)")}
        sent, last, answer = beats(driver)
        assert (sent, answer["error_code"]) == ([DESCRIBE, HEARTBEAT], 0)
        assert last["subscribed_topic_names"] == [ALPHA, ONE]
        assert last["subscribed_topic_regex"] == rf"/\Q.*-(topic|gamma)\E|/{ONE}"

    def test_an_upstream_expression_that_kustos_rejects_is_refused(self) -> None:
        driver = connection(may("READ", "GROUP"), may("DESCRIBE"))
        driver.model.subscribed[GROUP_NAME] = {"member": ([], "(ab|cd|ef|gh){400}")}
        sent, _, answer = beats(driver)
        assert (sent, answer["error_code"]) == ([DESCRIBE], INVALID_EXPRESSION)
        assert answer["error_message"].startswith("SubscribedTopicRegex is not a valid regular expression: ")

    def test_an_unknown_member_is_rejected_by_upstream(self) -> None:
        driver = connection(may("READ", "GROUP"))
        assert beats(driver)[0] == [DESCRIBE, HEARTBEAT]
        fields = {**MEMBER, "group_id": "no-group", "member_epoch": 1, **NOTHING}
        outcome, _ = ask(connection(may("READ", "GROUP", "no-group")), HEARTBEAT, 1, **fields)
        assert [int.from_bytes(each[:2], "big") for each in outcome.forwarded] == [DESCRIBE, HEARTBEAT]

    def test_a_join_without_a_subscription_is_rejected_by_upstream(self) -> None:
        driver, _ = joined(may("DESCRIBE"))
        driver.replace_acls([may("READ", "GROUP"), may("DESCRIBE", name=BRAVO)])
        for each in (driver, reconnected(driver)):
            sent, last, _ = beats(each, 0)
            assert (sent, last["subscribed_topic_names"]) == ([HEARTBEAT], None)

    @pytest.mark.parametrize("code", [LOADING, 16, UNSUPPORTED])
    def test_upstream_s_error_is_passed_on(self, code: int) -> None:
        driver = connection(may("READ", "GROUP"))
        driver.model.described_with = code
        sent, _, answer = beats(driver)
        assert (sent, answer["error_code"]) == ([DESCRIBE], code)

    def test_a_member_of_a_hidden_group_must_send_its_subscription_again(self) -> None:
        driver = connection(may("READ", "GROUP"), may("DESCRIBE"))
        driver.model.described_with = TOPIC_DENIED
        assert beats(driver)[2]["error_code"] == LOADING
        assert beats(driver, subscribed_topic_names=[ALPHA])[2]["error_code"] == 0
        assert beats(driver)[2]["error_code"] == 0

    def test_nothing_is_learned_without_a_right_on_the_group(self) -> None:
        sent, _, answer = beats(connection(may("DESCRIBE")))
        assert (sent, answer["error_code"]) == ([], GROUP_DENIED)

    def test_a_member_that_sent_its_subscription_is_known(self) -> None:
        driver = connection(may("READ", "GROUP"), may("DESCRIBE"))
        beat(driver, subscribed_topic_names=[ALPHA])
        assert beats(driver)[0] == [HEARTBEAT]

    def test_a_member_that_left_is_unknown(self) -> None:
        driver, _ = joined(may("DESCRIBE"))
        assert beat(driver, -1)[1]["error_code"] == 0
        assert beats(driver)[0] == [DESCRIBE, HEARTBEAT]

    def test_members_over_the_limit_are_evicted(self) -> None:
        driver, _ = joined(may("DESCRIBE"))
        for number in range(MEMBERS_PER_CONNECTION):
            fields = {**MEMBER, "member_id": f"other-{number}", "member_epoch": 0}
            ask(driver, HEARTBEAT, 1, **fields, subscribed_topic_names=[ALPHA], subscribed_topic_regex=None)
        assert beats(driver)[0] == [DESCRIBE, HEARTBEAT]

    def test_names_over_the_limit_are_evicted(self) -> None:
        driver, _ = joined(may("DESCRIBE"))
        names = [f"{'x' * 240}-{number}" for number in range(BYTES_PER_CONNECTION // 400)]
        driver.replace_acls([may("READ", "GROUP"), may("DESCRIBE", name="*")])
        fields = {**MEMBER, "member_id": "other", "member_epoch": 0}
        ask(driver, HEARTBEAT, 1, **fields, subscribed_topic_names=names, subscribed_topic_regex=None)
        assert beats(driver)[0] == [HEARTBEAT]
        more = [*names, *(f"{'y' * 240}-{number}" for number in range(len(names)))]
        ask(driver, HEARTBEAT, 1, **fields, subscribed_topic_names=more, subscribed_topic_regex=None)
        assert beats(driver)[0] == [DESCRIBE, HEARTBEAT]

    def test_version_0_has_no_expressions(self) -> None:
        driver = connection(may("READ", "GROUP"))
        outcome, _ = ask(driver, HEARTBEAT, 0, **MEMBER, member_epoch=1, subscribed_topic_names=None)
        assert outcome.forwarded


def test_the_expression_of_a_leaving_member_is_not_forwarded() -> None:
    driver, _ = joined(may("DESCRIBE"))
    sent, _ = beat(driver, -1, subscribed_topic_regex=".*")
    assert sent is not None
    assert sent["subscribed_topic_regex"] == ""


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("[", "missing ]: ["),
        ("a" * (PATTERN_CHARACTERS_MAX + 1), f"it is longer than {PATTERN_CHARACTERS_MAX} characters"),
        ("((a{20}){20}){20}", "invalid repetition size: {20}"),
        (r"(\pL|0){100}", "pattern too large"),
        (r"\pL\PN" * 9, f"it has more than {UNICODE_CLASSES_MAX} classes of Unicode characters"),
        ("(ab|cd|ef|gh){400}", "it repeats too much"),
    ],
)
def test_an_invalid_expression_is_reported(expression: str, why: str) -> None:
    driver = connection(may("READ", "GROUP"), may("DESCRIBE"))
    sent, answer = beat(driver, 0, subscribed_topic_regex=expression)
    assert (sent, answer["error_code"]) == (None, INVALID_EXPRESSION)
    assert (
        f"SubscribedTopicRegex `{expression}` is not a valid regular expression: " in answer["error_message"]
    )
    assert why in answer["error_message"]


def test_more_topics_than_upstream_can_keep_are_rejected() -> None:
    driver = connection(may("READ", "GROUP"), may("DESCRIBE", name="*"))
    for number in range(MATCHED_BYTES_MAX // 240):
        driver.model.create(f"{'x' * 240}-{number}")
    sent, answer = beat(driver, 0, subscribed_topic_regex=".*")
    assert (sent, answer["error_code"]) == (None, INVALID_EXPRESSION)


def test_the_version_is_unsupported_without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    sent, answer = beat(connection(may("READ", "GROUP")), 0, subscribed_topic_regex=".*")
    assert (sent, answer["error_code"]) == (None, UNSUPPORTED)


@pytest.mark.parametrize(
    "expression",
    [
        "a",
        "a|b",
        r"\Qa)|(",
        r"\Qa\E|b",
        "(?i)A|B",
        "a[)]|/b",
        r"/\Qx\E",
        r"a\\E",
        r"\\",
        r"\Q\E\Q|/b",
        "b|/c",
    ],
)
@pytest.mark.parametrize("names", [[], ["orders"], ["a.b", "c_d-E"], ["not a topic"]])
def test_clients_see_their_own_expression(expression: str, names: list[str]) -> None:
    pattern = TopicPattern.compile(expression)
    kept = shown_upstream(pattern.text, names)
    upstream = TopicPattern.compile(kept)
    assert not any(upstream.matches(name) for name in (*EXISTING, *names, "a", "b", "A", "", "|"))
    assert shown_to_clients(kept) == (expression, [name for name in names if " " not in name])


def test_expressions_of_others_are_shown_unchanged() -> None:
    assert shown_to_clients("orders-.*") is None
    assert shown_to_clients(r"/\Q") is None
    assert shown_to_clients(r"/\Qa\Eb") is None


def test_the_cache_of_expression_matches_is_limited() -> None:
    topics = ClusterTopics((ALPHA,))
    patterns = [TopicPattern.compile(f"a{number}") for number in range(PATTERNS_KEPT_MAX + 1)]
    for pattern in patterns:
        topics.keep_matches(pattern, ())
    assert topics.known_matches(patterns[0]) is None
    assert topics.known_matches(patterns[-1]) == ()
