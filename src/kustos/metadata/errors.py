"""Errors of the metadata."""


class MetadataError(Exception):
    """The base class of this package's errors; after an error, the metadata must be treated as unknown."""


class RecordError(MetadataError):
    """Bytes that are not a metadata record of a known kind and version, or a value that does not fit one."""


class ReplayError(MetadataError):
    """A record that contradicts the image it is applied to."""


class LogError(MetadataError):
    """The base class of errors of files."""


class LogDamagedError(LogError):
    """Bytes that were once whole are damaged; the text gives the file, the offset and the remedy."""


class TornTailError(LogError):
    """A log ends in an unfinished write, which a reader cannot distinguish from a truncated copy."""


class BatchTooLargeError(LogError):
    """The records of one request exceed what a batch of the log may hold; nothing was written."""


class LogFailedError(LogError):
    """A write may not have reached the disk; nothing is acknowledged until the process restarts."""


class LogFullError(LogError):
    """The disk is full: nothing of the change was written, and later changes are tried again."""


class DirectoryError(LogError):
    """The directory belongs to another node, has unexpected contents, or cannot be formatted."""


class NoMetadataError(DirectoryError):
    """The path holds no metadata: it is missing, something else, or not formatted yet."""
