"""TLS: records for the handshake of a listener that wants certificates, and the stores of its keys.

The first byte chooses. A handshake is OpenSSL's, in memory and not instrumented; JKS and PEM are read by us.
"""

import hashlib
import ssl
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_der_public_key

from fuzz.targets import require
from kustos.auth import DefaultKafkaPrincipalBuilder, ListenerPrincipals
from kustos.auth.mapping import kerberos_shortener, ssl_principal_mapper
from kustos.gateway.listener.handshakes import refusal_by_first_bytes, refusal_of
from kustos.server.tls import certificate_principals
from kustos.tls import (
    ClientAuth,
    KeyStoreSettings,
    Side,
    StoreType,
    TlsError,
    TlsSettings,
    TrustStoreSettings,
    jks,
    make_context,
    read_keystore,
    read_truststore,
)
from kustos.tls.stores import BLOCKS_MAX, pem_blocks
from testkit.certificates import Authority, Holder

INPUT_MAX_BYTES: Final = 4_096
PASSWORD: Final = "store-secret"
ANSWER_MAX_BYTES: Final = 32_768
"""What a listener sends to somebody who has proved nothing: its certificates, once."""

CHANGES_MAX: Final = 4
"""How many bytes of a real client's records are changed: with more no handshake gets far."""

_WHITENING: Final = b"Mighty Aphrodite"
"""Of a JKS store's digest; it stands before the content."""


class Files:
    """Certificates of an authority, a listener and a client; and a file for the store that is searched."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kustos-fuzz-"))
        self.authority = Authority()
        self.server, self.client = (self.authority.issue(name) for name in ("server", "alice"))
        trust = self.authority.write(self.folder / "trust.pem")
        self.listener = self._context(self.server, trust, Side.SERVER)
        self.connecting = self._context(self.client, trust, Side.CLIENT)
        self.store = self.folder / "store"
        builder = DefaultKafkaPrincipalBuilder(ssl_principal_mapper("DEFAULT"), kerberos_shortener([], ""))
        self.principal_of = certificate_principals(
            ListenerPrincipals(listener_name="SSL", security_protocol="SSL", builder=builder)
        )

    def _context(self, holder: Holder, trust: Path, side: Side) -> ssl.SSLContext:
        own = holder.write(self.folder / f"{side.name}.pem")
        settings = TlsSettings(
            keystore=KeyStoreSettings(store_type=StoreType.PEM, location=own),
            truststore=TrustStoreSettings(store_type=StoreType.PEM, location=trust),
            verify_hostname=False,
            client_auth=ClientAuth.REQUIRED if side is Side.SERVER else ClientAuth.NONE,
        )
        return make_context(settings, side).context


@cache
def files() -> Files:
    """Return the files, made for the first input."""
    return Files()


def check(data: bytes) -> None:
    """Raise if a stranger ends a handshake, or if a store is read that was changed."""
    kinds: dict[bytes, Callable[[bytes], None]] = {
        b"r": records, b"c": changed_records, b"j": jks_content, b"d": jks_digest, b"p": pem, b"s": stores,
        b"n": named,
    }  # fmt: skip
    kinds.get(data[:1], records)(data[1:])


class End:
    """One end of a handshake in memory."""

    def __init__(self, context: ssl.SSLContext, *, server_side: bool) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.object = context.wrap_bio(self.incoming, self.outgoing, server_side=server_side)
        self.is_established = False

    def hear(self, data: bytes) -> bytes:
        """Take bytes in and return those for the other end; raise `ssl.SSLError`."""
        self.incoming.write(data)
        try:
            self.object.do_handshake()
            self.is_established = True
        except ssl.SSLWantReadError:
            pass
        return self.outgoing.read()


def records(data: bytes) -> None:
    """Require that bytes without a certificate end no handshake and get a short answer."""
    refusal_by_first_bytes(data)
    end, answered = End(files().listener, server_side=True), 0
    for piece in (data[:100], data[100:]):
        try:
            answered += len(end.hear(piece)) if piece else 0
        except ssl.SSLError as error:
            require(bool(refusal_of(error).reason), "a refusal has no reason")
            return
        require(not end.is_established, "a handshake ends without a certificate")
        require(answered <= ANSWER_MAX_BYTES, "a stranger gets a long answer")


def changed_records(data: bytes) -> None:
    """Change what a real client sends by (round, position, byte); whoever gets through is that client."""
    server, client = End(files().listener, server_side=True), End(files().connecting, server_side=False)
    flight = client.hear(b"")
    for number in range(4):
        changed = bytearray(flight)
        for at in range(0, min(len(data) - 3, 4 * CHANGES_MAX), 4):
            if data[at] % 2 == number and changed:
                changed[int.from_bytes(data[at + 1 : at + 3]) % len(changed)] ^= data[at + 3]
        try:
            answer = server.hear(bytes(changed))
            flight = client.hear(answer)
        except ssl.SSLError as error:
            require(bool(refusal_of(error).reason), "a refusal has no reason")
            return
        if server.is_established:
            certificate = server.object.getpeercert(binary_form=True)
            require(certificate is not None, "a client without a certificate gets through")
            found = x509.load_der_x509_certificate(certificate or b"")
            require(found == files().client.certificate, "a client with a changed certificate gets through")
            return
        if not flight:
            return


def named(data: bytes) -> None:
    """Change a client's certificate by (position, byte); it names somebody, or nobody with a reason."""
    der = bytearray(_der(files().client.certificate))
    for at in range(0, min(len(data), 3 * CHANGES_MAX) - 2, 3):
        der[int.from_bytes(data[at : at + 2]) % len(der)] ^= data[at + 2]
    try:
        principal = files().principal_of("127.0.0.1", bytes(der))
    except TlsError:
        return
    require(bool(principal.name), "a principal has no name")


