"""Converts delegation token requests between messages and metadata values.

Refusals have no text. A token is described with all fields first, then converted to the requested version.
"""

from collections.abc import Sequence
from typing import Final

from kustos.acl import KafkaPrincipal
from kustos.metadata.control import (
    ApiError,
    TokenChangeResult,
    TokenCreateResult,
    TokenCreation,
    TokenDescription,
)
from kustos.protocol.shapes import fitted
from kustos.wire import ApiKey, ErrorCode, Message, response_codec

NO_TIME: Final = -1
"""Kafka's timestamp if a broker refused before it contacted a controller."""

_FULL_DESCRIPTION: Final = 3
"""The version of DescribeDelegationToken that has every field."""


class NoPrincipalError(ValueError):
    """A request names a principal without a type, which makes Kafka's brokers fail."""


def creation_of(request: Message, requester: KafkaPrincipal) -> TokenCreation:
    """Return the requested creation; raise `NoPrincipalError` for an owner without a type.

    If the request names no owner, the requester is the owner.
    """
    owner = requester
    name = request.get("owner_principal_name")
    if name:
        if request.owner_principal_type is None:
            raise NoPrincipalError("the owner has no type")
        owner = KafkaPrincipal(request.owner_principal_type, name)
    renewers = tuple(KafkaPrincipal(each.principal_type, each.principal_name) for each in request.renewers)
    return TokenCreation(requester, owner, renewers, request.max_lifetime)


def refused_creation(message_type: type[Message], creation: TokenCreation, code: int) -> Message:
    """Return the answer of a broker that refuses without contacting a controller."""
    return fitted(
        message_type,
        {
            "error_code": code,
            **_principals(creation.owner, creation.requester),
            "issue_timestamp": NO_TIME,
            "expiry_timestamp": NO_TIME,
            "max_timestamp": NO_TIME,
        },
    )


def created_token(message_type: type[Message], result: TokenCreateResult) -> Message:
    """Return the answer to CreateDelegationToken; if the controller refuses, all times are 0."""
    token = result.token
    values = {"error_code": _code(result.error), **_principals(result.owner, result.requester)}
    if token is not None:
        values |= {
            "issue_timestamp": token.issue_timestamp_ms,
            "expiry_timestamp": token.expiration_timestamp_ms,
            "max_timestamp": token.max_timestamp_ms,
            "token_id": token.token_id,
            "hmac": result.hmac,
        }
    return fitted(message_type, values)


def changed_token(message_type: type[Message], result: TokenChangeResult) -> Message:
    """Return the answer to RenewDelegationToken or ExpireDelegationToken."""
    return message_type(error_code=_code(result.error), expiry_timestamp=result.expiry_timestamp_ms)


def owners_of(request: Message) -> list[KafkaPrincipal] | None:
    """Return the owners whose tokens DescribeDelegationToken requests, None for all owners."""
    if request.owners is None:
        return None
    return [KafkaPrincipal(each.principal_type, each.principal_name) for each in request.owners]


def described_tokens(found: Sequence[TokenDescription]) -> Message:
    """Return the tokens with the fields of all versions."""
    root = _full_description()
    token, renewer = root.ELEMENTS["tokens"], root.ELEMENTS["tokens"].ELEMENTS["renewers"]
    return root(
        tokens=[
            token(
                **_principals(
                    KafkaPrincipal.parse(each.token.owner), KafkaPrincipal.parse(each.token.requester)
                ),
                issue_timestamp=each.token.issue_timestamp_ms,
                expiry_timestamp=each.token.expiration_timestamp_ms,
                max_timestamp=each.token.max_timestamp_ms,
                token_id=each.token.token_id,
                hmac=each.hmac,
                renewers=[
                    renewer(principal_type=parsed.principal_type, principal_name=parsed.name)
                    for parsed in map(KafkaPrincipal.parse, each.token.renewers)
                ],
            )
            for each in found
        ]
    )


def undescribed_tokens(code: int) -> Message:
    """Return an answer without tokens, with an error code."""
    return _full_description()(error_code=code)


def shown_token(message_type: type[Message], full: Message) -> Message:
    """Return a fully described token in the answer's version."""
    return fitted(message_type.ELEMENTS["tokens"], {name: getattr(full, name) for name in full.FIELDS})


def parties_of(token: Message) -> set[KafkaPrincipal]:
    """Return the principals that may see a described token without an ACL: owner, requester, renewers."""
    return {
        KafkaPrincipal(token.principal_type, token.principal_name),
        KafkaPrincipal(token.token_requester_principal_type, token.token_requester_principal_name),
        *(KafkaPrincipal(each.principal_type, each.principal_name) for each in token.renewers),
    }


def _full_description() -> type[Message]:
    return response_codec(ApiKey.DESCRIBE_DELEGATION_TOKEN, _FULL_DESCRIPTION).root


def _principals(owner: KafkaPrincipal, requester: KafkaPrincipal) -> dict[str, object]:
    return {
        "principal_type": owner.principal_type,
        "principal_name": owner.name,
        "token_requester_principal_type": requester.principal_type,
        "token_requester_principal_name": requester.name,
    }


def _code(error: ApiError | None) -> int:
    return (ErrorCode.none if error is None else error.code).value
