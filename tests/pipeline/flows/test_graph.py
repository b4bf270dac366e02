"""Edges, vertices and paths, against plain Python and DuckDB; exports, read back by other programs."""

import json
import shutil
import subprocess
from collections import defaultdict
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

import duckdb
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kustos.pipeline.errors import ReviewError
from kustos.pipeline.flows.export import EDGES_MAX, collected, to_dot, to_graphml, to_json
from kustos.pipeline.flows.graph import EDGE_SCHEMA, HOPS_MAX, edges, flow_paths, vertices
from testkit.review_rows import Row, rollup, row
from testkit.seeds import Drawing

Path = tuple[str, ...]

done = st.builds(
    row,
    st.sampled_from([f"User:{name}" for name in "abcdefg"]),
    st.sampled_from(["READ", "READ", "WRITE", "WRITE", "DESCRIBE"]),
    st.sampled_from(["t1", "t2", "t3", "t4", "t5", None]),
    kind=st.sampled_from(["TOPIC", "TOPIC", "TOPIC", "GROUP"]),
    day=st.integers(0, 9),
    count=st.integers(1, 9),
    decision=st.sampled_from(["ALLOWED", "ALLOWED", "ALLOWED", "DENIED"]),
    access=st.sampled_from(["ACCESS", "ACCESS", "ACCESS", "LISTING", "PROBE"]),
)


def real(rows: list[Row]) -> list[Row]:
    return [
        each
        for each in rows
        if (each["decision"], each["access"]) == ("ALLOWED", "ACCESS") and each["resource_name"] is not None
    ]


def plain_paths(rows: list[Row], hops_max: int) -> dict[tuple[str, str], Path]:
    """Return a shortest path for each pair, the first in order, by going on hop after hop."""
    makes, takes = set(), defaultdict(set)
    for each in real(rows):
        if each["resource_type"] == "TOPIC" and each["operation"] == "WRITE":
            makes.add((each["principal"], each["resource_name"]))
        if each["resource_type"] == "TOPIC" and each["operation"] == "READ":
            takes[each["resource_name"]].add(each["principal"])
    hops = {(who, topic, to) for who, topic in makes for to in takes[topic] if who != to}
    found: dict[tuple[str, str], Path] = {}
    ends: list[Path] = [(who,) for who in {who for who, _ in makes}]
    for _ in range(hops_max):
        ends = [
            (*path, topic, to)
            for path in ends
            for who, topic, to in hops
            if who == path[-1] and to != path[0]
        ]
        fresh: dict[tuple[str, str], Path] = {}
        for path in ends:
            key = path[0], path[-1]
            if key not in found:
                fresh[key] = min(fresh.get(key, path), path)
        found |= fresh
        ends = list(fresh.values())
    return found


@pytest.mark.parametrize("nth", range(2))
def test_paths_are_shortest_and_edges_are_counted(spark: SparkSession, seed: int, nth: int) -> None:
    draw = Drawing(seed + nth)
    rows, hops_max = draw(st.tuples(st.lists(done, min_size=15, max_size=60), st.integers(1, 4)))
    found = edges(rollup(spark, rows))
    kept = found.collect()
    assert found.schema.fieldNames() == EDGE_SCHEMA.fieldNames()
    flat = [
        {
            name: each[name]
            for name in ("principal", "operation", "resource_type", "resource_name", "event_count")
        }
        for each in real(rows)
    ]
    events = pa.Table.from_pylist(flat)
    assert events.num_rows
    counted = duckdb.connect().execute(
        "select principal, resource_name, resource_type, operation, sum(event_count) from events"
        " where (resource_type = 'TOPIC' and operation in ('READ', 'WRITE'))"
        " or (resource_type = 'GROUP' and operation = 'READ') group by all"
    )
    expected = {
        (name, who) if (kind, operation) == ("TOPIC", "READ") else (who, name): count
        for who, name, kind, operation, count in counted.fetchall()
        if kind == "TOPIC"
    }
    assert {(one.source, one.target): one.event_count for one in kept if one.kind != "MEMBER_OF"} == expected

    paths = {
        (one.source, one.target): tuple(one.path) for one in flow_paths(found, hops_max=hops_max).collect()
    }
    assert paths == plain_paths(rows, hops_max)

    degrees: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for one in kept:
        degrees[one.source_kind, one.source][1] += 1
        degrees[one.target_kind, one.target][0] += 1
    table = {(one.kind, one.name): [one.edges_in, one.edges_out] for one in vertices(found).collect()}
    assert table == degrees


