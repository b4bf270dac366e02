"""`kustos pipeline flows`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from kustos.cli.options import Output
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.options import DEFAULT_CONFIG, Config, Limit, Since, Until

EXAMPLES = """
kustos pipeline flows --from User:billing --hops 3
kustos pipeline flows --out flows.dot
kustos pipeline flows --out flows.graphml --since 2026-10-01
"""


class GraphForm(StrEnum):
    """In which form a graph is written."""

    DOT = "dot"
    GRAPHML = "graphml"
    JSON = "json"


Sources = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="TYPE:NAME", help="Only paths that begin with this principal."),
]
Hops = Annotated[
    int, typer.Option("--hops", metavar="N", min=1, max=8, help="Longest path: principal, topic, principal.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", help="Write the graph: .dot, .graphml or .json.", show_default=False
    ),
]


def flows(
    config: Config = DEFAULT_CONFIG,
    sources: Sources = None,
    hops: Hops = 2,
    out: Out = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 40,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Say who feeds whom: producers, topics, consumers.

    Paths are the ways that data could have gone, by what was really written and read. That data came in does
    not prove that it went out again.
    """
    from kustos.cli.failures import usage_error
    from kustos.cli.output import print_json, print_lines, print_table
    from kustos.cli.pipeline.inputs import check_writable, filled_tables, period_of
    from kustos.cli.pipeline.working import configured, working

    configuration = configured(config)
    first, last = period_of(since, until)
    tables = filled_tables(configuration)
    form = None if out is None else out.suffix.removeprefix(".")
    if form is not None and form not in list(GraphForm):
        raise usage_error(f"`{out}` has none of the endings .dot, .graphml and .json")
    check_writable(out)
    from kustos.pipeline.reach import edges, flow_paths
    from kustos.pipeline.stages.days import within_days

    with working("flows", configuration.spark, delta=tables.form == "delta", steps=2) as (spark, step):
        step("looking who feeds whom")
        graph = edges(within_days(tables.read(spark, "audit_rollup"), first, last)).persist()
        found = flow_paths(graph, hops_max=hops, sources=sources)
        paths = [row.asDict() for row in found.orderBy("hops", "source", "target").limit(limit).collect()]
        step("drawing the graph")
        if out is not None and form is not None:
            out.write_text(_graph(GraphForm(form), graph), encoding="utf-8")
        graph.unpersist()
    if output is OutputFormat.JSON:
        print_json({"paths": paths, "graph": None if out is None else str(out)})
        return
    print_table(("#hops", "path"), [(str(row["hops"]), " > ".join(row["path"])) for row in paths])
    if out is not None:
        print_lines(str(out))


def _graph(form: GraphForm, graph: Any) -> str:
    from kustos.pipeline.reach import collected, to_dot, to_graphml, to_json, vertices

    write = {GraphForm.DOT: to_dot, GraphForm.GRAPHML: to_graphml, GraphForm.JSON: to_json}[form]
    return write(collected(vertices(graph).collect()), collected(graph.collect()))
