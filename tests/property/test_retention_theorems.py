"""Theorems about retention: our one pass deletes what Kafka's two passes do, and never the state."""

from hypothesis import given
from hypothesis import strategies as st

from kustos.metadata.log.layout import SnapshotId
from kustos.metadata.log.policy import KeptSnapshot, LogPolicy, superfluous

NOW_MS = 1000
TIMES_MS = (0, 1, 499, 500, 501, 999, NOW_MS)
"""Few values, so that ages and limits are often equal."""
offsets = st.lists(st.integers(0, 60), unique=True, max_size=6).map(sorted)
sizes = st.integers(0, 5)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[KeptSnapshot], dict[int, int], LogPolicy]:
    """Draw snapshots with increasing end offsets and times, segments by base offset, and limits."""
    times = draw(st.lists(st.sampled_from(TIMES_MS), min_size=6, max_size=6).map(sorted))
    kept = [
        KeptSnapshot(SnapshotId(offset, 1), draw(sizes), time)
        for offset, time in zip(draw(offsets), times, strict=False)
    ]
    segments = {offset: draw(sizes) for offset in draw(offsets)}
    policy = LogPolicy(
        retention_bytes=draw(st.integers(-1, 30)), retention_ms=draw(st.sampled_from((-1, *TIMES_MS)))
    )
    return kept, segments, policy


def kafkas(
    kept: list[KeptSnapshot], segments: dict[int, int], policy: LogPolicy
) -> tuple[set[int], set[int]]:
    """Return the end offsets of snapshots and base offsets of segments that `KafkaMetadataLog` keeps."""
    left, log = list(kept), dict(segments)

    def total() -> int:
        return sum(each.size_bytes for each in left) + sum(log.values())

    def delete_before(following: KeptSnapshot) -> None:
        left.pop(0)
        for base in sorted(log):
            later = [other for other in log if other > base]
            # a segment reaches to the start of the next one; the last one is active
            if later and min(later) <= following.id.end_offset:
                del log[base]

    while len(left) > 1 and 0 <= policy.retention_bytes < total():
        delete_before(left[1])
    while len(left) > 1 and 0 <= policy.retention_ms < NOW_MS - left[0].last_contained_timestamp_ms:
        delete_before(left[1])
    return {each.id.end_offset for each in left}, set(log)


@given(worlds())
def test_what_goes_is_what_kafka_deletes(world: tuple[list[KeptSnapshot], dict[int, int], LogPolicy]) -> None:
    kept, segments, policy = world
    gone = superfluous(kept, segments, policy, NOW_MS)
    left = {each.id.end_offset for each in kept} - {each.end_offset for each in gone.snapshots}
    assert (left, set(segments) - set(gone.segments)) == kafkas(kept, segments, policy)


@given(worlds())
def test_the_newest_snapshot_and_what_follows_it_stay(
    world: tuple[list[KeptSnapshot], dict[int, int], LogPolicy],
) -> None:
    kept, segments, policy = world
    gone = superfluous(kept, segments, policy, NOW_MS)
    if kept:
        newest = kept[-1].id
        assert newest not in gone.snapshots
        needed = [base for base in segments if base <= newest.end_offset][-1:] or list(segments)[:1]
        assert not set(needed) & set(gone.segments)
    else:
        assert not gone.snapshots
        assert not gone.segments
    assert list(gone.segments) == sorted(gone.segments), "oldest first, so that a crash leaves no hole"
    assert set(gone.segments) == set(sorted(segments)[: len(gone.segments)])
