"""`kustos pipeline`: handed on whole, so that nothing of Spark is imported for the other commands."""

import typer

EXAMPLES = """
kustos pipeline --help
"""


def pipeline(context: typer.Context) -> int:
    """Study months of access with Spark."""
    try:
        from kustos.cli.pipeline import app
    except ModuleNotFoundError as error:
        from kustos.cli.failures import usage_error

        raise usage_error(
            f"the pipeline needs `{error.name}`, install it with `pip install kustos[spark]`"
        ) from error
    result = app(args=context.args, prog_name="kustos pipeline", standalone_mode=False)
    return result if isinstance(result, int) else 0
