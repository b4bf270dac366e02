"""Audit files: which are new or have grown, which log each is, and their lines, packed or not."""

from kustos.pipeline.run.files.new_files import FoundFiles, find_new_files
from kustos.pipeline.run.files.pieces import DamagedFileError

__all__ = ["DamagedFileError", "FoundFiles", "find_new_files"]
