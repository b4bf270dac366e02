"""`kustos pipeline flows`."""

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kustos.cli.options import Output
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import (
    DEFAULT_CONFIG,
    ClusterOption,
    Config,
    Limit,
    Since,
    Until,
    configured,
    working,
)

if TYPE_CHECKING:
    from kustos.cli.output import Columns

EXAMPLES = """
kustos pipeline flows --from User:billing --hops 3
kustos pipeline flows --out flows.dot
kustos pipeline flows --out flows.graphml --since 2026-10-01
"""


Sources = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="TYPE:NAME", help="Show only paths that begin with this principal."),
]
Hops = Annotated[
    int,
    typer.Option(
        "--hops",
        metavar="N",
        min=1,
        max=8,
        help="The length of the longest path; one hop is principal, topic, principal.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write the graph to this file: .dot, .graphml or .json.",
        show_default=False,
    ),
]


def flows(
    config: Config = DEFAULT_CONFIG,
    sources: Sources = None,
    hops: Hops = 2,
    out: Out = None,
    since: Since = None,
    until: Until = None,
    cluster: ClusterOption = None,
    limit: Limit = 40,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show which principals feed data to which others.

    A path follows recorded writes and reads, from a producer by a topic to a consumer, and is a way that data
    could have taken. A read of a topic does not prove that its data was written to the next topic.
    """
    from kustos.cli.failures import usage_error
    from kustos.cli.output import print_rows
    from kustos.cli.pipeline.inputs import check_writable, of_cluster, period_of

    configuration = configured(config)
    first, last = period_of(since, until)
    configuration, tables = of_cluster(configuration, cluster)
    from kustos.pipeline.flows.job import FLOW_STEPS, FlowQuestion, GraphForm, run_flows

    form = None if out is None else out.suffix.removeprefix(".")
    if form is not None and form not in list(GraphForm):
        raise usage_error(f"`{out}` does not end in `.dot`, `.graphml` or `.json`")
    check_writable(out)
    question = FlowQuestion(
        first_day=first,
        last_day=last,
        hops_max=hops,
        sources=sources,
        limit=limit,
        form=None if form is None else GraphForm(form),
    )
    with working("flows", configuration.spark, tables.recorded_rows(), steps=len(FLOW_STEPS)) as (
        spark,
        step,
    ):
        paths, graph = run_flows(spark, tables, question, step)
    if out is not None and graph is not None:
        out.write_text(graph, encoding="utf-8")
    print_rows(
        path_columns(),
        paths,
        output,
        document=lambda: {
            "cluster": tables.chosen_cluster.name,
            "paths": paths,
            "graph": None if out is None else str(out),
        },
        tail=() if out is None else (str(out),),
    )


def path_columns() -> "Columns[dict[str, Any]]":
    """Return the columns of paths."""
    from kustos.cli.output import Column, ColumnFormats, Columns

    return Columns(
        (
            Column("hops", itemgetter("hops")),
            Column("source", itemgetter("source"), ColumnFormats.WIDE),
            Column("target", itemgetter("target"), ColumnFormats.WIDE),
            Column("path", lambda row: " > ".join(row["path"])),
        ),
        lambda row: (row["target"],),
        "the principals at the ends of paths, as `--from` takes them",
    )
