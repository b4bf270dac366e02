"""Credentials for unknown users. A client cannot distinguish them from real ones by form, frequency or
stability.

In a SCRAM login, the server sends a salt and an iteration count for a name before the client sends a proof.
So the decoy of a name must be the same at each attempt, on each node with the secret, and after each restart.
Its form (iteration count and alphabet of the salt) must be as common among decoys as among users: otherwise
users created by another tool, or with more iterations, are recognizable. Forms are assigned by weighted
rendezvous hashing (Efraimidis and Spirakis' exponential race with hashes as its random numbers): when users
are added or removed, as few names as possible change their form.
"""

import hmac
import math
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self

from kustos.auth.mechanisms.scram_keys import MIN_ITERATIONS, ScramHash, ServerCredential
from kustos.runtime import base36_text

FORMS_MAX: Final = 32
"""The maximum number of forms of decoys, the most common ones first: each costs a hash in every login."""

ALPHABETS: Final = (
    b"0123456789abcdef",
    b"0123456789abcdefghijklmnopqrstuvwxyz",
    bytes(range(0x20, 0x7F)),
    bytes(range(0x100)),
)
"""Alphabets of salts; the alphabet of a salt is the first one that contains all its bytes. Kafka's tools use
the second, librdkafka the last."""

_CHANCES: Final = 2**64 + 1

_PAIRS: Final = {each.size: struct.Struct(f">{each.size // 2}H") for each in ScramHash}
"""Size of a hash → the `Struct` that splits it into pairs of bytes."""

KAFKA_TEXT_SIZES: Final = range(20, 27)
"""Sizes in bytes of a salt made by Kafka's tools, 130 random bits in base 36: nearly always 25 or 26, with a
first digit less random than the others."""


@dataclass(frozen=True, slots=True, order=True)
class CredentialForm:
    """The properties of a credential that an unauthenticated client sees, without the bytes of the salt."""

    iterations: int = MIN_ITERATIONS
    alphabet: int = 1
    salt_size: int = 0
    """In bytes; 0 for a salt in the form of Kafka's tools."""
    text: bytes = field(init=False, repr=False, compare=False)
    """The input of its random number."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", repr(self).encode())

    @classmethod
    def of(cls, credential: ServerCredential) -> Self:
        """Return the form of a credential."""
        salt = credential.salt
        alphabet = next(at for at, letters in enumerate(ALPHABETS) if not salt.strip(letters))
        if alphabet == 1 and len(salt) in KAFKA_TEXT_SIZES:
            return cls(credential.iterations)
        return cls(credential.iterations, alphabet, len(salt))

    def salt(self, derived: Callable[[bytes], bytes]) -> bytes:
        """Return a salt of this form; `derived` returns the hash for a purpose."""
        if not self.salt_size:
            return base36_text(derived(b"salt")).encode()
        letters, salt = ALPHABETS[self.alphabet], b""
        count = len(letters)
        while (missing := self.salt_size - len(salt)) > 0:
            block = derived(b"salt %d" % len(salt))
            # two bytes for each letter, so that all letters are almost equally likely
            pairs = _PAIRS[len(block)].unpack(block)
            salt += bytes([letters[pair % count] for pair in pairs[:missing]])
        return salt


KAFKA_FORM: Final = CredentialForm()
"""The default form of Kafka's tools, which every delegation token has."""

Forms = Mapping[CredentialForm, int]
"""Form → the number of users with it."""

_KAFKA_FORMS: Final[Forms] = {KAFKA_FORM: 1}


class FormCount:
    """Counts the forms of usable credentials."""

    def __init__(self) -> None:
        self._counted: Final[Counter[CredentialForm]] = Counter()

    def add(self, credential: ServerCredential) -> None:
        """Count one credential."""
        if credential.iterations >= MIN_ITERATIONS:
            self._counted[CredentialForm.of(credential)] += 1

    def forms(self) -> Forms:
        """Return the most common forms."""
        return dict(self._counted.most_common(FORMS_MAX))


