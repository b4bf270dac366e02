"""`kustos version`."""

from kustos.cli.options import Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos version
"""


def version(output: Output = OutputFormat.TABLE) -> None:
    """Print the version of kustos."""
    from kustos import __version__
    from kustos.cli.output import print_json, print_lines

    if output is OutputFormat.JSON:
        print_json({"version": __version__})
    else:
        print_lines(f"kustos {__version__}")
