"""The file that a legacy command reads."""

from pathlib import Path

from kustos.cli.failures import usage_error


def existing(file: Path) -> Path:
    """Return the path; raise a usage error if it does not exist: a wrong name is no empty set of ACLs."""
    if not file.exists():
        raise usage_error(f"there is no file `{file}`; `kustos legacy grant` makes one")
    return file
