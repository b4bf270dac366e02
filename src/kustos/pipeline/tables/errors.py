"""What can go wrong with the tables; whatever is raised, what had been committed stands."""

from kustos.pipeline.errors import PipelineError


class TablesError(PipelineError):
    """The folder of tables cannot be used as asked; the text says why and what to do."""


class TablesInUseError(TablesError):
    """Another run is writing to the tables."""


class TablesDamagedError(TablesError):
    """What the ledger says was committed is not there, or the ledger cannot be read."""


class SchemaConflictError(TablesError):
    """A file of a table has a column of another type, which cannot be read as ours."""
