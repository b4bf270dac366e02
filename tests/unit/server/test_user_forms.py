"""A client cannot distinguish an unknown user from an existing one, on any node of a cluster."""

import pytest

from kustos.auth import ScramDecoys, ScramHash
from kustos.auth.mechanisms.scram_decoys import CredentialForm
from kustos.client.errors import SettingsError
from kustos.metadata.control.token_secrets import TokenCredentials, TokenSecret
from kustos.metadata.image import MetadataImage
from kustos.metadata.scram import ScramMechanism, scram_credential
from kustos.server import sasl
from kustos.server.sasl import FORMS_RENEWED_EVERY_MS, UserForms
from kustos.server.settings.node_settings import settings_from
from testkit.clocks import ManualClock
from tests.unit.server.test_settings import LEAST

SHA_256 = ScramMechanism.SCRAM_SHA_256


def image_of(**users: tuple[int, bytes]) -> MetadataImage:
    """Return the metadata with these users: name → (iterations, salt)."""
    return MetadataImage(
        scram_credentials={
            (name, int(SHA_256)): scram_credential(SHA_256, "secret", salt, iterations)
            for name, (iterations, salt) in users.items()
        }
    )


def test_decoys_have_the_form_of_the_users_of_their_mechanism() -> None:
    image = image_of(alice=(8192, bytes(range(200, 232))), bob=(8192, bytes(range(180, 212))))
    decoys = ScramDecoys(b"s" * 32, UserForms(lambda: image, ManualClock(1_000_000)).of)
    for name in ("ghost", "spook"):
        made = decoys.credential(ScramHash.SHA_256, name)
        assert (made.iterations, len(made.salt)) == (8192, 32)
        assert decoys.credential(ScramHash.SHA_512, name).iterations == 4096
        assert decoys.credential(ScramHash.SHA_256, name, is_token=True).iterations == 4096


def test_forms_are_counted_again_when_users_changed_but_not_all_the_time() -> None:
    image, clock = image_of(alice=(8192, b"s" * 40)), ManualClock(1_000_000)
    forms = UserForms(lambda: image, clock)
    assert {form.iterations for form in forms.of(ScramHash.SHA_256)} == {8192}
    image = image_of(alice=(16384, b"s" * 40))
    assert {form.iterations for form in forms.of(ScramHash.SHA_256)} == {8192}
    clock.now_ms += FORMS_RENEWED_EVERY_MS
    assert {form.iterations for form in forms.of(ScramHash.SHA_256)} == {16384}


def test_a_login_counts_some_users_and_waits_for_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sasl, "USERS_COUNTED_AT_ONCE", 2)
    image, clock = image_of(alice=(8192, b"s" * 40)), ManualClock(1_000_000)
    forms = UserForms(lambda: image, clock)
    forms.of(ScramHash.SHA_256)
    image = image_of(**{f"user{number}": (16384, b"s" * 40) for number in range(5)})
    clock.now_ms += FORMS_RENEWED_EVERY_MS
    seen = [forms.of(ScramHash.SHA_256) for _ in range(3)]
    assert [{form.iterations: count for form, count in each.items()} for each in seen] == [
        {8192: 1},
        {8192: 1},
        {16384: 5},
    ]


def test_a_token_shows_the_same_salt_on_every_node_and_after_each_restart() -> None:
    secret = TokenSecret.of("key")
    assert secret is not None
    made = [TokenCredentials(secret).compute("id", SHA_256) for _ in range(2)]
    assert made[0] == made[1]
    assert CredentialForm.of(made[0]) == CredentialForm()
    assert TokenCredentials(secret).compute("other", SHA_256).salt != made[0].salt
    assert TokenCredentials(secret).compute("id", ScramMechanism.SCRAM_SHA_512).salt != made[0].salt


def test_nodes_with_one_secret_have_the_same_decoys() -> None:
    def decoy_secret(**given: str) -> bytes | None:
        return settings_from({**LEAST, **given}, {}).decoy_secret

    name = "kustos.sasl.scram.decoy.secret"
    shared = "shared by all nodes of the cluster"
    assert decoy_secret() is None
    assert len(decoy_secret(**{name: shared}) or b"") == 64
    assert decoy_secret(**{name: shared}) == decoy_secret(**{name: shared, "node.id": "9"})
    with pytest.raises(SettingsError, match="32 characters") as refused:
        decoy_secret(**{name: "too short"})
    assert "too short" not in str(refused.value)
