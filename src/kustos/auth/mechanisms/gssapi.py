"""GSSAPI (RFC 4752) for servers and clients, compatible with Java's SASL in Kafka; it uses MIT's library.

First, both sides exchange Kerberos tokens until the context is established. Then the server sends, wrapped,
its security layers and the size of its buffer; as in Kafka, it offers only "no layer". The client answers
with its choice, also wrapped, which proves that it has the ticket's key: so a replayed token is useless. The
authorization id in that answer is ignored, as in Kafka.

The library reads the keytab and may write its replay cache, so each of its calls is a `BlockingStep` for the
server. For the client it may contact a KDC, so the driver of a `GssapiClient` calls it outside the event
loop.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto, unique
from pathlib import Path
from typing import Any, Final

from kustos.auth.errors import (
    CredentialsError,
    PrincipalBuilderError,
    SaslClientError,
    SaslMechanismError,
)
from kustos.auth.mechanisms.base import (
    UNGUESSABLE,
    BlockingStep,
    Challenge,
    Claimant,
    MechanismFactory,
    MechanismStep,
    Proven,
)
from kustos.extras import needs_extra

GSSAPI: Final = "GSSAPI"

_NO_SECURITY_LAYER: Final = 1
_OFFER: Final = bytes([_NO_SECURITY_LAYER]) + (65_536).to_bytes(3, "big")
"""Java's default of `javax.security.sasl.qop` and `javax.security.sasl.maxbuffer`; the size has no effect
without a layer."""

_CHOSEN: Final = bytes([_NO_SECURITY_LAYER, 0, 0, 0])
"""The client's choice: without a layer the size must be 0. No authorization id: it is the principal's."""

_KRB5_ERRORS_BEGIN: Final = 2**32 - 1_765_328_384
"""The offset of the codes of RFC 4120, section 7.5.9, in MIT's numbers."""

_TICKET_REFUSED: Final = frozenset(_KRB5_ERRORS_BEGIN + code for code in (*range(31, 39), 41))
"""The codes for a ticket that was read and refused: it does not decrypt, has expired, is not valid yet, was
replayed or modified, or is for another service, client, time or address. Other codes mean bytes that are not
a ticket, or a keytab that lacks the key (45) or cannot be read."""

_CHOICE_BYTES: Final = 4
"""The layer and the size of the client's buffer; an authorization id may follow."""


@unique
class _Awaits(Enum):
    """The next message that the client expects."""

    CONTEXT = auto()
    """The server's part of the context."""
    OFFER = auto()
    """The layers that the server has."""
    OUTCOME = auto()
    """The server's confirmation of the choice."""
    NOTHING = auto()


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
    """The key of a service, from its keytab, which is read again for each login."""

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

    def claim(self, token: bytes) -> Claimant:
        """Return `UNGUESSABLE`: a client that guesses a password asks the KDC, not kustos."""
        del token
        return UNGUESSABLE

    def respond(self, token: bytes) -> BlockingStep:
        """Return the library call that answers this token; it raises `SaslMechanismError`."""
        answer: dict[_Stage, Callable[[bytes], MechanismStep]] = {
            _Stage.CONTEXT: self._accept,
            _Stage.EMPTY: self._offer,
            _Stage.CHOICE: self._prove,
        }
        if self._stage not in answer:
            raise SaslMechanismError("GSSAPI has ended", was_judged=False)
        return BlockingStep(lambda: _checked(answer[self._stage], token))

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
            text = "a token follows the end of the GSSAPI context, none is expected"
            raise SaslMechanismError(text, was_judged=False)
        self._stage = _Stage.CHOICE
        return Challenge(self._context.wrap(_OFFER, False).message)

    def _prove(self, token: bytes) -> Proven:
        choice = self._context.unwrap(token).message
        self._stage = _Stage.DONE
        if len(choice) < _CHOICE_BYTES or choice[0] != _NO_SECURITY_LAYER:
            text = "the client did not choose GSSAPI without a security layer"
            raise SaslMechanismError(text, was_judged=False)
        if not self._claimed_name:
            raise PrincipalBuilderError("the GSSAPI context has no name")
        return Proven(b"", self._claimed_name, has_last_token=False)


