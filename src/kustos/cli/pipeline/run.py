"""`kustos pipeline run`."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kustos.cli.options import DocumentOutput, exit_code_if
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import (
    DEFAULT_CONFIG,
    Config,
    DryRun,
    Step,
    configured,
    until_interrupted,
    working,
)

if TYPE_CHECKING:
    from kustos.pipeline.configuration import InputSettings, PipelineConfiguration
    from kustos.pipeline.tables import DeclaredCluster, Dropped, Retention, Tables

EXAMPLES = """
kustos pipeline run
kustos pipeline run --config /etc/kustos/pipeline.yml --dry-run
kustos pipeline run --exit-code
kustos pipeline run --follow
"""

STEPS_OF_FILES: Final = 11
"""Largest number of steps that the run over one folder reports."""

COUNTS: Final = (
    "files",
    "new_files",
    "damaged_files",
    "lines",
    "events",
    "security_events",
    "quarantined",
    "duplicates",
    "too_late",
    "conflicts",
    "half_lines",
    "overlapping_files",
    "refused_files",
    "dropped_days",
    "dropped_events",
    "dropped_rollup_days",
    "dropped_lines",
)
NAMES: Final = {
    "too_late": "of them too late",
    "conflicts": "events with the id of another event",
    "half_lines": "unfinished lines left for later",
    "dropped_lines": "dropped lines",
}

Follow = Annotated[
    bool,
    typer.Option(
        "--follow", help="Continue to read the topic of the configuration, batch by batch, until interrupted."
    ),
]
ExitCodeFlag = Annotated[bool, exit_code_if("a file was refused, and its lines not read")]


def run(
    config: Config = DEFAULT_CONFIG,
    follow: Follow = False,
    dry_run: DryRun = False,
    exit_code: ExitCodeFlag = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """Read new audit files and records into the tables.

    A run skips files that were read before, continues each topic where the last run ended, and drops
    duplicate events. It commits only if the lines equal events + security events + quarantined + duplicates.
    With `tables.retention_days` in the configuration it drops older days and reports them. After a run was
    killed, the next one continues from the last commit.
    """
    from kustos.cli.failures import ExitCode, usage_error
    from kustos.cli.output import print_document
    from kustos.cli.pipeline.inputs import tables_of

    configuration = configured(config)
    topics = [one for one in configuration.inputs if one.topic is not None]
    if not configuration.inputs:
        raise usage_error("the configuration has no inputs: set `inputs` with `files` or `topic`")
    if follow and (len(topics) != 1 or len(configuration.inputs) != 1):
        raise usage_error("`--follow` requires a configuration with one input, a topic")
    tables = tables_of(configuration)
    plan = [_planned(one, tables) for one in configuration.inputs]
    if dry_run:
        _print_warnings(plan)
        _print_plan(plan, _dropped(configuration, tables), output)
        return ExitCode.OK
    steps = sum(STEPS_OF_FILES if one.topic is None else 1 for one in configuration.inputs)
    done: list[dict[str, Any]] = []
    with working("run", configuration.spark, steps=steps) as (spark, step):
        for one in configuration.inputs:
            take = _take_files if one.topic is None else _take_topic
            done.append({"input": _name(one), **take(spark, configuration, one, tables, step, follow)})
    _print_warnings(done)
    if output.is_document:
        print_document({"tables": str(tables.folder), "inputs": done}, output)
    else:
        _print_done(done, str(tables.folder))
    return ExitCode.NO if exit_code and any(one.get("refused_files") for one in done) else ExitCode.OK


def _name(one: "InputSettings") -> str:
    return f"topic {one.topic}" if one.topic is not None else str(one.files)


def _planned(one: "InputSettings", tables: "Tables") -> dict[str, Any]:
    """Return what a run would read; raise an input's errors before Spark's seconds of start-up."""
    from kustos.pipeline.run import find_new_files
    from kustos.pipeline.run.topic import TopicSettings

    if one.files is not None:
        found = find_new_files(one.files, tables, source=one.source, cluster=one.cluster)
        return {
            "input": _name(one),
            "files": found.count,
            "new_files": len(found.new),
            "new_bytes": found.new_bytes,
            "warnings": found.said,
        }
    if one.topic is None or one.command_config is None:
        raise ValueError("an input without files has a topic")
    settings = TopicSettings.from_file(one.topic, one.command_config)
    return {"input": _name(one), "bootstrap_servers": settings.bootstrap_servers}


def _take_files(
    spark: Any,
    configuration: "PipelineConfiguration",
    one: "InputSettings",
    tables: "Tables",
    step: Step,
    _follow: bool,
) -> dict[str, Any]:
    from dataclasses import asdict

    from kustos.pipeline.run import run_pipeline
    from kustos.pipeline.tables import IngestOptions

    if one.files is None:
        raise ValueError("an input without a topic has files")
    options = IngestOptions(
        time_zone=one.time_zone,
        cluster=_declared(configuration, one),
        keep_raw=configuration.tables.keep_raw,
        watermark_days=configuration.tables.watermark_days,
        retention=_retention(configuration),
    )
    return asdict(
        run_pipeline(
            spark,
            tables=tables,
            audit=one.files,
            options=options,
            source=one.source,
            layout=one.layout,
            on_damaged_file=one.on_damaged_file,
            on_unknown_format=one.on_unknown_format,
            progress=step,
        )
    )


def _take_topic(
    spark: Any,
    configuration: "PipelineConfiguration",
    one: "InputSettings",
    tables: "Tables",
    step: Step,
    follow: bool,
) -> dict[str, Any]:
    from dataclasses import asdict

    from kustos.pipeline.run.stream import StreamOptions, run_stream
    from kustos.pipeline.run.topic import TopicSettings
    from kustos.pipeline.tables import IngestOptions

    if one.topic is None or one.command_config is None:
        raise ValueError("an input without files has a topic")
    step(f"reading {one.topic}")
    ingested = IngestOptions(
        time_zone=one.time_zone,
        cluster=_declared(configuration, one),
        keep_raw=configuration.tables.keep_raw,
        watermark_days=configuration.tables.watermark_days,
        with_rollup=False,
        retention=_retention(configuration),
    )
    with until_interrupted() as stop:
        summary = run_stream(
            spark,
            TopicSettings.from_file(one.topic, one.command_config, one.layout),
            tables,
            checkpoints=configuration.tables.folder_of_checkpoints(),
            options=StreamOptions(available_now=not follow, ingest=ingested),
            stop=stop,
        )
    return asdict(summary)


def _declared(configuration: "PipelineConfiguration", one: "InputSettings") -> "DeclaredCluster":
    from kustos.pipeline.tables import DeclaredCluster

    return DeclaredCluster(one.cluster, configuration.cluster_ids.get(one.cluster or "", ()))


def _retention(configuration: "PipelineConfiguration") -> "Retention | None":
    from kustos.pipeline.tables import Retention

    days, rollup_days = configuration.tables.retention_days, configuration.tables.rollup_retention_days
    return None if days is None else Retention(days=days, rollup_days=rollup_days)


def _dropped(configuration: "PipelineConfiguration", tables: "Tables") -> "Dropped | None":
    """Return what the retention would drop; None without a retention."""
    from kustos.pipeline.tables import would_drop

    retention = _retention(configuration)
    return None if retention is None else would_drop(tables, retention)


def _print_plan(plan: list[dict[str, Any]], dropped: "Dropped | None", output: OutputFormat) -> None:
    from dataclasses import asdict

    from kustos.cli.output import counted, print_document, print_lines

    if output.is_document:
        print_document({"plan": plan, "would_drop": None if dropped is None else asdict(dropped)}, output)
        return
    for one in plan:
        if "files" in one:
            print_lines(
                f"{one['input']}: would read {one['new_files']} new of {counted(one['files'], 'file')}, "
                f"{one['new_bytes']:,} bytes"
            )
        else:
            print_lines(f"{one['input']}: would read on, from {one['bootstrap_servers']}")
    if dropped is not None:
        print_lines(
            f"would drop {dropped.events:,} events of {counted(len(dropped.event_days), 'day')}, "
            f"{counted(len(dropped.rollup_days), 'day')} of the roll-up, {counted(dropped.lines, 'line')}"
        )


def _print_warnings(inputs: list[dict[str, Any]]) -> None:
    from kustos.cli.output import print_notice

    for one in inputs:
        for text in one.get("warnings", ()):
            print_notice("warning", text)


def _print_done(done: list[dict[str, Any]], folder: str) -> None:
    from kustos.cli.output import print_lines, print_table

    counts = [name for name in COUNTS if any(one.get(name) for one in done) or name == "lines"]
    print_table(
        ("what", *(one["input"] for one in done)),
        [(NAMES.get(name, name.replace("_", " ")), *(one.get(name, 0) for one in done)) for name in counts],
        title="taken in",
    )
    print_lines(folder)
