"""GSSAPI with a real KDC: tokens of strangers, tickets that were changed on their way, choices of a layer.

The first byte chooses. MIT's library is not instrumented: what it refuses is in the coverage, how is not.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import gssapi

from fuzz.targets import FoundError, require
from kustos.auth import GssapiCredentials, GssapiServer, SaslMechanismError
from kustos.auth.mechanisms.base import BlockingStep, Challenge, MechanismStep, Proven
from kustos.auth.mechanisms.gssapi import _Stage
from testkit.kdc import REALM, Kdc

INPUT_MAX_BYTES: Final = 2_048
SERVICE: Final = f"kafka/localhost@{REALM}"
CHOICE_BYTES: Final = 4
CHANGES_MAX: Final = 4
"""Most bytes of a token that are changed: with more it is garbage."""

USED: Final = 2_000
"""How many inputs share an established context; a new one costs a millisecond."""

_SEPARATOR: Final = b"\xff\xfe\xff"


class Realm:
    """A KDC, the service's key, and tickets of one user; lives as long as the search."""

    def __init__(self) -> None:
        self.kdc = Kdc(Path(tempfile.mkdtemp(prefix="kustos-fuzz-")))
        os.environ.update(self.kdc.environment)
        # a replay cache on disk would be what is measured; that replays lead nowhere is a test of its own
        os.environ["KRB5RCACHENAME"] = "none:"
        self.kdc.__enter__()
        self.credentials = GssapiCredentials.acquire(self.kdc.keytab("kafka/localhost"), SERVICE)
        kind = gssapi.NameType.kerberos_principal
        store: Any = {"client_keytab": str(self.kdc.keytab("alice")), "ccache": "MEMORY:fuzz"}
        self.alice = gssapi.Credentials(
            name=gssapi.Name(f"alice@{REALM}", kind), usage="initiate", store=store
        )
        self.service = gssapi.Name(SERVICE, kind)
        self.kdc.keytab("kafka/elsewhere")
        elsewhere = gssapi.Name(f"kafka/elsewhere@{REALM}", kind)
        self.of_elsewhere = self.client(elsewhere).step() or b""
        self.of_another_context = self.pair()[0].wrap(b"\1\0\0\0", False).message
        self._left = 0

    def client(self, service: gssapi.Name | None = None) -> gssapi.SecurityContext:
        """Return a new context of alice, by default for the service that is searched."""
        flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
        return gssapi.SecurityContext(
            name=service or self.service,
            creds=self.alice,
            usage="initiate",
            flags=int(flags),
            mech=gssapi.MechType.kerberos,
        )

    def pair(self) -> tuple[gssapi.SecurityContext, Any]:
        """Return both ends of a new context."""
        client, server = self.client(), self.credentials.context()
        client.step(server.step(client.step()))
        return client, server

    def established(self) -> tuple[gssapi.SecurityContext, Any]:
        """Return both ends of a context that most inputs share."""
        if self._left == 0:
            self._pair, self._left = self.pair(), USED
        self._left -= 1
        return self._pair


@cache
def realm() -> Realm:
    """Return the realm, started when the first input needs it."""
    return Realm()


def check(data: bytes) -> None:
    """Raise if a stranger is proven, or if a choice means something else than it says."""
    # what is refused inside the library reaches no new code, so that every kind must be tried by chance
    KINDS[data[0] % len(KINDS) if data else 0](data[1:])


def changed(token: bytes, data: bytes) -> bytes:
    """Return the token with bytes changed by (position, value): two bytes and one each."""
    out = bytearray(token)
    for at in range(0, min(len(data), 3 * CHANGES_MAX) - 2, 3):
        out[int.from_bytes(data[at : at + 2]) % len(out)] ^= data[at + 2]
    return bytes(out)


def said(server: GssapiServer, token: bytes) -> MechanismStep | None:
    """Return the step of a token, None if it is refused as every bad token is."""
    step = server.respond(token)
    require(isinstance(step, BlockingStep), "a step is not a blocking step")
    try:
        found = step.run()
    except SaslMechanismError:
        return None
    if isinstance(found, BlockingStep):
        raise FoundError("a blocking step returns another one")
    return found


def garbage(data: bytes) -> None:
    """Require that tokens without a ticket lead nowhere."""
    server = GssapiServer(realm().credentials)
    for token in data.split(_SEPARATOR, 3):
        step = said(server, token)
        if step is None:
            break
        require(isinstance(step, Challenge), "a stranger is proven")
    require(server.claimed_name is None, "a stranger has a name")


def changed_ticket(data: bytes) -> None:
    """Change a real ticket; it is alice's or nobody's, and proves nothing yet."""
    server = GssapiServer(realm().credentials)
    step = said(server, changed(realm().client().step() or b"", data))
    require(not isinstance(step, Proven), "a ticket alone proves somebody")
    require(server.claimed_name in {None, f"alice@{REALM}"}, "a changed ticket is another's")
    if step is not None:
        for later in (b"", data):
            step = None if step is None else said(server, later)
            require(not isinstance(step, Proven), "what is not wrapped proves somebody")


def ticket_of_another(data: bytes) -> None:
    """Change a ticket that is good elsewhere."""
    garbage(changed(realm().of_elsewhere, data))


def choosing() -> tuple[GssapiServer, gssapi.SecurityContext]:
    """Return a server that has offered its layers, and the client's end."""
    client, context = realm().established()
    server = GssapiServer(realm().credentials)
    server._context, server._stage, server._claimed_name = context, _Stage.CHOICE, f"alice@{REALM}"
    return server, client


def wrapped(data: bytes) -> None:
    """Require that exactly the choice of no layer proves."""
    server, client = choosing()
    step = said(server, client.wrap(data, False).message)
    chosen = len(data) >= CHOICE_BYTES and data[0] == 1
    require(isinstance(step, Proven) == chosen, "a choice means something else")
    if isinstance(step, Proven):
        require(step.authorization_id == f"alice@{REALM}", "an authorization id is believed")


def unwrapped(data: bytes) -> None:
    """Require that bytes that alice did not wrap prove nobody."""
    server, _ = choosing()
    require(said(server, data) is None, "what nobody wrapped is believed")


def wrapped_elsewhere(data: bytes) -> None:
    """Change what alice wrapped in another context."""
    unwrapped(changed(realm().of_another_context, data))


KINDS: Final[tuple[Callable[[bytes], None], ...]] = (
    garbage, ticket_of_another, changed_ticket, wrapped, unwrapped, wrapped_elsewhere
)  # fmt: skip


def seeds() -> Iterator[bytes]:
    """Yield what is no ticket, changes, and choices."""
    for kind in range(len(KINDS)):
        yield bytes([kind])
        yield (
            bytes([kind])
            + b"\x60\x0b\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"
            + _SEPARATOR
            + b"\x01\0\0\0"
        )
        yield bytes([kind]) + b"NTLMSSP\0\1"
        for choice in (b"\1\0\0\0", b"\1\1\0\0alice", b"\2\0\1\0", b"\0\0\0\0", b"\1\0\0"):
            yield bytes([kind]) + choice