def test_paths_begin_where_they_are_asked_to_and_are_limited(spark: SparkSession) -> None:
    rows = [row("User:a", "WRITE", "t"), row("User:b", "READ", "t"), row("User:b", "WRITE", "u")]
    rows += [row("User:c", "READ", "u"), row("User:c", "READ", "g", kind="GROUP")]
    found = edges(rollup(spark, rows))
    (first, second) = sorted(flow_paths(found, hops_max=2, sources=["User:a"]).collect())
    assert (first.target, first.hops, first.path) == ("User:b", 1, ["User:a", "t", "User:b"])
    assert (second.hops, second.path) == (2, ["User:a", "t", "User:b", "u", "User:c"])
    for hops in (0, HOPS_MAX + 1):
        with pytest.raises(ReviewError, match="hops"):
            flow_paths(found, hops_max=hops)


NAMES = ['a"b', "<&>'", "x\\", "n\n1", "nul\0", "ü", "\ud7ff", "]]>", "--", 'end"]; evil -> n0 [label="']


def graph() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    kinds = [("PRINCIPAL", f"User:{name}") for name in NAMES] + [("TOPIC", name) for name in NAMES]
    nodes = [
        {"kind": kind, "name": name, "edges_in": 1, "edges_out": 1, "event_count": 3} for kind, name in kinds
    ]
    time = datetime(2026, 8, 1)  # noqa: DTZ001 - as Spark gives them
    links = [
        {
            "source_kind": "PRINCIPAL",
            "source": f"User:{name}",
            "kind": "PRODUCES",
            "target_kind": "TOPIC",
            "target": name,
            "event_count": 3,
            "first_time": time,
            "last_time": time,
        }
        for name in NAMES
    ]
    return nodes, links


def test_exports_keep_every_name_apart_and_hold_no_more_than_was_given() -> None:
    nodes, links = graph()
    assert json.loads(to_json(nodes, links))["edges"][0]["source"] == 'User:a"b'
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    root = ElementTree.fromstring(to_graphml(nodes, links))
    assert len(root.findall(".//g:node", space)) == len(nodes)
    labels = {each.findtext("g:data[@key='name']", "", space) for each in root.findall(".//g:node", space)}
    assert {'a"b', "<&>'", "]]>", "nul\\x00"} <= labels
    assert len(root.findall(".//g:edge", space)) == len(links)
    dot = to_dot(nodes, links)
    assert len(dot.splitlines()) == 2 + len(nodes) + len(links) + 1
    if shutil.which("dot"):
        plain = subprocess.run(["dot", "-Tplain"], input=dot, capture_output=True, text=True, check=True)
        assert sum(line.startswith("edge ") for line in plain.stdout.splitlines()) == len(links)


def test_a_graph_that_nobody_can_draw_or_that_lacks_an_end_is_refused(spark: SparkSession) -> None:
    nodes, links = graph()
    for write in (to_dot, to_graphml, to_json):
        with pytest.raises(ReviewError, match="too large"):
            write(nodes, links * (EDGES_MAX // len(links) + 1))
    with pytest.raises(ReviewError, match="none of the vertices"):
        to_dot(nodes[1:], links)
    found = edges(rollup(spark, [row("User:a", "WRITE", "t")]))
    assert '"event_count": 1' in to_json(collected(vertices(found).collect()), collected(found.collect()))