@dataclass(frozen=True, slots=True)
class _DecoyCredential:
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def _no_users(_scram_hash: ScramHash) -> Forms:
    return {}


class ScramDecoys:
    """Makes credentials for users without one, so that their logins fail like a wrong password.

    Salt and form are derived from `secret`, mechanism and name. `forms` returns the forms of the existing
    users; without users, decoys have Kafka's form. Clients never see keys: all decoys of a mechanism have the
    same keys, and their password is unknown. Raise ValueError for a secret of less than 32 bytes.
    """

    __slots__ = ("_derivations", "_forms", "_keys")

    MINIMUM_SECRET_SIZE: Final = 32

    def __init__(self, secret: bytes, forms: Callable[[ScramHash], Forms] = _no_users) -> None:
        if len(secret) < self.MINIMUM_SECRET_SIZE:
            raise ValueError(f"the decoy secret is shorter than {self.MINIMUM_SECRET_SIZE} bytes")
        self._forms = forms
        self._derivations = {
            (each, is_token): _Derivation(secret, each, kind)
            for each in ScramHash
            for is_token, kind in ((False, b"user"), (True, b"token"))
        }
        self._keys = {
            each: [hmac.digest(secret, purpose, each.hash_name) for purpose in (b"stored key", b"server key")]
            for each in ScramHash
        }

    def __repr__(self) -> str:
        return "ScramDecoys()"

    def credential(self, scram_hash: ScramHash, username: str, *, is_token: bool = False) -> ServerCredential:
        """Return the decoy of a name, or of a delegation token's id, with the same work for every name."""
        derivation, name = self._derivations[scram_hash, is_token], username.encode()
        forms = _KAFKA_FORMS if is_token else self._forms(scram_hash) or _KAFKA_FORMS
        form = derivation.form(name, forms)
        stored_key, server_key = self._keys[scram_hash]
        salt = form.salt(partial(derivation.derived, name))
        return _DecoyCredential(salt, stored_key, server_key, form.iterations)


class _Derivation:
    """Hashes the names of one kind at one mechanism, for several purposes."""

    __slots__ = ("_forms", "_kind", "_mechanism", "_race", "_secret")

    def __init__(self, secret: bytes, scram_hash: ScramHash, kind: bytes) -> None:
        self._secret = hmac.new(secret, digestmod=scram_hash.hash_name)
        self._kind = kind
        self._mechanism = scram_hash.mechanism_name.encode()
        self._forms: Forms = {}
        self._race: list[tuple[hmac.HMAC, int, CredentialForm]] = []
        """The forms, with the inputs of their random numbers and their frequencies."""

    def derived(self, name: bytes, purpose: bytes) -> bytes:
        """Return the hash of a name for a purpose."""
        return self._begin(purpose, name).digest()

    def _begin(self, purpose: bytes, name: bytes = b"") -> hmac.HMAC:
        """Return the keyed hash of a purpose and the beginning of a name."""
        return _extended(self._secret, b"%b\0%b\0%b\0%b" % (self._kind, purpose, self._mechanism, name))

    def form(self, name: bytes, forms: Forms) -> CredentialForm:
        """Return the form of a name: the winner of the race, with a probability in proportion to its
        frequency.

        `forms` is immutable and replaced when users are added or removed.
        """
        if forms is not self._forms:
            self._race = [(self._begin(form.text), count, form) for form, count in forms.items()]
            self._forms = forms
        if len(self._race) == 1:
            # most nodes have only one form
            return self._race[0][2]
        arrivals = [
            (-math.log((int.from_bytes(_extended(keyed, name).digest()[:8]) + 1) / _CHANCES) / count, form)
            for keyed, count, form in self._race
        ]
        return min(arrivals)[1]


def _extended(keyed: hmac.HMAC, text: bytes) -> hmac.HMAC:
    """Return a copy of a keyed hash, extended by a text."""
    extended = keyed.copy()
    extended.update(text)
    return extended
