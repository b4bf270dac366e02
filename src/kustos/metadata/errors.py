"""What can be wrong with the metadata: one root, one screen."""


class MetadataError(Exception):
    """The root of this room's errors; whoever sees one must not go on as if the metadata were known."""


class RecordError(MetadataError):
    """Bytes that are no metadata record of a known kind and version, or a value that fits none."""


class ReplayError(MetadataError):
    """A record that contradicts the image it is applied to."""


class LogError(MetadataError):
    """The root of what can be wrong with the files."""


class LogDamagedError(LogError):
    """Bytes that were once whole are damaged; the text gives the file, the offset and the remedy."""


class BatchTooLargeError(LogError):
    """The records of one request exceed what a batch of the log may hold; nothing was written."""


class LogFailedError(LogError):
    """A write was not known to reach the disk; nothing is acknowledged until the process restarts."""


class DirectoryError(LogError):
    """The directory is not formatted, belongs to another node, or cannot be formatted."""
