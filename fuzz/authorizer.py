"""Changes worlds byte by byte and keeps what reaches new code: `make fuzz MINUTES=n`.

The property is that of the differential tests: kustos answers as the specification does. libFuzzer's
options go through, as `-runs=1000 -seed=1`; a file among the arguments is tried alone.
"""

import sys
from pathlib import Path
from random import Random
from typing import Final

import atheris

with atheris.instrument_imports(include=["kustos.acl", "kustos.authorizer", "kustos.metadata.control"]):
    from testkit.differential.worlds_from_bytes import BYTES_MAX, differing

BEGINNINGS: Final = 64
"""Random worlds of full length from which the first search begins: short ones have few ACLs."""

KEPT: Final = Path(__file__).resolve().parent.parent / ".cache" / "fuzz" / "authorizer"


class DifferenceError(Exception):
    """A world on which kustos and the specification differ."""


def check(data: bytes) -> None:
    """Raise on a difference; libFuzzer keeps the bytes, the comparison the world."""
    difference = differing(data)
    if difference is not None:
        raise DifferenceError(difference)


def begin() -> None:
    """Write the first worlds where there are none."""
    KEPT.mkdir(parents=True, exist_ok=True)
    if not any(KEPT.iterdir()):
        for number in range(BEGINNINGS):
            (KEPT / f"beginning-{number}").write_bytes(Random(number).randbytes(BYTES_MAX))  # noqa: S311 (a test)


def main() -> None:
    """Search until the options say stop; does not return."""
    begin()
    given = sys.argv[1:]
    corpus = [] if any(not option.startswith("-") for option in given) else [str(KEPT)]
    options = [f"-max_len={BYTES_MAX}", "-len_control=0", f"-artifact_prefix={KEPT.parent}/"]
    atheris.Setup([sys.argv[0], *options, *given, *corpus], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
