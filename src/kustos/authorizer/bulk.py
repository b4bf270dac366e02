"""Many decisions at once, over Arrow columns: `pip install kustos[arrow]`, which only this module needs."""

from typing import Any

from kustos.authorizer.bulk_errors import ArrowMissingError, QuestionColumnError
from kustos.authorizer.standard import StandardAuthorizer

try:
    from kustos.authorizer.bulk_blocks import RESULTS, BulkAuthorizer
except ImportError as error:
    if error.name not in {"numpy", "pyarrow", "pyarrow.compute"}:
        raise
    raise ArrowMissingError(
        f"bulk decisions need `{error.name}`, install it with `pip install kustos[arrow]`"
    ) from error

__all__ = ["RESULTS", "ArrowMissingError", "BulkAuthorizer", "QuestionColumnError", "authorize_many"]


def authorize_many(authorizer: StandardAuthorizer, columns: Any, *, with_rule: bool = False) -> Any:
    """Return the decision on each row of a table of questions, in order.

    `columns` is an Arrow table, a record batch or a mapping of arrays, of strings or dictionaries:
    `principal`, `host`, `operation`, `resource_type` (Kafka's names) and `resource_name` (null asks about
    any resource of the type). The answer is a table of `result` (ALLOWED, DENIED, ERROR) and, if asked
    for, `rule` (the text of the audit line), both dictionary-encoded. Raises `QuestionColumnError`.
    """
    return BulkAuthorizer(authorizer, with_rule=with_rule).authorize(columns)
