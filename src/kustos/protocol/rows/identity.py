"""APIs that kustos answers itself: versions, logins, ACLs, users and tokens."""

from collections.abc import Callable
from typing import Any, Final

from kustos.acl import ANONYMOUS
from kustos.protocol.common import (
    ALTER_CLUSTER,
    DESCRIBE_CLUSTER,
    EVERY_VERSION,
    TOP,
    TOP_WITH_MESSAGE,
    cluster,
)
from kustos.protocol.exchange import Check
from kustos.protocol.handlers.identity import (
    alter_scram,
    change_token,
    create_token,
    describe_tokens,
    refuse_sasl,
)
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import Gate, Row, ServeLocally
from kustos.protocol.token_messages import NO_TIME
from kustos.wire import ApiKey, Message

CREATED_ACLS: Final = Items("creations", "results", (), message_field="error_message")
DELETED_ACLS: Final = Items("filters", "filter_results", (), message_field="error_message")
UNDESCRIBED_USERS: Final = Items("users", "results", (), extra={"error_message": None})

NO_TOKEN: Final[dict[str, Any]] = {
    **{f"{part}principal_type": ANONYMOUS.principal_type for part in ("", "token_requester_")},
    **{f"{part}principal_name": ANONYMOUS.name for part in ("", "token_requester_")},
    **{f"{which}_timestamp": NO_TIME for which in ("issue", "expiry", "max")},
}
"""Fields of CreateDelegationToken on a broker failure: empty principals."""


def _served(
    api_key: ApiKey,
    check: Check,
    refusal: Refusal,
    unparsable: Callable[[Message], bool] = lambda _: False,
    *,
    revokes: bool = False,
) -> Row:
    """Return the row of an API that kustos answers itself."""
    steps = (Gate(check, cluster), ServeLocally())
    return Row(api_key, refusal, steps, unparsable=unparsable, revokes=revokes)


def _has_unknown_filter(item: Message) -> bool:
    return 0 in {item.resource_type_filter, item.pattern_type_filter, item.operation, item.permission_type}


def _has_unknown_element(item: Message) -> bool:
    codes = {item.resource_type, item.resource_pattern_type, item.operation, item.permission_type}
    return 0 in codes


IDENTITY_ROWS: Final[tuple[Row, ...]] = (
    Row(ApiKey.SASL_HANDSHAKE, TOP, custom_handler=refuse_sasl),
    Row(ApiKey.API_VERSIONS, TOP, (ServeLocally(),)),
    _served(ApiKey.DESCRIBE_ACLS, DESCRIBE_CLUSTER, TOP_WITH_MESSAGE, _has_unknown_filter),
    _served(
        ApiKey.CREATE_ACLS,
        ALTER_CLUSTER,
        Refusal(top_field=None, items=CREATED_ACLS),
        lambda request: any(_has_unknown_element(item) for item in request.creations),
        revokes=True,
    ),
    _served(
        ApiKey.DELETE_ACLS,
        ALTER_CLUSTER,
        Refusal(top_field=None, items=DELETED_ACLS),
        lambda request: any(_has_unknown_filter(item) for item in request.filters),
        revokes=True,
    ),
    Row(ApiKey.SASL_AUTHENTICATE, TOP_WITH_MESSAGE, custom_handler=refuse_sasl),
    Row(ApiKey.CREATE_DELEGATION_TOKEN, Refusal(extra=NO_TOKEN), custom_handler=create_token),
    Row(ApiKey.RENEW_DELEGATION_TOKEN, TOP, custom_handler=change_token),
    Row(ApiKey.EXPIRE_DELEGATION_TOKEN, TOP, custom_handler=change_token),
    Row(ApiKey.DESCRIBE_DELEGATION_TOKEN, TOP, custom_handler=describe_tokens),
    _served(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        DESCRIBE_CLUSTER,
        # a nameless result for each requested user; Kafka 4.3.1 never answers a request for all (null)
        Refusal(extra={"error_message": None}, items=UNDESCRIBED_USERS, both_below=EVERY_VERSION),
    ),
    Row(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, Refusal(top_field=None), custom_handler=alter_scram),
)
