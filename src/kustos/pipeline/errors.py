"""What can go wrong in a pipeline, on one screen."""


class PipelineError(Exception):
    """The root of the pipeline's errors; the former output is still in place."""


class SparkMissingError(PipelineError):
    """Java is not installed; the text says what to install."""


class SparkFailedError(PipelineError):
    """Spark does not start, or what it needs failed: a cluster, a disk, memory; the text says what to do."""


class ConfigurationError(PipelineError):
    """The configuration file is not a valid configuration; the text names line, key and rule."""


class AclSetError(PipelineError):
    """A set of ACLs cannot be read, has ACLs that no authorizer takes, or was damaged in transfer."""


class QuestionsError(PipelineError):
    """Rows to decide on lack a question column, or have it with another type than text."""


class ReviewError(PipelineError):
    """A moment, an ACL or a history of a review, or a graph of data flows, is not valid."""


class AnomalyInputError(PipelineError):
    """Parameters, a window or a suppression of the search for anomalies are not valid."""


class TriageError(PipelineError):
    """An anomaly that is to be acknowledged is unknown, or the acknowledgement is not valid."""


class AuditInputError(PipelineError):
    """The audit folder is missing, empty, unreadable or holds a damaged file; the text names it."""


class MetadataHistoryError(PipelineError):
    """A metadata log cannot be read, or lacks what was requested; the text says which and why."""


class KafkaInputError(PipelineError):
    """A topic cannot be read: not there, not reached, not permitted, records gone; the text says which."""


class DamagedRecordsError(KafkaInputError):
    """A batch of a topic is damaged, or too large uncompressed; the text says where, and quotes no byte."""


class StreamError(PipelineError):
    """A stream cannot be run: its checkpoint is another stream's, or its topic is another one now."""


class ReportOutputError(PipelineError):
    """The output folder cannot be written, is in use, or holds something that kustos did not write."""


class LinesLostError(PipelineError):
    """Lines read and lines accounted for differ: a fault of this program, so nothing is published."""


class TablesError(PipelineError):
    """The folder of tables cannot be used this way; the text says why. Committed rows are intact."""


class TablesInUseError(TablesError):
    """Another run is writing to the tables."""


class StaleRollupError(TablesError):
    """The roll-up lacks committed events and cannot be refreshed; the text says what to run."""


class TablesDamagedError(TablesError):
    """A committed file, entry of a log or table is gone or changed, or a log or `runs` cannot be read."""


class ClusterError(TablesError):
    """A question is about one cluster, and the tables have several, or not this one; the text lists them."""


class SchemaConflictError(TablesError):
    """A file of a table has a column of an incompatible type."""
