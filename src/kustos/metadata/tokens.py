"""What makes a delegation token a secret (KIP-48): its HMAC, which is never stored.

`HMAC = HMAC-SHA512(delegation.token.secret.key, token id)`, both as UTF-8. Its Base64 is the password of
a SCRAM login in the name of the token id.
"""

import base64
import hmac
from dataclasses import dataclass, field
from typing import Final

from kustos.metadata.image import Change, DelegationTokenRemoved, DelegationTokenSet, MetadataImage
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.scram import MIN_ITERATIONS, ScramCredential, ScramMechanism, scram_credential
from kustos.runtime import Entropy, random_text

CREDENTIALS_KEPT_MAX: Final = 10_000
"""SCRAM credentials of tokens that are kept, some 500 bytes each; another costs 4096 rounds of a hash."""

_INDEX_KEY_SIZE: Final = 32


@dataclass(frozen=True, slots=True)
class TokenSecret:
    """`delegation.token.secret.key`; it shows in no text form."""

    _key: bytes = field(repr=False)

    @classmethod
    def of(cls, text: str | None) -> "TokenSecret | None":
        """Return the secret, None without one or for an empty one: tokens are then switched off.

        Raise ValueError for half a surrogate pair, without showing it.
        """
        try:
            return cls(text.encode()) if text else None
        except UnicodeEncodeError:
            # Python's own error carries the whole text
            raise ValueError("the secret is not Unicode text") from None

    def hmac(self, token_id: str) -> bytes:
        """Return the 64 bytes that who holds the token knows, and nobody else."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def password(self, token_id: str) -> str:
        """Return what a client logs in with."""
        return base64.b64encode(self.hmac(token_id)).decode()


class TokenIndex:
    """Finds the token of an HMAC, in a time that tells nothing of how much of a guess was right.

    What is looked up is a digest under a key that nobody knows, and its find is compared in constant
    time. Kept in step by `apply`; one thread uses it.
    """

    __slots__ = ("_digests", "_key", "_secret")

    def __init__(self, secret: TokenSecret | None, entropy: Entropy) -> None:
        self._secret = secret
        self._key = entropy.token_bytes(_INDEX_KEY_SIZE)
        self._digests: dict[bytes, str] = {}

    def load(self, image: MetadataImage) -> None:
        """Know exactly the tokens of this image."""
        self._digests.clear()
        for token_id in image.delegation_tokens:
            self._learn(token_id)

    def apply(self, changes: tuple[Change, ...]) -> None:
        """Know what was made, forget what was removed."""
        for change in changes:
            match change:
                case DelegationTokenSet(token):
                    self._learn(token.token_id)
                case DelegationTokenRemoved(token_id) if self._secret is not None:
                    self._digests.pop(self._digest(self._secret.hmac(token_id)), None)

    def find(self, image: MetadataImage, presented: bytes) -> DelegationTokenRecord | None:
        """Return the token in the image whose HMAC this is, None if there is none."""
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
    """Makes the SCRAM credentials of tokens when they are asked for, and keeps the latest.

    As in Kafka each node has its own, with a random salt and 4096 iterations for both mechanisms.
    """

    __slots__ = ("_entropy", "_kept", "_secret")

    def __init__(self, secret: TokenSecret, entropy: Entropy) -> None:
        self._secret = secret
        self._entropy = entropy
        self._kept: dict[tuple[str, ScramMechanism], ScramCredential] = {}

    def credential(self, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
        """Return the credential of a token; whether there is such a token is for the caller to know."""
        key = (token_id, mechanism)
        made = self._kept.pop(key, None)
        if made is None:
            salt = random_text(self._entropy).encode()
            made = scram_credential(mechanism, self._secret.password(token_id), salt, MIN_ITERATIONS)
            if len(self._kept) >= CREDENTIALS_KEPT_MAX:
                # a dict keeps its order: the first is the one unused for longest
                del self._kept[next(iter(self._kept))]
        self._kept[key] = made
        return made
