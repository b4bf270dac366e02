"""What can go wrong in a pipeline, on one screen."""


class PipelineError(Exception):
    """The root of what a pipeline raises; nothing of the former output has been replaced."""


class SparkMissingError(PipelineError):
    """PySpark or Java is not installed; the text says what to install."""


class ConfigurationError(PipelineError):
    """The configuration file says something else than a configuration; the text names line, key and rule."""


class AuditInputError(PipelineError):
    """The audit folder is missing, empty, unreadable or holds a damaged file; the text names it."""


class ReportOutputError(PipelineError):
    """The output folder cannot be written, is in use, or holds something that is not ours to replace."""


class LinesLostError(PipelineError):
    """Lines read and lines accounted for differ: a fault of this program, so nothing is published."""
