"""The `kustos` command: one command a file, grouped noun by noun; heavy rooms are imported when used."""

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with one of `kustos.cli.failures.ExitCode`."""
    import sys

    from kustos.cli.run import run

    sys.exit(run(sys.argv[1:]))
