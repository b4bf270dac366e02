"""A sample of allowed use: what is left out is counted, and what matters is never left out."""

from dataclasses import dataclass

import pytest

from kustos.acl import AclOperation
from kustos.authorizer import PASSED, ShadowDecision
from kustos.gateway.audit.sampling import FIRST_USE_MS, USES_MAX, AllowedSample
from kustos.protocol import Decided
from kustos.runtime import SystemEntropy
from testkit.gateway.audit import DENIED, context_of, decided

ALICE = context_of("alice")


@dataclass
class Drawn:
    """Entropy whose next numbers are known."""

    number: int = 1
    now_ms: int = 0

    def token_bytes(self, size: int) -> bytes:
        return self.number.to_bytes(size, "big")

    def monotonic_ms(self) -> int:
        return self.now_ms


def sample_of(drawn: Drawn, one_in: int = 10) -> AllowedSample:
    return AllowedSample(one_in, drawn.monotonic_ms, drawn)  # type: ignore[arg-type]


def test_the_first_use_of_an_hour_is_written_and_the_others_by_chance() -> None:
    drawn = Drawn()
    sample = sample_of(drawn)
    use = [decided("orders")]
    assert sample.choose(ALICE, use) == use
    assert sample.choose(ALICE, use) == []
    assert sample.choose(context_of("bob"), use) == use
    drawn.number = 20
    assert [item.sampled_one_in for item in sample.choose(ALICE, use)] == [10]
    drawn.number, drawn.now_ms = 1, FIRST_USE_MS
    assert sample.choose(ALICE, use) == use
    assert sample.left_out == 1


NEVER = {
    "a denial": decided("t", DENIED),
    "a listing that was denied": decided("t", DENIED)._replace(listing=True),
    "a denial in the shadow": decided("t", PASSED)._replace(shadow=ShadowDecision(DENIED)),
    "a difference of the candidate": decided("t")._replace(candidate=ShadowDecision(DENIED, acls_id="c")),
}


@pytest.mark.parametrize("what", NEVER)
def test_is_never_left_out(what: str) -> None:
    sample = sample_of(Drawn())
    for _ in range(3):
        assert sample.choose(ALICE, [NEVER[what]]) == [NEVER[what]]
    assert sample.left_out == 0


@pytest.mark.parametrize("operation", [each for each in AclOperation if each > AclOperation.ANY])
def test_changes_are_never_left_out(operation: AclOperation) -> None:
    sample = sample_of(Drawn())
    item = decided("t")
    item = item._replace(action=type(item.action)(item.action.resource_type, "t", operation))
    chosen = [sample.choose(ALICE, [item]) for _ in range(2)][1]
    reads = {"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS", "IDEMPOTENT_WRITE"}
    assert (chosen == []) is (operation.name in reads)


def test_a_candidate_without_answers_does_not_end_the_sampling() -> None:
    sample = sample_of(Drawn())
    item = decided("t")._replace(candidate=ShadowDecision(None, "NotLoaded"))
    assert [len(sample.choose(ALICE, [item])) for _ in range(2)] == [1, 0]


def test_all_is_written_unless_somebody_chose_otherwise() -> None:
    sample = AllowedSample(1, lambda: 0, SystemEntropy())
    items: list[Decided] = [decided("t")] * 3
    assert all(sample.choose(ALICE, items) is items for _ in range(3))


def test_beyond_the_known_uses_more_is_written_never_less() -> None:
    sample = sample_of(Drawn())
    many = [decided(f"topic-{number}") for number in range(USES_MAX)]
    assert len(sample.choose(ALICE, many)) == USES_MAX
    assert len(sample.choose(ALICE, [decided("topic-0")])) == 1


def test_about_one_in_so_many_is_drawn() -> None:
    sample = AllowedSample(4, lambda: 0, SystemEntropy())
    use = [decided("orders")]
    written = sum(len(sample.choose(ALICE, use)) for _ in range(4001)) - 1
    assert 700 < written < 1300
    assert written + sample.left_out == 4000
