"""Many decisions at once, over Arrow columns, which `pip install 'kustos[arrow]'` brings."""

from kustos.extras import needs_extra

with needs_extra("arrow", "a decision over Arrow columns"):
    from kustos.pipeline.bulk.blocks import RESULTS, BulkAuthorizer, authorize_many
    from kustos.pipeline.bulk.columns import QuestionColumnError

__all__ = ["RESULTS", "BulkAuthorizer", "QuestionColumnError", "authorize_many"]
