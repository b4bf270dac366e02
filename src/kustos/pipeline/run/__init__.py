"""Runs: audit files and topics into the tables, once or as a stream. The IO of a run.

What may live here: the order of a run's steps. Files, topics and streams have folders of their own.
"""

from kustos.pipeline.run.files import DamagedFileError, FoundFiles, find_new_files
from kustos.pipeline.run.runs import run_pipeline

__all__ = [
    "DamagedFileError",
    "FoundFiles",
    "find_new_files",
    "run_pipeline",
]
