"""Whose a line is: what the operator declared, else what its event says; never what a stranger claims."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.pipeline.errors import ConfigurationError
from kustos.pipeline.lines.clusters import DeclaredCluster, clusters_of
from kustos.pipeline.lines.line_columns import read_lines
from tests.pipeline.events import event_line, kafka_line, login_line


def whose(
    own: str | None, declared: str | None, name: str | None, ids: tuple[str, ...]
) -> tuple[str, str | None]:
    """Say it line by line: its cluster, and the reason to quarantine it."""
    declared = name if declared is None else declared
    if (own and not all(c.isascii() and (c.isalnum() or c in "_.:+-") for c in own)) or len(own or "") > 255:
        return declared or "", "cluster_malformed"
    if declared is None:
        return own or "", None
    if own and own != declared and own not in ids:
        return declared, f"cluster_mismatch: {own}"
    return declared, None


NAMES = st.sampled_from(["east", "west", "lkc-1"])
LINES = st.tuples(
    st.none() | NAMES | st.sampled_from(["", "no name", "x" * 256, "\u202eeast"]),
    st.none() | NAMES,
)


@given(st.lists(LINES, max_size=6), st.none() | NAMES, st.lists(NAMES, max_size=2).map(tuple))
def test_each_line_is_of_the_declared_cluster_or_of_its_own(
    lines: list[tuple[str | None, str | None]], name: str | None, ids: tuple[str, ...]
) -> None:
    own, declared = (pa.array([line[at] for line in lines], pa.string()) for at in (0, 1))
    clusters, reasons = clusters_of(own, declared, DeclaredCluster(name, ids))
    expected = [whose(*line, name, ids) for line in lines]
    assert clusters.to_pylist() == [cluster for cluster, _ in expected]
    assert (reasons or pa.nulls(len(lines))).to_pylist() == [reason for _, reason in expected]


def parsed(*lines: str, cluster: DeclaredCluster) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_pydict({"file": ["f"] * len(lines), "line": list(lines)})
    rows: list[dict[str, Any]] = read_lines(batch, cluster=cluster).to_pylist()
    return rows


def test_a_line_that_claims_another_cluster_is_no_event_at_all() -> None:
    lines = [event_line(1, cluster_id="west"), event_line(2, cluster_id="east"), event_line(3), kafka_line()]
    foreign, *own = parsed(*lines, login_line(1, cluster_id="east"), cluster=DeclaredCluster("east"))
    left = {name: value for name, value in foreign.items() if value is not None}
    reason = "cluster_mismatch: west"
    assert left == {
        "source_file": "f", "line": lines[0], "log": "f", "cluster": "east", "reason": reason,
    }  # fmt: skip
    assert [(row["cluster"], row["reason"]) for row in own] == [("east", None)] * 4
    assert [row["time_ms"] is None for row in own] == [False] * 4


def test_events_of_an_undeclared_input_name_their_clusters() -> None:
    lines = [event_line(1, cluster_id="west"), event_line(2, cluster_id="east"), event_line(3), kafka_line()]
    rows = parsed(*lines, cluster=DeclaredCluster())
    assert [row["cluster"] for row in rows] == ["west", "east", "", ""]
    assert [row["cluster_id"] for row in rows] == ["west", "east", None, None]


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="`no name` is not a name of a cluster"):
        DeclaredCluster("no name")
