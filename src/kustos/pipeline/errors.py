"""What can go wrong in a pipeline, on one screen."""


class PipelineError(Exception):
    """The root of what a pipeline raises; nothing of the former output has been replaced."""


class SparkMissingError(PipelineError):
    """Java is not installed; the text says what to install."""


class ConfigurationError(PipelineError):
    """The configuration file says something else than a configuration; the text names line, key and rule."""


class AclSetError(PipelineError):
    """A set of ACLs cannot be read, holds what no authorizer could, or was damaged on its way to a worker."""


class QuestionsError(PipelineError):
    """Rows to decide on lack a column of questions, or hold it as something else than text."""


class ReviewError(PipelineError):
    """A review, its signature, a rule of duties or a path asked for that cannot be taken as it stands."""


class AnomalyInputError(PipelineError):
    """Parameters, a window or a suppression of the search for anomalies that make no sense."""


class AuditInputError(PipelineError):
    """The audit folder is missing, empty, unreadable or holds a damaged file; the text names it."""


class MetadataHistoryError(PipelineError):
    """A metadata log cannot be read, or is asked for what it has not; the text says which and why."""


class KafkaInputError(PipelineError):
    """A topic cannot be read: not there, not reached, not permitted, records gone; the text says which."""


class StreamError(PipelineError):
    """A stream cannot be run as asked: its checkpoint is another's, or its session is of the wrong kind."""


class JarsError(PipelineError):
    """The jars that Spark reads topics with could not be brought; the text names them and says why."""


class ReportOutputError(PipelineError):
    """The output folder cannot be written, is in use, or holds something that is not ours to replace."""


class LinesLostError(PipelineError):
    """Lines read and lines accounted for differ: a fault of this program, so nothing is published."""
