"""`kustos pipeline convert`."""

from kustos.cli.options import DocumentOutput
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import DEFAULT_CONFIG, Config, configured

EXAMPLES = """
kustos pipeline convert
kustos pipeline convert --config /etc/kustos/pipeline.yml
"""


def convert(config: Config = DEFAULT_CONFIG, output: DocumentOutput = OutputFormat.TABLE) -> None:
    """Turn tables of an earlier version into Delta tables.

    Earlier versions kept plain Parquet files and a folder `_ledger`. The files stay in place and are not
    written again; only Delta's logs are added, and `_ledger` goes. If the command is killed, the tables
    are still of the earlier version, and it can be repeated.
    """
    from dataclasses import asdict

    from kustos.cli.output import print_document, print_lines, print_table
    from kustos.cli.pipeline.inputs import filled_tables

    tables = filled_tables(configured(config))
    from kustos.pipeline.tables import convert_tables

    converted = convert_tables(tables.folder)
    if output.is_document:
        print_document(
            {"tables": str(tables.folder), "converted": [asdict(each) for each in converted]}, output
        )
        return
    rows = [(each.table, each.files, each.rows) for each in converted]
    print_table(("table", "files", "rows"), rows, title="converted")
    print_lines(str(tables.folder))
