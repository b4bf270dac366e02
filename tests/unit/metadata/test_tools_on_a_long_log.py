"""The tools on a log of many segments, with snapshots and retention at work: what they tell stays true."""

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.metadata.directory.format import format_directory
from kustos.metadata.image import MetadataImage
from kustos.metadata.inspection.moments import Moment
from kustos.metadata.inspection.timeline import OutOfReachError, Timeline
from kustos.metadata.inspection.verification import verify
from kustos.metadata.log import LogPolicy
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage, SystemEntropy


@dataclass
class SteppingClock:
    """A clock that a test moves."""

    now_ms: int = 1_700_000_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


@dataclass
class Life:
    """What a store went through: each state with its time."""

    states: list[tuple[int, MetadataImage]] = field(default_factory=list)


SMALL = LogPolicy(
    segment_bytes=600,
    snapshot_record_bytes=1500,
    retention_bytes=1 << 30,
    retention_ms=-1,
    segment_ms=1 << 40,
)
FORGETFUL = LogPolicy(
    segment_bytes=600, snapshot_record_bytes=1500, retention_bytes=9000, retention_ms=-1, segment_ms=1 << 40
)


def binding(number: int) -> AclBinding:
    return AclBinding(
        ResourcePattern(ResourceType.TOPIC, f"t{number}", PatternType.LITERAL),
        AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW),
    )


def filter_of(number: int) -> AclBindingFilter:
    return AclBindingFilter(
        ResourcePatternFilter(ResourceType.TOPIC, f"t{number}", PatternType.LITERAL),
        AccessControlEntryFilter(),
    )


def lived(directory: Path, policy: LogPolicy) -> Life:
    """Make and take away ACLs over two starts; snapshots are written and old files deleted on the way."""
    clock, chance, life = SteppingClock(), random.Random(5), Life()
    format_directory(directory, acls=[binding(1000)], clock=clock)
    for _ in range(2):
        clock.now_ms += 1000
        store = MetadataStore.open(directory, clock=clock, entropy=SystemEntropy(), policy=policy)
        for _ in range(60):
            clock.now_ms += 1000
            number = chance.randrange(12)
            if binding(number) in store.image.acl_ids:
                store.delete_acls([filter_of(number)])
            else:
                store.create_acls([binding(number), binding(number + 100)])
            life.states.append((clock.now_ms, store.image))
            job = store.begin_snapshot()
            if job is not None:
                job.write()
                store.end_snapshot(job)
                store.clean()
        store.close()
    return life


@pytest.mark.parametrize("policy", [SMALL, FORGETFUL], ids=["all is kept", "old files go"])
def test_every_state_that_is_held_is_told_as_it_was(policy: LogPolicy, tmp_path: Path) -> None:
    life = lived(tmp_path / "meta", policy)
    found = verify([tmp_path / "meta"], FileSystemStorage())
    assert found.damage == []
    assert found.segments > 3
    assert found.compared_snapshots >= 2
    timeline = Timeline(tmp_path / "meta", FileSystemStorage())
    reached = timeline.beginnings[0]
    assert reached.is_first is (policy is SMALL)
    told = 0
    for time_ms, image in life.states:
        for moment in (Moment("then", offset=image.offset), Moment("then", time_ms=time_ms)):
            if image.offset + 1 >= reached.offset:
                assert timeline.state_at(moment).image.same_state(image)
                told += 1
            else:
                with pytest.raises(OutOfReachError):
                    timeline.state_at(moment)
    assert told >= 20
    there = dict(timeline.oldest().image.acls.items())
    for each in timeline.changes():
        change = each.change
        if type(change).__name__ == "AclAdded":
            there[change.id] = change.binding  # type: ignore[union-attr]
        elif type(change).__name__ == "AclRemoved":
            del there[change.id]  # type: ignore[union-attr]
    assert there == dict(life.states[-1][1].acls.items())
