"""Data flows over the tables: the paths that data could have taken, and the graph as a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.flows.export import collected, to_dot, to_graphml, to_json
from kustos.pipeline.flows.graph import edges, flow_paths, vertices
from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.tables.layout import AUDIT_ROLLUP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kustos.pipeline.tables import Tables

FLOW_STEPS: Final = ("finding who feeds whom", "drawing the graph")


class GraphForm(StrEnum):
    """The format of a graph."""

    DOT = "dot"
    GRAPHML = "graphml"
    JSON = "json"


_WRITERS: Final = {GraphForm.DOT: to_dot, GraphForm.GRAPHML: to_graphml, GraphForm.JSON: to_json}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowQuestion:
    """Which paths: of these days, both included, and of at most `hops_max` hops.

    `sources` are the first principals, None for all; `limit` is the number of paths. With a `form` the whole
    graph is returned, too.
    """

    first_day: date | None
    last_day: date | None
    hops_max: int
    sources: Sequence[str] | None
    limit: int
    form: GraphForm | None = None


def run_flows(
    spark: "SparkSession", tables: "Tables", question: FlowQuestion, progress: Progress = silent
) -> tuple[list[dict[str, Any]], str | None]:
    """Return paths as rows of PATH_SCHEMA, the shortest first, and the graph in the form of the question.

    Raises what `Tables.read` raises, and `ReviewError` for too many hops or edges.
    """
    progress(FLOW_STEPS[0])
    rollup = tables.read(spark, AUDIT_ROLLUP, first_day=question.first_day, last_day=question.last_day)
    graph = edges(rollup).persist()
    try:
        sources = None if question.sources is None else [*question.sources]
        paths = flow_paths(graph, hops_max=question.hops_max, sources=sources)
        first = paths.orderBy("hops", "source", "target").limit(question.limit).collect()
        progress(FLOW_STEPS[1])
        if question.form is None:
            return collected(first), None
        write = _WRITERS[question.form]
        return collected(first), write(collected(vertices(graph).collect()), collected(graph.collect()))
    finally:
        graph.unpersist()
