"""Decoys look like existing users, and stay the same as far as possible."""

import hmac
import math
from collections import Counter
from dataclasses import dataclass
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from kustos.auth import FormCount, Forms, ScramDecoys, ScramHash
from kustos.auth.mechanisms.scram_decoys import (
    ALPHABETS,
    FORMS_MAX,
    KAFKA_FORM,
    CredentialForm,
)
from kustos.runtime import base36_text

SECRETS = st.binary(min_size=32, max_size=32)
FORM = st.builds(
    CredentialForm, st.integers(4096, 16384), st.integers(0, len(ALPHABETS) - 1), st.integers(28, 80)
) | st.builds(CredentialForm, st.integers(4096, 16384))
FORMS = st.dictionaries(FORM, st.integers(1, 1000), min_size=1, max_size=6)
NAMES = st.lists(st.text(min_size=1, max_size=10), min_size=1, max_size=30)
HASHES = st.sampled_from(ScramHash)


@dataclass(frozen=True)
class Stored:
    """A user's credential."""

    salt: bytes
    iterations: int
    stored_key: bytes = b""
    server_key: bytes = b""


def form_of(secret: bytes, forms: Forms, scram_hash: ScramHash, name: str) -> CredentialForm:
    return CredentialForm.of(ScramDecoys(secret, lambda _: forms).credential(scram_hash, name))


@given(secret=SECRETS, forms=FORMS, scram_hash=HASHES, names=NAMES)
def test_every_decoy_has_a_form_of_the_users_whatever_order_they_are_counted_in(
    secret: bytes, forms: dict[CredentialForm, int], scram_hash: ScramHash, names: list[str]
) -> None:
    other = dict(reversed(forms.items()))
    for name in names:
        made = ScramDecoys(secret, lambda _: forms).credential(scram_hash, name)
        assert made == ScramDecoys(secret, lambda _: other).credential(scram_hash, name)
        form = CredentialForm.of(made)
        assert form in forms or form.alphabet < max(each.alphabet for each in forms)


def stated_decoy(secret: bytes, forms: Forms, scram_hash: ScramHash, name: str) -> tuple[int, bytes]:
    """Return rounds and salt of a decoy as they are defined: other nodes with the secret show the same."""

    def derived(purpose: bytes) -> bytes:
        text = b"\0".join((b"user", purpose, scram_hash.mechanism_name.encode(), name.encode()))
        return hmac.digest(secret, text, scram_hash.hash_name)

    def arrival(form: CredentialForm) -> float:
        chance = (int.from_bytes(derived(repr(form).encode())[:8]) + 1) / (2**64 + 1)
        return -math.log(chance) / forms[form]

    form = min(forms, key=lambda each: (arrival(each), each))
    if not form.salt_size:
        return form.iterations, base36_text(derived(b"salt")).encode()
    letters, salt = ALPHABETS[form.alphabet], b""
    while len(salt) < form.salt_size:
        block = derived(f"salt {len(salt)}".encode())
        salt += bytes(
            letters[int.from_bytes(block[at : at + 2]) % len(letters)] for at in range(0, len(block), 2)
        )
    return form.iterations, salt[: form.salt_size]


@given(secret=st.binary(min_size=32, max_size=200), forms=FORMS, scram_hash=HASHES, names=NAMES)
def test_a_decoy_is_what_secret_mechanism_and_name_state(
    secret: bytes, forms: dict[CredentialForm, int], scram_hash: ScramHash, names: list[str]
) -> None:
    decoys = ScramDecoys(secret, lambda _: forms)
    for name in names:
        made = decoys.credential(scram_hash, name)
        assert (made.iterations, made.salt) == stated_decoy(secret, forms, scram_hash, name)


def test_a_long_salt_has_many_blocks() -> None:
    forms = {CredentialForm(4096, 3, 200 * 16): 1}
    decoys = ScramDecoys(b"s" * 32, lambda _: forms)
    made = decoys.credential(ScramHash.SHA_256, "ghost")
    assert (made.iterations, made.salt) == stated_decoy(b"s" * 32, forms, ScramHash.SHA_256, "ghost")


@given(secret=SECRETS, forms=FORMS, scram_hash=HASHES, names=NAMES, came=FORM)
def test_a_user_who_comes_moves_names_to_its_own_form_and_nowhere_else(
    secret: bytes,
    forms: dict[CredentialForm, int],
    scram_hash: ScramHash,
    names: list[str],
    came: CredentialForm,
) -> None:
    more = {**forms, came: forms.get(came, 0) + 1}
    for name in names:
        before, after = form_of(secret, forms, scram_hash, name), form_of(secret, more, scram_hash, name)
        assert after == before or (after.iterations, after.salt_size) == (came.iterations, came.salt_size)


@given(
    secret=SECRETS,
    salts=st.lists(st.binary(min_size=30, max_size=64), max_size=100),
    iterations=st.integers(1, 16384),
)
def test_the_commonest_forms_of_usable_credentials_are_counted(
    secret: bytes, salts: list[bytes], iterations: int
) -> None:
    count = FormCount()
    for salt in salts:
        count.add(Stored(salt, iterations))
    counted = count.forms()
    assert len(counted) <= FORMS_MAX
    usable = Counter(CredentialForm.of(Stored(salt, iterations)) for salt in salts if iterations >= 4096)
    assert sorted(counted.values()) == sorted(count for _, count in usable.most_common(FORMS_MAX))
    decoy = ScramDecoys(secret, lambda _: counted).credential(ScramHash.SHA_256, "ghost")
    assert CredentialForm.of(decoy) == KAFKA_FORM if not counted else decoy.iterations == iterations


def test_forms_are_as_common_among_decoys_as_among_users() -> None:
    usual, rare = CredentialForm(8192, 3, 64), CredentialForm(16384, 0, 32)
    of_name = partial(form_of, b"s" * 32, {usual: 90, rare: 10}, ScramHash.SHA_512)
    found = Counter(of_name(f"name-{number}") for number in range(3000))
    assert found.keys() == {usual, rare}
    assert 0.07 < found[rare] / 3000 < 0.13