@dataclass(frozen=True, slots=True)
class GssapiTickets:
    """The node's own Kerberos credentials, and the lifetime of their ticket."""

    principal: str
    lifetime_s: int
    _credentials: Any = field(repr=False)

    @classmethod
    def from_keytab(cls, keytab: str, principal: str, cache: str) -> "GssapiTickets":
        """Log in at the KDC with a keytab and store the ticket in this cache; raise `CredentialsError`."""
        return cls._acquired({"client_keytab": keytab, "ccache": cache}, principal)

    @classmethod
    def from_cache(cls, cache: str | None, principal: str | None) -> "GssapiTickets":
        """Return the tickets of a cache (None: the default cache); raise `CredentialsError` if it has
        none."""
        return cls._acquired({} if cache is None else {"ccache": cache}, principal)

    @classmethod
    def _acquired(cls, store: dict[str | bytes, str | bytes], principal: str | None) -> "GssapiTickets":
        import gssapi

        try:
            name = None
            if principal is not None:
                name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            found: Any = gssapi.Credentials(
                name=name, mechs=[gssapi.MechType.kerberos], usage="initiate", store=store or None
            )
            lifetime_s = found.lifetime
            owner = str(found.name)
        except gssapi.raw.GSSError as error:
            raise CredentialsError(f"Kerberos gives no ticket: {error}") from None
        if not lifetime_s:
            raise CredentialsError("Kerberos gives no ticket that is still valid")
        return cls(owner, lifetime_s, found)

    def context(self, service: str, host: str) -> Any:
        """Return a new context to `service` on `host` with mutual authentication."""
        import gssapi

        return gssapi.SecurityContext(
            name=gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service),
            creds=self._credentials,
            mech=gssapi.MechType.kerberos,
            flags=gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity,
            usage="initiate",
        )


class GssapiClient:
    """The client side of one exchange. Each call may block: the first may ask the KDC for a ticket."""

    __slots__ = ("_awaits", "_context", "_host", "_service", "_tickets")

    name = GSSAPI

    def __init__(self, tickets: GssapiTickets, service: str, host: str) -> None:
        self._tickets = tickets
        self._service = service
        self._host = host
        self._context: Any = None
        self._awaits = _Awaits.CONTEXT

    def __repr__(self) -> str:
        return f"GssapiClient({self._service}@{self._host})"

    @property
    def is_complete(self) -> bool:
        """Whether the server authenticated itself and accepted the choice."""
        return self._awaits is _Awaits.NOTHING

    def first(self) -> bytes:
        """Return the ticket for the service; raise `SaslClientError`."""
        import gssapi

        try:
            self._context = self._tickets.context(self._service, self._host)
            token: bytes | None = self._context.step()
        except gssapi.raw.GSSError as error:
            raise SaslClientError(f"no ticket for `{self._service}/{self._host}`: {error}") from None
        return token or b""

    def respond(self, token: bytes) -> bytes | None:
        """Return the next token, None at the end; raise `SaslClientError`."""
        import gssapi

        try:
            return self._answer(token)
        except gssapi.raw.GSSError as error:
            raise SaslClientError(f"GSSAPI: {error}") from None

    def _answer(self, token: bytes) -> bytes | None:
        match self._awaits:
            case _Awaits.CONTEXT:
                return self._establish(token)
            case _Awaits.OFFER:
                return self._choose(self._context.unwrap(token).message)
            case _Awaits.OUTCOME if not token:
                self._awaits = _Awaits.NOTHING
                return None
            case _:
                raise SaslClientError("the server continues after GSSAPI has ended")

    def _establish(self, token: bytes) -> bytes:
        import gssapi

        answer: bytes | None = self._context.step(token)
        if self._context.complete:
            if not self._context.actual_flags & gssapi.RequirementFlag.mutual_authentication:
                raise SaslClientError("the server did not prove who it is")
            self._awaits = _Awaits.OFFER
        elif not answer:
            raise SaslClientError("the server's GSSAPI token does not continue the exchange")
        return answer or b""

    def _choose(self, offer: bytes) -> bytes:
        if len(offer) != _CHOICE_BYTES or not offer[0] & _NO_SECURITY_LAYER:
            raise SaslClientError("the server wants a security layer, which Kafka does not use")
        self._awaits = _Awaits.OUTCOME
        chosen: bytes = self._context.wrap(_CHOSEN, False).message
        return chosen


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
    """Return the answer; any error of the library refuses the login. Only a refused ticket counts as
    judged."""
    import gssapi

    try:
        return answer(token)
    except gssapi.raw.GSSError as error:
        is_bad_mic = isinstance(error, gssapi.exceptions.BadMICError)
        was_judged = is_bad_mic or error.min_code in _TICKET_REFUSED
        raise SaslMechanismError(f"GSSAPI: {error}", was_judged=was_judged) from None


def _name_of(context: Any) -> str:
    """Return the client's principal; raise `PrincipalBuilderError` if there is none, or for invalid
    characters."""
    import gssapi

    if context.actual_flags & gssapi.RequirementFlag.anonymity:
        raise PrincipalBuilderError("the GSSAPI client is anonymous")
    name = str(context.initiator_name)
    # the library writes `\` before a `/` or `@` within a part, which rules would parse as a separator
    if "\\" in name:
        raise PrincipalBuilderError("the GSSAPI client's name has a separator within a part")
    return name
