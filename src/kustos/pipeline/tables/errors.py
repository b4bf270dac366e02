"""Errors of the tables; after any of them, committed rows are intact."""

from kustos.pipeline.errors import PipelineError


class TablesError(PipelineError):
    """The folder of tables cannot be used this way; the text says why and what to do."""


class TablesInUseError(TablesError):
    """Another run is writing to the tables."""


class TablesDamagedError(TablesError):
    """A committed file is missing, or the ledger cannot be read."""


class SchemaConflictError(TablesError):
    """A file of a table has a column of an incompatible type."""
