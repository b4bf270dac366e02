"""Audit as it comes: a topic into the tables, in micro-batches, each record once."""

from kustos.pipeline.run.stream.batches import StreamSummary
from kustos.pipeline.run.stream.job import StreamOptions, run_stream

__all__ = ["StreamOptions", "StreamSummary", "run_stream"]
