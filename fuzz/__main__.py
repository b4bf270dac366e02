"""Searches one target: `python -m fuzz TARGET [libFuzzer's options] [a file to try alone]`.

Inputs that reached new code are kept in `.cache/fuzz/TARGET/` and begin the next search, beside the target's
seeds and its finds in `fuzz/corpus/TARGET/`. A find ends the search; its bytes are in `.cache/fuzz/`.
"""

import hashlib
import importlib
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import atheris

from fuzz.targets import INCLUDED, FoundError, Target

ROOT: Final = Path(__file__).resolve().parent.parent
KEPT: Final = ROOT / ".cache" / "fuzz"
FINDS: Final = ROOT / "fuzz" / "corpus"

SECONDS_PER_INPUT: Final = 2.0
"""Of processor time. An input takes microseconds to a millisecond, the first ones more, since they import."""

MEMORY_PER_INPUT_BYTES: Final = 64 * 2**20
"""How much one input may raise what the process ever took; the largest input has half a megabyte."""

MEMORY_MAX_MB: Final = 2_048
"""libFuzzer ends the search beyond it: what inputs leave behind must not add up."""

HANGS_AFTER_S: Final = 30
"""libFuzzer ends the search if one input takes as long."""


def measured(check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Return a check that also bounds the time and the memory of an input."""

    def measuring(data: bytes) -> None:
        begun_s, begun_kb = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        check(data)
        taken_s = time.process_time() - begun_s
        taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun_kb) * 1024
        if taken_s > SECONDS_PER_INPUT:
            raise FoundError(f"an input takes {taken_s:.1f} s")
        if taken > MEMORY_PER_INPUT_BYTES:
            raise FoundError(f"an input takes {taken} bytes")

    return measuring


def begin(name: str, target: Target) -> Path:
    """Write the seeds; return the folder that the search reads and adds to."""
    kept = KEPT / name
    kept.mkdir(parents=True, exist_ok=True)
    for data in target.seeds():
        seed = data[: target.INPUT_MAX_BYTES]
        (kept / hashlib.sha1(seed, usedforsecurity=False).hexdigest()).write_bytes(seed)
    return kept


def main() -> None:
    """Search until the options say stop; does not return."""
    name, *given = sys.argv[1:] or ["?"]
    if name not in INCLUDED:
        sys.exit(f"error: there is no target `{name}`, use one of {', '.join(INCLUDED)}")
    with atheris.instrument_imports(include=list(INCLUDED[name])):
        target = cast("Target", importlib.import_module(f"fuzz.targets.{name}"))
    finds = FINDS / name
    corpus = [str(begin(name, target)), *([str(finds)] if finds.is_dir() else [])]
    if any(not option.startswith("-") for option in given):
        corpus = []
    options = [
        f"-max_len={target.INPUT_MAX_BYTES}",
        "-len_control=0",
        f"-timeout={HANGS_AFTER_S}",
        f"-rss_limit_mb={MEMORY_MAX_MB}",
        f"-artifact_prefix={KEPT}/{name}-",
    ]
    # what is imported and cached at the first input is no cost of it
    target.check(b"")
    atheris.Setup(
        [sys.argv[0], *options, *given, *corpus],
        measured(target.check),
        custom_mutator=getattr(target, "mutate", None),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
