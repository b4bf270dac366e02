"""Requests to a side in one call each, with fields by name."""

from typing import Any

from kustos.wire import request_codec
from kustos.wire.api_keys import ApiKey
from testkit.equality.sides import Side
from testkit.equality.stories import message_of


def ask(side: Side, user: str, api: ApiKey, version: int, **fields: Any) -> Any:
    """Return the answer to a request of this version."""
    codec = request_codec(api, version)
    return side.ask(user, api, codec, message_of(codec.root, fields, lambda value: value))


def create_token(side: Side, user: str, owner: str | None = None) -> Any:
    """Return the answer to the creation of a delegation token that `User:bob` may renew."""
    fields: dict[str, Any] = {"owner_principal_type": owner and "User", "owner_principal_name": owner}
    renewers = [{"principal_type": "User", "principal_name": "bob"}]
    answer = ask(side, user, ApiKey.CREATE_DELEGATION_TOKEN, 3, renewers=renewers, max_lifetime=-1, **fields)
    assert answer.error_code == 0
    return answer
