"""`kustos pipeline check`."""

from typing import TYPE_CHECKING, Any, Final

from kustos.cli.options import DocumentOutput
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import DEFAULT_CONFIG, Config, configured, working

if TYPE_CHECKING:
    from kustos.pipeline.tables import TablesCheck

EXAMPLES = """
kustos pipeline check
kustos pipeline check --config /etc/kustos/pipeline.yml --output json
"""

SHOWN_MAX: Final = 100
"""Faults and orphans shown on a terminal; the document has all of them."""


def check(config: Config = DEFAULT_CONFIG, output: DocumentOutput = OutputFormat.TABLE) -> int:
    """Verify every file of the tables, and their counts.

    Compares the files with Delta's logs, the logs with the table `runs`, the rows of each file with its
    footer and the log, and the roll-up of each day with the sum of its events; event ids must be unique. For
    damage it reports the table, the file, the run and the remedy, and exits with 1. It lists orphans, which
    are files that no commit names, and changes nothing.
    """
    from kustos.cli.failures import ExitCode
    from kustos.cli.output import print_document
    from kustos.cli.pipeline.inputs import filled_tables

    configuration = configured(config)
    tables = filled_tables(configuration)
    from kustos.pipeline.tables import CHECK_STEPS, check_tables

    with working("check", configuration.spark, tables.recorded_rows(), steps=len(CHECK_STEPS)) as (
        spark,
        step,
    ):
        found = check_tables(spark, tables, step)
    if output.is_document:
        print_document(_document(str(tables.folder), found), output)
    else:
        _print(str(tables.folder), found)
    return ExitCode.OK if found.is_whole else ExitCode.FAILED


def _document(folder: str, found: "TablesCheck") -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "tables": folder,
        "whole": found.is_whole,
        "compared_days": found.days,
        "stale_days": found.stale_days,
        "checked": [asdict(each) for each in found.tables],
        "damage": [asdict(each) | {"remedy": each.remedy} for each in found.faults],
    }


def _print(folder: str, found: "TablesCheck") -> None:
    from kustos.cli.output import counted, print_lines, print_paragraph, print_table

    rows = [(each.table, each.files, each.rows, len(each.orphans) or None) for each in found.tables]
    print_table(("table", "files", "rows", "orphans"), rows, title="checked")
    print_lines(f"the roll-up of {counted(found.days, 'day')} compared with the events")
    if found.stale_days:
        print_lines(f"{counted(len(found.stale_days), 'day')} without a roll-up so far")
    orphans = [f"{each.table}/{name}" for each in found.tables for name in each.orphans]
    for name in orphans[:SHOWN_MAX]:
        print_paragraph(f"`{name}`, no commit names it", indent="        ", first="orphan: ")
    for fault in found.faults[:SHOWN_MAX]:
        where = f"`{fault.table}/{fault.file}`" if fault.file is not None else f"`{fault.table}`"
        run = f" (run `{fault.run}`)" if fault.run else ""
        print_paragraph(f"{where}{run}: {fault.what}", indent="         ", first="damaged: ")
    hidden = max(0, len(orphans) - SHOWN_MAX) + max(0, len(found.faults) - SHOWN_MAX)
    if hidden:
        print_lines(f"and {hidden:,} more, see `--output json`")
    for table, remedy in dict.fromkeys((each.table, each.remedy) for each in found.faults):
        print_paragraph(f"`{table}`: {remedy}", indent="         ", first="remedy:  ")
    print_lines(f"{counted(len(found.faults), 'fault')} found" if found.faults else "whole", folder)
