"""What can be wrong with a table of questions, or with asking one."""

from kustos.authorizer.spi import AuthorizerError


class QuestionColumnError(AuthorizerError, ValueError):
    """Columns of questions that are not those asked for; the text names the column."""


class ArrowMissingError(AuthorizerError, ImportError):
    """The packages that hold columns are not installed; the text says how to."""
