"""The secret of a delegation token (KIP-48): its HMAC, which is never stored.

`HMAC = HMAC-SHA512(delegation.token.secret.key, token id)`, both as UTF-8. Its Base64 is the password of
a SCRAM login in the name of the token id.
"""

import base64
import hmac
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from kustos.metadata.image import Change, DelegationTokenRemoved, DelegationTokenSet, MetadataImage
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.scram import MIN_ITERATIONS, ScramCredential, ScramMechanism, scram_credential
from kustos.runtime import Entropy, base36_text

CREDENTIALS_KEPT_MAX: Final = 10_000
"""SCRAM credentials of tokens kept, about 500 bytes each; to compute one takes 4096 hash rounds."""

_INDEX_KEY_SIZE: Final = 32


@dataclass(frozen=True, slots=True)
class TokenSecret:
    """`delegation.token.secret.key`; it never shows in a text form."""

    _key: bytes = field(repr=False)
    _salt_key: bytes = field(init=False, repr=False, compare=False)
    """The HMAC of a text that is not a token's id; it is never shown."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_salt_key", self.hmac("\0kustos salts"))

    @classmethod
    def of(cls, text: str | None) -> "TokenSecret | None":
        """Return the secret, None if missing or empty: tokens are then disabled.

        Raise ValueError, without showing the text, for a lone surrogate.
        """
        try:
            return cls(text.encode()) if text else None
        except UnicodeEncodeError:
            # Python's own error holds the whole text
            raise ValueError("the secret is not Unicode text") from None

    def hmac(self, token_id: str) -> bytes:
        """Return the token's HMAC (64 bytes), known only to its holder."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def salt(self, token_id: str, mechanism: ScramMechanism) -> bytes:
        """Return the salt of a token's credential, in the form of Kafka's tools."""
        text = b"salt\0%b\0%b" % (mechanism.mechanism_name.encode(), token_id.encode())
        return base36_text(hmac.digest(self._salt_key, text, "sha512")).encode()

    def unusable_keys(self, mechanism: ScramMechanism) -> tuple[bytes, bytes]:
        """Return a stored key and a server key that no password has."""
        own = self.hmac("\0kustos keys")
        stored, server = (
            hmac.digest(own, each + mechanism.hash_name.encode(), mechanism.hash_name)
            for each in (b"stored", b"server")
        )
        return stored, server

    def password(self, token_id: str) -> str:
        """Return the password with which a client logs in."""
        return base64.b64encode(self.hmac(token_id)).decode()


class TokenIndex:
    """Finds the token of an HMAC, in a time that reveals nothing about how much of a guess was right.

    The look-up uses a digest under a random secret key, and the match is compared in constant time. `apply`
    keeps it up to date; used by one thread.
    """

    __slots__ = ("_digests", "_key", "_secret")

    def __init__(self, secret: TokenSecret | None, entropy: Entropy) -> None:
        self._secret = secret
        self._key = entropy.token_bytes(_INDEX_KEY_SIZE)
        self._digests: dict[bytes, str] = {}

    def load(self, image: MetadataImage) -> None:
        """Index exactly the tokens of this image."""
        self._digests.clear()
        for token_id in image.delegation_tokens:
            self._learn(token_id)

    def apply(self, changes: tuple[Change, ...]) -> None:
        """Index created tokens, drop removed ones."""
        for change in changes:
            match change:
                case DelegationTokenSet(token):
                    self._learn(token.token_id)
                case DelegationTokenRemoved(token_id) if self._secret is not None:
                    self._digests.pop(self._digest(self._secret.hmac(token_id)), None)

    def find(self, image: MetadataImage, presented: bytes) -> DelegationTokenRecord | None:
        """Return the token in the image with this HMAC, None if there is none."""
        token_id = self._digests.get(self._digest(presented))
        if token_id is None or self._secret is None:
            return None
        if not hmac.compare_digest(self._secret.hmac(token_id), presented):
            return None
        return image.delegation_tokens.get(token_id)

    def _learn(self, token_id: str) -> None:
        if self._secret is not None:
            self._digests[self._digest(self._secret.hmac(token_id))] = token_id

    def _digest(self, token_hmac: bytes) -> bytes:
        return hmac.digest(self._key, token_hmac, "sha256")


class TokenCredentials:
    """Computes the SCRAM credentials of tokens, and keeps those that were used most recently.

    As in Kafka, with 4096 iterations for both mechanisms. Unlike there, the salt is not random but derived
    from the secret and the id: if the salt of a real token changed with each restart, or between workers, it
    could be distinguished from a nonexistent one, whose salt never changes.
    """

    __slots__ = ("_kept", "_secret", "_unusable_keys")

    def __init__(self, secret: TokenSecret) -> None:
        self._secret = secret
        self._unusable_keys = {each: secret.unusable_keys(each) for each in ScramMechanism}
        # an OrderedDict: to find the first key of a dict takes longer the more keys before it were removed
        self._kept: OrderedDict[tuple[str, ScramMechanism], ScramCredential] = OrderedDict()

    def known(self, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
        """Return the cached credential, else one that no proof matches; both have the id's salt."""
        salt = self._secret.salt(token_id, mechanism)
        nobodys = ScramCredential(salt, *self._unusable_keys[mechanism], MIN_ITERATIONS)
        key = (token_id, mechanism)
        kept = self._kept.get(key)
        if kept is None:
            return nobodys
        self._kept.move_to_end(key)
        return kept

    def compute(self, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
        """Return the credential of an id, whether or not there is such a token; any thread may call it."""
        salt = self._secret.salt(token_id, mechanism)
        return scram_credential(mechanism, self._secret.password(token_id), salt, MIN_ITERATIONS)

    def keep(self, token_id: str, mechanism: ScramMechanism, credential: ScramCredential) -> None:
        """Cache the credential of an existing token: invented ids must not evict credentials."""
        self._kept.pop((token_id, mechanism), None)
        if len(self._kept) >= CREDENTIALS_KEPT_MAX:
            self._kept.popitem(last=False)
        self._kept[token_id, mechanism] = credential
