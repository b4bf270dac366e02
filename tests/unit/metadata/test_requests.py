"""A request that no batch of the log can hold is refused whole: every item fails, and as what it was."""

from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.metadata.control import (
    AclCreated,
    AclsDeleted,
    ApiError,
    ScramAlterResult,
    TokenChangeResult,
    TokenCreateResult,
)
from kustos.metadata.errors import BatchTooLargeError
from kustos.metadata.store.requests import refused
from kustos.wire import ErrorCode
from tests.unit.metadata.test_control_acls import acl

ERROR = ApiError(ErrorCode.unknown_server_error)
ANN, BOB = KafkaPrincipal("User", "ann"), KafkaPrincipal("User", "bob")


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (AclCreated(), AclCreated(ERROR)),
        (AclsDeleted((acl(),)), AclsDeleted((), ERROR)),
        (ScramAlterResult("ann"), ScramAlterResult("ann", ERROR)),
        (TokenChangeResult(77), TokenChangeResult(0, ERROR)),
        (TokenCreateResult(ANN, BOB, hmac=b"secret"), TokenCreateResult(ANN, BOB, error=ERROR)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_nothing_of_what_was_not_done_is_in_the_answer(done: Any, told: Any) -> None:
    assert refused((done, done), BatchTooLargeError("x")) == (told, told)


def test_a_sweep_that_no_batch_holds_is_no_answer() -> None:
    reason = BatchTooLargeError("x")
    with pytest.raises(BatchTooLargeError) as caught:
        refused((True,), reason)
    assert caught.value is reason
