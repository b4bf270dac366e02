"""Worlds out of bytes, which hypothesis drives towards many kinds of answers and cuts down."""

import hashlib
import os
import subprocess
import sys

from hypothesis import given, settings, target
from hypothesis import strategies as st

from testkit.differential.comparison import SHAPE
from testkit.differential.generator import WorldMaker
from testkit.differential.worlds import to_lines
from testkit.differential.worlds_from_bytes import BYTES_MAX, differing, kinds, world_of
from testkit.paths import ROOT


@given(st.binary(max_size=BYTES_MAX) | st.binary(min_size=500, max_size=BYTES_MAX))
@settings(max_examples=80, deadline=None)
def test_kustos_answers_as_the_specification(data: bytes) -> None:
    found = list(kinds(data))
    target(float(len(set(found))), label="kinds of answers")
    target(float(sum(kind in {"ALLOWED", "DENIED"} for kind in found)), label="answers that ACLs give")
    assert differing(data) is None


def test_a_small_change_of_the_bytes_is_one_of_the_world() -> None:
    data = bytes(range(7, 256)) * 8
    whole = list(to_lines(world_of(data)))
    assert len(whole) > 20
    assert list(to_lines(world_of(data[:-40])))[:20] == whole[:20]
    assert world_of(b"") == []


def digest() -> str:
    """Return what stands for the first worlds of the comparison."""
    lines = [line for number in range(40) for line in to_lines(WorldMaker(number, SHAPE).steps())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_a_seed_means_the_same_worlds_in_every_process() -> None:
    code = f"from {__name__} import digest; print(digest())"
    for hash_seed in ("1", "2"):
        said = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout.strip() == digest()
