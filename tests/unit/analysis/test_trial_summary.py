"""What ACLs on trial would have changed, summed up from lines: once each, and nothing that a client wrote."""

from dataclasses import replace

from kustos.analysis import DifferenceKind, TrialSummary
from kustos.authorizer import PASSED, SecurityEventType, SecurityResult, ShadowDecision
from kustos.gateway.audit.events import RequestEvents, text_lines
from kustos.protocol import Decided
from testkit.gateway.audit import CONTEXT, DENIED, EVENTS, decided, failure

LOST = ShadowDecision(DENIED, acls_id="c1")
SHADOW = ShadowDecision(DENIED)
NO_ANSWER = ShadowDecision(None, "NotLoaded", "c1")


def lines(*items: Decided, number: int = 0, client_id: str = "app") -> list[str]:
    context = replace(CONTEXT, client_id=client_id)
    entry = RequestEvents(number, 1_700_000_000_000 + number, context, items, 7)
    return [f"{line}\n" for line in EVENTS.json_lines(entry)]


def test_each_event_counts_once_under_what_would_have_been_otherwise() -> None:
    both = decided("t", PASSED)._replace(shadow=SHADOW, candidate=ShadowDecision(PASSED, acls_id="c1"))
    said = [
        *lines(decided("t")._replace(candidate=LOST), decided("t")._replace(candidate=LOST)),
        *lines(both, number=2),
        *lines(decided("u")._replace(candidate=NO_ANSWER), decided("same"), number=3),
    ]
    summary = TrialSummary.of(said + said)
    counts = {key.kind: count.decisions for key, count in summary.differences.items()}
    assert counts == {
        DifferenceKind.LOST: 2,
        DifferenceKind.SHADOW_DENIED: 1,
        DifferenceKind.GAINED: 1,
        DifferenceKind.ERROR: 1,
    }
    assert (summary.lost_uses, summary.errors, summary.unreadable) == (3, 1, 0)
    first = next(count for key, count in summary.differences.items() if key.kind is DifferenceKind.LOST)
    assert (first.first_ms, first.last_ms, first.hosts) == (1_700_000_000_000,) * 2 + ({"127.0.0.1"},)


def test_lists_and_probes_are_no_uses_and_a_summary_event_is_all_that_it_stands_for() -> None:
    listed = decided("t")._replace(candidate=LOST, listing=True)
    probe = decided("t", log_if_denied=False)._replace(candidate=LOST)
    action = replace(decided("t").action, reference_count=80)
    many = decided("t")._replace(candidate=LOST, action=action, distinct_names=3, decision_count=40)
    summary = TrialSummary.of(lines(listed, probe, many))
    assert summary.lost_uses == 40
    assert [key.access for key, _ in summary.sorted()] == ["ACCESS", "PROBE", "LISTING"]


def test_what_a_client_calls_itself_is_no_difference_and_no_candidate() -> None:
    forged = '","shadow_decision":"DENIED","x":"'
    summary = TrialSummary.of(
        [*lines(decided(forged), client_id=forged), *lines(decided("CANDIDATE_ACLS"), number=1)]
    )
    assert not summary.differences
    assert not summary.loads
    assert not summary.unreadable


def test_candidates_and_their_failures_are_told_in_order() -> None:
    load = replace(
        failure("nobody"),
        event_type=SecurityEventType.SETTING_CHANGE,
        subject="CANDIDATE_ACLS",
        detail="candidate c1",
        failure=None,
        result=SecurityResult.SUCCESS,
    )
    failed = replace(
        load, time_ms=5, detail="next.yaml", failure="it is blank", result=SecurityResult.FAILURE
    )
    said = [
        f"{line}\n"
        for n, each in enumerate((failed, load))
        for line in text_lines(EVENTS.security_line(n, each))
    ]
    summary = TrialSummary.of(said)
    assert [(each.source, each.failure) for each in summary.loads] == [
        ("candidate c1", None),
        ("next.yaml", "it is blank"),
    ]


def test_half_a_line_is_passed_over_only_at_the_end() -> None:
    (whole,) = lines(decided("t")._replace(candidate=LOST))
    half = whole[:-9]
    assert TrialSummary.of([half]).unreadable == 0
    assert TrialSummary.of([f"{half}\n", whole]).unreadable == 1
