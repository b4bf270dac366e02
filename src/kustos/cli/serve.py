"""`kustos serve`."""

from pathlib import Path
from typing import Annotated

import typer

PropertiesFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The node's properties file.", show_default=False)
]

EXAMPLES = """
kustos serve kustos.properties
"""


def serve(path: PropertiesFile) -> int:
    """Run a node.

    It runs until stopped, as configured by its properties file. The file has Kafka's keys
    (listeners, sasl.*, ssl.*, authorizer.class.name, ...) and `kustos.*` for what Kafka lacks. The
    exit code is the server's.
    """
    from kustos.cli.failures import usage_error

    if path.is_dir():
        raise usage_error(f"`{path}` is a directory, name the properties file in it")
    if not path.is_file():
        raise usage_error(f"there is no properties file `{path}`")
    from kustos.runtime import garbage_collection_paused

    with garbage_collection_paused():  # what it loads stays
        from kustos.server import serve as run_server

    exit_code: int = run_server(path)
    return exit_code
