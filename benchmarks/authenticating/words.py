"""What a client says to log in, prepared so far that the client takes little of the machine.

Only a proof of SCRAM depends on what a server says: its 4,096 rounds of hashing are done once for a salt.
Bearer tokens are signed before the first round, and follow each other, so that no server knows one already.
"""

import base64
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kustos.auth import ScramHash
from kustos.wire import ApiKey, request_codec, request_frame
from testkit import bearer_tokens
from testkit.conversations.play import Side
from testkit.conversations.scene import USERS

USER: Final = "alice"
NONCE: Final = b"rOprNGfwEbeRWgbNEkqO"
"""The client's nonce, always the same: nothing here is secret."""

BEARER_TOKENS: Final = 512
CLIENT_ID: Final = "bench"
VERSIONS_VERSION, HANDSHAKE_VERSION, AUTHENTICATE_VERSION, METADATA_VERSION = 4, 1, 2, 12
FIRST_OF_TOKEN: Final = 5
"""Where an answer to SaslAuthenticate begins, behind the header: its error, its text, the token."""

Proof = Callable[[bytes], bytes]
"""The server's first message → the client's last frame."""


class RefusedError(Exception):
    """A server does not admit the client; nothing can be measured then."""


def request(api_key: ApiKey, version: int, **fields: object) -> bytes:
    """Return a request with its length."""
    codec = request_codec(int(api_key), version)
    return request_frame(codec, int(api_key), 1, CLIENT_ID, codec.encode(codec.new(**fields)))


def versions() -> bytes:
    """Return an ApiVersions as current clients send it."""
    software = {"client_software_name": "kustos-bench", "client_software_version": "1.0"}
    return request(ApiKey.API_VERSIONS, VERSIONS_VERSION, **software)


def brokers() -> bytes:
    """Return a Metadata of the brokers, without topics."""
    return request(ApiKey.METADATA, METADATA_VERSION, topics=[], allow_auto_topic_creation=False)


def authenticate(token: bytes) -> bytes:
    """Return a SaslAuthenticate."""
    return request(ApiKey.SASL_AUTHENTICATE, AUTHENTICATE_VERSION, auth_bytes=token)


def token_of(answer: bytes) -> bytes:
    """Return the token in an answer to SaslAuthenticate v2; raise `RefusedError` with the server's words."""
    body = answer[FIRST_OF_TOKEN:]
    if body[:2] != b"\0\0":
        raise RefusedError(body[3:].decode(errors="replace"))
    size, at = body[3], 4
    if size & 0x80:
        # an unsigned varint (KIP-482); no token here is longer than two bytes can say
        size, at = (size & 0x7F) | (body[4] << 7), 5
    return body[at : at + size - 1]


@dataclass(slots=True)
class ScramProofs:
    """The proofs of one user; the salted password of each salt is kept."""

    scram_hash: ScramHash
    name: str
    password: str
    via_token: bool = False
    _keys: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)

    @property
    def _bare(self) -> bytes:
        return b"n=%s,r=%s%s" % (self.name.encode(), NONCE, b",tokenauth=true" if self.via_token else b"")

    def first(self) -> bytes:
        """Return the client's first message."""
        return b"n,," + self._bare

    def prove(self, server_first: bytes) -> bytes:
        """Return the frame with the proof."""
        nonce, _, credential = server_first.partition(b",s=")
        client_key, stored_key = self._keys_of(credential)
        without_proof = b"c=biws," + nonce
        signed = b",".join((self._bare, server_first, without_proof))
        signature = self.scram_hash.hmac(stored_key, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return authenticate(without_proof + b",p=" + base64.b64encode(proof))

    def _keys_of(self, credential: bytes) -> tuple[bytes, bytes]:
        keys = self._keys.get(credential)
        if keys is None:
            salt, _, iterations = credential.partition(b",i=")
            salted = self.scram_hash.salted_password(
                self.password.encode(), base64.b64decode(salt), int(iterations)
            )
            client_key = self.scram_hash.hmac(salted, b"Client Key")
            keys = self._keys[credential] = client_key, self.scram_hash.digest(client_key)
        return keys


@dataclass(frozen=True, slots=True)
class Words:
    """What each client says in turn, one frame after each answer; a `prove` makes the last of the login.

    Behind the login one more request is answered: the session serves.
    """

    opening: tuple[bytes, ...]
    tokens: Iterator[bytes]
    prove: Proof | None = None
    last: bytes = field(default_factory=versions)


def of_tokens(
    mechanism: str, tokens: Iterator[bytes], prove: Proof | None = None, last: bytes | None = None
) -> Words:
    """Return the words of a mechanism."""
    handshake = request(ApiKey.SASL_HANDSHAKE, HANDSHAKE_VERSION, mechanism=mechanism)
    return Words((versions(), handshake), tokens, prove, last or versions())


def plain() -> Words:
    """Return the words of PLAIN."""
    token = authenticate(f"\0{USER}\0{USERS[USER]}".encode())
    return of_tokens("PLAIN", itertools.repeat(token))


def scram(
    scram_hash: ScramHash, name: str, password: str, *, via_token: bool = False, last: bytes | None = None
) -> Words:
    """Return the words of SCRAM; `via_token`: name and password are those of a delegation token."""
    proofs = ScramProofs(scram_hash, name, password, via_token)
    return of_tokens(
        scram_hash.mechanism_name, itertools.repeat(authenticate(proofs.first())), proofs.prove, last
    )


def bearer() -> Words:
    """Return the words of OAUTHBEARER, with one token after the other."""
    now_s = int(time.time())
    tokens = [
        bearer_tokens.compact(bearer_tokens.claims(now_s, jti=str(number))) for number in range(BEARER_TOKENS)
    ]
    frames = [authenticate(f"n,,\x01auth=Bearer {token}\x01\x01".encode()) for token in tokens]
    return of_tokens("OAUTHBEARER", itertools.cycle(frames))


def certificate() -> Words:
    """Return the words of a client whom TLS has named already."""
    return Words((), iter(()))


def of_side(side: Side) -> Mapping[str, Callable[[], Words]]:
    """Return the words by kind of login; delegation tokens are each side's own."""
    password = USERS[USER]
    secrets = side.secrets
    return {
        "plain": plain,
        "scram-256": lambda: scram(ScramHash.SHA_256, USER, password),
        "scram-256-metadata": lambda: scram(ScramHash.SHA_256, USER, password, last=brokers()),
        "scram-512": lambda: scram(ScramHash.SHA_512, USER, password),
        "mtls": certificate,
        "oauthbearer": bearer,
        "token": lambda: scram(ScramHash.SHA_256, secrets["token"], secrets["hmac"], via_token=True),
    }
