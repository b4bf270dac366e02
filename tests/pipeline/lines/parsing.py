"""Lines read as a task of a run reads them, without Spark."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kustos.pipeline.lines.line_columns import read_lines


def parsed(texts: Sequence[str | bytes], time_zone: str = "UTC") -> list[dict[str, Any]]:
    """Return what is read of each line of a file `a.log`, in their order."""
    lines = pa.array([text.encode() if isinstance(text, str) else text for text in texts], pa.binary())
    # as Spark hands them over, where a text may hold any bytes
    batch = pa.record_batch({"file": pa.array(["a.log"] * len(texts)), "line": lines.view(pa.string())})
    return list(read_lines(batch, time_zone).to_pylist())