def jks_content(data: bytes) -> None:
    """Read a store whose digest fits, as its maker could write it, and unlock its keys."""
    content = jks.MAGIC + data
    secret = PASSWORD.encode("utf-16-be")
    digest = hashlib.sha1(secret + _WHITENING + content, usedforsecurity=False).digest()
    try:
        store = jks.read_jks(content + digest, PASSWORD)
    except TlsError:
        return
    require(len(store.keys) + len(store.trusted) <= jks.ENTRIES_MAX, "a store has too many entries")
    require(all(len(key.chain) <= jks.CHAIN_MAX for key in store.keys), "a chain is too long")
    require(
        sum(len(each.der) for each in store.trusted) <= len(data), "certificates are longer than their store"
    )
    for key in store.keys:
        try:
            plain = jks.unlock(key, PASSWORD)
        except TlsError:
            continue
        require(len(plain) < len(key.protected), "a key is longer than its store")


def jks_digest(data: bytes) -> None:
    """Change a store by (position, byte) pairs; none but the same is read."""
    real = bytearray(written_jks())
    for at, value in zip(data[::2], data[1::2], strict=False):
        real[(at * 3) % len(real)] ^= value
    try:
        jks.read_jks(bytes(real), PASSWORD)
    except TlsError:
        return
    require(bytes(real) == written_jks(), "a changed store is read")


def pem(data: bytes) -> None:
    """Cut a text into blocks."""
    try:
        blocks = pem_blocks(data.decode("utf-8", "replace"))
    except TlsError:
        return
    require(len(blocks) <= BLOCKS_MAX, "there are too many blocks")
    require(sum(len(block.der) for block in blocks) <= len(data), "blocks are longer than their text")


def stores(data: bytes) -> None:
    """Read a file of each type as key store and trust store; what is read has a key that fits."""
    path = files().store
    path.write_bytes(data)
    for store_type in (StoreType.PEM, StoreType.JKS):
        try:
            found = read_keystore(
                KeyStoreSettings(
                    store_type=store_type, location=path, password=PASSWORD, key_password=PASSWORD
                )
            )
            public_key = load_der_public_key(found.chain[0].parts().public_key)
            require(found.key.public_key() == public_key, "a key is not of its certificate")
        except TlsError as error:
            require(PASSWORD not in str(error), "an error says the password")
        try:
            trust = TrustStoreSettings(store_type=store_type, location=path, password=PASSWORD)
            require(bool(read_truststore(trust)), "nobody is trusted")
        except TlsError as error:
            require(PASSWORD not in str(error), "an error says the password")


@cache
def written_jks() -> bytes:
    """Return a store of one trusted certificate, and of a key that nobody can unlock."""
    trusted = files().authority.certificate
    content = b"".join((
        jks.MAGIC, _number(2), _number(2),
        _number(2), _text("authority"), bytes(8), _text("X.509"), _long(_der(trusted)),
        _number(1), _text("alice"), bytes(8), _long(_protected(b"k" * 60)), _number(1), _text("X.509"),
        _long(_der(files().client.certificate)),
    ))  # fmt: skip
    secret = PASSWORD.encode("utf-16-be")
    return content + hashlib.sha1(secret + _WHITENING + content, usedforsecurity=False).digest()


def _number(value: int) -> bytes:
    return value.to_bytes(4)


def _text(text: str) -> bytes:
    return len(text).to_bytes(2) + text.encode()


def _long(data: bytes) -> bytes:
    return _number(len(data)) + data


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def _protected(octets: bytes) -> bytes:
    algorithm = bytes.fromhex("300e060a2b060104012a021101010500")
    body = algorithm + bytes([0x04, len(octets)]) + octets
    return bytes([0x30, len(body)]) + body


def seeds() -> Iterator[bytes]:
    """Yield a real client's records, and stores of each kind."""
    made = files()
    hello = End(made.connecting, server_side=False).hear(b"")
    yield b"r" + hello
    yield b"r" + b"GET / HTTP/1.1\r\n\r\n"
    yield b"r" + bytes.fromhex("15030100020228")
    yield b"c"
    yield b"c\0\0\x10\1\1\0\x20\1"
    yield b"n\0\0\0"
    yield b"n\0\x10\1\0\x40\x20"
    yield b"j" + written_jks()[4:-20]
    yield b"d\0\0"
    yield b"p" + (made.client.key_pem + made.client.chain_pem).encode()
    yield b"s" + (made.client.key_pem + made.client.chain_pem).encode()
    yield b"s" + made.authority.pem.encode()
    yield b"s" + written_jks()
