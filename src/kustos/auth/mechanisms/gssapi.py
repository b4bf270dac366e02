"""GSSAPI (RFC 4752), the server side, as Java's SaslServer speaks it for Kafka; by MIT's library.

First the tokens of Kerberos pass until the context is established. Then the server offers, wrapped, the
security layers that it has and the size of its buffer; only "no layer" is offered, as in Kafka. The client
answers with its choice, also wrapped, which proves that it has the ticket's key: so a token that somebody
replays leads nowhere. The authorization id in that answer is ignored, as in Kafka.

The library reads the keytab and may write its replay cache, so each of its calls is a `Beside`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto, unique
from pathlib import Path
from typing import Any, Final

from kustos.auth.errors import CredentialsError, SaslMechanismError
from kustos.auth.mechanisms.base import Beside, Challenge, MechanismFactory, MechanismStep, Proven
from kustos.extras import needs_extra

GSSAPI: Final = "GSSAPI"

_NO_SECURITY_LAYER: Final = 1
_OFFER: Final = bytes([_NO_SECURITY_LAYER]) + (65_536).to_bytes(3, "big")
"""Java's default of `javax.security.sasl.qop` and `javax.security.sasl.maxbuffer`; the size has no effect
without a layer."""

_CHOICE_BYTES: Final = 4
"""The layer and the size of the client's buffer; an authorization id may follow."""


@unique
class _Stage(Enum):
    CONTEXT = auto()
    """The context is not established."""
    EMPTY = auto()
    """Java's client answers the last token of the context with an empty one."""
    CHOICE = auto()
    """The layers were offered."""
    DONE = auto()


@dataclass(frozen=True, slots=True)
class GssapiCredentials:
    """The key of a service, from its keytab, which is read anew for each login."""

    principal: str
    _credentials: Any = field(repr=False)

    @classmethod
    def acquire(cls, keytab: Path, principal: str) -> "GssapiCredentials":
        """Return the credentials of `service/host@REALM`; raise `CredentialsError` if there are none."""
        import gssapi

        try:
            name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            found = gssapi.Credentials(
                name=name, mechs=[gssapi.MechType.kerberos], usage="accept", store={"keytab": str(keytab)}
            )
        except gssapi.raw.GSSError as error:
            raise CredentialsError(
                f"the keytab `{keytab}` has no usable key of `{principal}`: {error}"
            ) from None
        return cls(principal, found)

    def context(self) -> Any:
        """Return a new context that accepts a client."""
        import gssapi

        return gssapi.SecurityContext(creds=self._credentials, usage="accept")


class GssapiServer:
    """One GSSAPI exchange."""

    __slots__ = ("_claimed_name", "_context", "_credentials", "_stage")

    def __init__(self, credentials: GssapiCredentials) -> None:
        self._credentials = credentials
        self._context: Any = None
        self._claimed_name: str | None = None
        self._stage = _Stage.CONTEXT

    @classmethod
    def factory(cls, credentials: GssapiCredentials) -> MechanismFactory:
        """Return a factory of exchanges with these credentials, one per connection."""
        return lambda: cls(credentials)

    @property
    def claimed_name(self) -> str | None:
        """The client's principal, once its ticket was read."""
        return self._claimed_name

    def respond(self, token: bytes) -> Beside:
        """Return the call of the library that answers this token; it raises `SaslMechanismError`."""
        answer: dict[_Stage, Callable[[bytes], MechanismStep]] = {
            _Stage.CONTEXT: self._accept,
            _Stage.EMPTY: self._offer,
            _Stage.CHOICE: self._prove,
        }
        if self._stage not in answer:
            raise SaslMechanismError("GSSAPI has ended")
        return Beside(lambda: _checked(answer[self._stage], token))

    def _accept(self, token: bytes) -> MechanismStep:
        if self._context is None:
            self._context = self._credentials.context()
        answer = self._context.step(token)
        if not self._context.complete:
            return Challenge(answer or b"")
        self._claimed_name = _name_of(self._context)
        self._stage = _Stage.EMPTY
        return Challenge(answer) if answer else self._offer(b"")

    def _offer(self, token: bytes) -> Challenge:
        if token:
            raise SaslMechanismError("a token follows the end of the GSSAPI context, none is expected")
        self._stage = _Stage.CHOICE
        return Challenge(self._context.wrap(_OFFER, False).message)

    def _prove(self, token: bytes) -> Proven:
        choice = self._context.unwrap(token).message
        self._stage = _Stage.DONE
        if len(choice) < _CHOICE_BYTES or choice[0] != _NO_SECURITY_LAYER:
            raise SaslMechanismError("the client did not choose GSSAPI without a security layer")
        if not self._claimed_name:
            raise SaslMechanismError("the GSSAPI context has no name")
        return Proven(b"", self._claimed_name, has_last_token=False)


def require_gssapi() -> None:
    """Raise `ExtraMissingError` if the library is not installed."""
    with needs_extra("gssapi", "GSSAPI"):
        import gssapi  # noqa: F401


def default_realm() -> str:
    """Return the realm of this machine, by `krb5.conf`; empty if it has none, as in Kafka."""
    import gssapi

    try:
        name = gssapi.Name("any", gssapi.NameType.kerberos_principal).canonicalize(gssapi.MechType.kerberos)
    except gssapi.raw.GSSError:
        return ""
    return str(name).partition("@")[2]


def _checked(answer: Callable[[bytes], MechanismStep], token: bytes) -> MechanismStep:
    """Return the answer; whatever the library refuses is a refused login."""
    import gssapi

    try:
        return answer(token)
    except gssapi.raw.GSSError as error:
        raise SaslMechanismError(f"GSSAPI: {error}") from None


def _name_of(context: Any) -> str:
    """Return the client's principal; raise `SaslMechanismError` for none, or for one of odd characters."""
    import gssapi

    if context.actual_flags & gssapi.RequirementFlag.anonymity:
        raise SaslMechanismError("the GSSAPI client is anonymous")
    name = str(context.initiator_name)
    # the library writes `\` before a `/` or `@` within a part, which rules would take for a separator
    if "\\" in name:
        raise SaslMechanismError("the GSSAPI client's name has a separator within a part")
    return name
