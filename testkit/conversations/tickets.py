"""The client's side of a Kerberos login, by MIT's library: tickets of the KDC that the environment names."""

from dataclasses import dataclass, field
from typing import Any

from testkit.kdc import REALM


@dataclass(slots=True)
class Ticket:
    """A context of one user for one service."""

    user: str = "alice"
    service: str = "kafka/localhost"
    mutual: bool = True
    _context: Any = field(default=None, repr=False)
    _answer: bytes | None = None

    def next(self) -> bytes:
        """Return the next token of the context, empty if it has none."""
        import gssapi

        if self._context is None:
            kind = gssapi.NameType.kerberos_principal
            flags = int(gssapi.RequirementFlag.integrity)
            if self.mutual:
                flags |= gssapi.RequirementFlag.mutual_authentication
            keytab = KEYTABS[self.user]
            # tickets of one KDC are of no use at the next
            store: Any = {"client_keytab": keytab, "ccache": f"MEMORY:{keytab}"}
            name = gssapi.Name(f"{self.user}@{REALM}", kind)
            credentials = gssapi.Credentials(name=name, usage="initiate", store=store)
            self._context = gssapi.SecurityContext(
                name=gssapi.Name(f"{self.service}@{REALM}", kind),
                creds=credentials,
                usage="initiate",
                flags=flags,
                mech=gssapi.MechType.kerberos,
            )
            self._answer = self._context.step()
        answer, self._answer = self._answer, None
        return answer or b""

    def take(self, token: bytes) -> None:
        """Take in a token of the server."""
        if not self._context.complete:
            self._answer = self._context.step(token)

    def wrapped(self, choice: bytes, damaged: bool) -> bytes:
        """Return a message of the client, with its checksum; `damaged`: another one."""
        message: bytes = self._context.wrap(choice, False).message
        return message[:-1] + bytes([message[-1] ^ 1]) if damaged else message

    def described(self, token: bytes) -> bytes:
        """Return what a token of the server means: the plaintext where it can be read."""
        if self._context is None or not self._context.complete:
            return b"(a token of the context)"
        plain: bytes = self._context.unwrap(token).message
        return b"(wrapped) " + plain


KEYTABS: dict[str, str] = {}
"""User → path of the keytab; the library has one environment for the whole process."""
