"""The `kustos` command: a file for each command or small group; heavy packages are imported on use."""

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with one of `kustos.cli.failures.ExitCode`."""
    import sys

    from kustos.cli.run import run

    sys.exit(run(sys.argv[1:]))
