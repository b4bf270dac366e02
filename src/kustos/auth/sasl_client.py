"""The SASL client of one connection, as a state machine without IO: it builds request bodies and reads
answers.

The owner of the connection sends the bodies that `start` and `receive` return, with headers, and passes the
body of each answer to `receive` until that returns None.
"""

from dataclasses import dataclass, field
from enum import Enum, auto, unique

from kustos.auth.errors import SaslClientError, SaslErrorCode
from kustos.auth.mechanisms.base import ClientMechanism
from kustos.auth.mechanisms.plain import PLAIN, PlainClient
from kustos.auth.mechanisms.scram import ScramClient
from kustos.auth.mechanisms.scram_keys import ScramHash
from kustos.runtime import Entropy
from kustos.wire import ApiKey, MalformedMessageError, Message, request_codec, response_codec

_HANDSHAKE_VERSION = 1  # version 0 means bare tokens; no broker since 1.0 needs it (KIP-152)


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """The next request: API, version and body; the sender adds the header."""

    api_key: int
    api_version: int
    body: bytes = field(repr=False)


@unique
class _Step(Enum):
    NEW = auto()
    HANDSHAKE_SENT = auto()
    TOKEN_SENT = auto()
    COMPLETE = auto()
    FAILED = auto()


def client_mechanism(
    name: str, username: str, password: str, entropy: Entropy, token_authenticated: bool = False
) -> ClientMechanism:
    """Return the client side of PLAIN or SCRAM; raise `SaslClientError` for any other name."""
    if name == PLAIN:
        return PlainClient(username, password)
    for scram_hash in ScramHash:
        if scram_hash.mechanism_name == name:
            return ScramClient(scram_hash, username, password, entropy, token_authenticated)
    raise SaslClientError(f"SASL mechanism `{name}` is not supported, use PLAIN or SCRAM-SHA-256 or -512")


class SaslClientMachine:
    """One login; `authenticate_version` is the highest version of SaslAuthenticate that both sides support (0
    to 2).

    `session_lifetime_ms` is the lifetime of the session, 0 if unlimited (KIP-368).
    """

    __slots__ = ("_mechanism", "_step", "_version", "session_lifetime_ms")

    def __init__(self, mechanism: ClientMechanism, authenticate_version: int = 2) -> None:
        self._mechanism = mechanism
        self._version = authenticate_version
        self._step = _Step.NEW
        self.session_lifetime_ms = 0

    def __repr__(self) -> str:
        return f"SaslClientMachine({self._mechanism.name}, {self._step.name})"

    @property
    def is_complete(self) -> bool:
        """Whether both sides have accepted."""
        return self._step is _Step.COMPLETE

    def start(self) -> ClientRequest:
        """Return the SaslHandshake; raise `SaslClientError` when used twice."""
        if self._step is not _Step.NEW:
            raise SaslClientError("this login was already begun")
        self._step = _Step.HANDSHAKE_SENT
        codec = request_codec(ApiKey.SASL_HANDSHAKE, _HANDSHAKE_VERSION)
        body = codec.encode(codec.new(mechanism=self._mechanism.name))
        return ClientRequest(int(ApiKey.SASL_HANDSHAKE), _HANDSHAKE_VERSION, body)

    def receive(self, body: bytes) -> ClientRequest | None:
        """Return the request to send after this answer, None when logged in; raise `SaslClientError`."""
        step, self._step = self._step, _Step.FAILED
        if step is _Step.HANDSHAKE_SENT:
            self._read_handshake(body)
            request = self._request(self._mechanism.first())
            self._step = _Step.TOKEN_SENT
            return request
        if step is not _Step.TOKEN_SENT:
            raise SaslClientError("an answer came when none was awaited")
        answer = self._read(ApiKey.SASL_AUTHENTICATE, self._version, body)
        if answer.error_code != SaslErrorCode.NONE:
            raise SaslClientError(
                f"the server refused the login: {answer.error_message or 'it gave no reason'}",
                answer.error_code,
            )
        token = self._mechanism.respond(answer.auth_bytes)
        if token is not None:
            self._step = _Step.TOKEN_SENT
            return self._request(token)
        if not self._mechanism.is_complete:
            raise SaslClientError("the server ended the exchange before it was complete")
        self.session_lifetime_ms = getattr(answer, "session_lifetime", 0)
        self._step = _Step.COMPLETE
        return None

    def _read_handshake(self, body: bytes) -> None:
        answer = self._read(ApiKey.SASL_HANDSHAKE, _HANDSHAKE_VERSION, body)
        if answer.error_code == SaslErrorCode.UNSUPPORTED_SASL_MECHANISM:
            enabled = ", ".join(f"`{name}`" for name in sorted(answer.mechanisms))
            raise SaslClientError(
                f"the server does not enable `{self._mechanism.name}`, only {enabled}", answer.error_code
            )
        if answer.error_code != SaslErrorCode.NONE:
            raise SaslClientError("the server refused the SASL handshake", answer.error_code)

    def _request(self, token: bytes) -> ClientRequest:
        codec = request_codec(ApiKey.SASL_AUTHENTICATE, self._version)
        body = codec.encode(codec.new(auth_bytes=token))
        return ClientRequest(int(ApiKey.SASL_AUTHENTICATE), self._version, body)

    def _read(self, api_key: ApiKey, version: int, body: bytes) -> Message:
        try:
            return response_codec(api_key, version).decode(body).message
        except MalformedMessageError as error:
            raise SaslClientError(f"the server's answer is malformed: {error}") from None
