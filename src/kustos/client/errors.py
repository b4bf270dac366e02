"""Errors of outgoing connections.

`KafkaError` is an answer of the cluster; all other errors mean that there was no answer. Messages never
contain credentials.
"""

import os
import re
from dataclasses import dataclass
from typing import Final

from kustos.acl import AclOperation
from kustos.wire import ErrorCode

_ERROR_NUMBER: Final = re.compile(r"\[Errno (\d{1,4})\]")

NONE: Final = 0
UNSUPPORTED_VERSION: Final = int(ErrorCode.unsupported_version)
NOT_CONTROLLER: Final = int(ErrorCode.not_controller)
RESOURCE_NOT_FOUND: Final = int(ErrorCode.resource_not_found)
SECURITY_DISABLED: Final = int(ErrorCode.security_disabled)

AUTHORIZATION_ERRORS: Final = frozenset(
    int(code) for code in ErrorCode if code.name.endswith("authorization_failed")
)
"""TOPIC_, GROUP_, CLUSTER_, TRANSACTIONAL_ID_ and DELEGATION_TOKEN_AUTHORIZATION_FAILED."""


class ClientError(Exception):
    """The base class of this package's errors."""


class CannotConnectError(ClientError):
    """No peer answers at this address, or it does not use Kafka's protocol."""


class UnreachableError(CannotConnectError):
    """The connection was refused or timed out, or the host has no address at the moment: a retry may
    succeed."""


class ConnectionClosedError(ClientError):
    """The connection ended before the answer; the request may or may not have taken effect."""


class RequestTimedOutError(ConnectionClosedError):
    """The answer did not arrive in time; the connection is closed, because answers arrive in order."""


class ProtocolViolationError(ConnectionClosedError):
    """The peer violated Kafka's protocol; the connection is closed."""


class AuthenticationFailedError(ClientError):
    """The cluster refused the client's identity, or could not prove its own."""


class UnsupportedVersionError(ClientError):
    """Client and cluster have no version of an API in common."""


class SettingsError(ClientError, ValueError):
    """A client setting is missing, unknown or unusable; the text names the key, never its value."""


@dataclass(frozen=True, slots=True)
class Requester:
    """The sender of a request on the cluster resource, and the operation that the request needs.

    `principal` is None if only the cluster knows it; `who` then describes the sender.
    """

    principal: str | None
    who: str
    operation: AclOperation
    bootstrap_servers: str
    logs_in: bool


class KafkaError(ClientError):
    """An error code in the cluster's answer: the number, Kafka's name for it, the cluster's text.

    `requester` is set for requests of the admin client.
    """

    def __init__(self, code: int, message: str | None = None, requester: Requester | None = None) -> None:
        self.requester: Final = requester
        self.code: Final = code
        self.name: Final = error_name(code)
        self.message: Final = message or ""
        super().__init__(f"{self.name}: {message}" if message else self.name)

    @property
    def is_authorization_failure(self) -> bool:
        """Whether the cluster denied authorization."""
        return self.code in AUTHORIZATION_ERRORS


def error_name(code: int) -> str:
    """Return Kafka's name of an error code, such as `CLUSTER_AUTHORIZATION_FAILED`."""
    try:
        return ErrorCode(code).name.upper()
    except ValueError:
        return f"UNKNOWN_ERROR_CODE({code})"


def raise_for(code: int, message: str | None = None) -> None:
    """Raise `KafkaError` unless the code is NONE."""
    if code != NONE:
        raise KafkaError(code, message)


def reason_in_words(error: BaseException) -> str:
    """Return the reason why a connection failed, without its address."""
    number = getattr(error, "errno", None)
    # asyncio puts the address into the text; the error number leads to the system's message
    plain = os.strerror(number) if isinstance(number, int) and number > 0 else None
    text = plain or getattr(error, "strerror", None) or str(error) or "the connection was lost"
    if "[Errno " in text:
        # asyncio joins the errors of several addresses of a host
        numbers = dict.fromkeys(int(each) for each in _ERROR_NUMBER.findall(text))
        text = ", ".join(os.strerror(each) for each in numbers)
    return text[:1].lower() + text[1:]
