"""An unknown name costs the same as a wrong password, in hashes and rounds."""

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kustos.auth import (
    Authenticated,
    Fail,
    SaslServerMachine,
    SaslServerSettings,
    ScramDecoys,
    ScramHash,
    parse_jaas_config,
)
from kustos.auth.mechanisms import ClientMechanism
from kustos.auth.mechanisms.plain import PlainClient
from kustos.auth.mechanisms.scram import ScramClient
from kustos.metadata import ScramMechanism, scram_credential
from kustos.metadata.control import TokenSecret
from kustos.metadata.image import MetadataImage
from kustos.metadata.records import DelegationTokenRecord
from kustos.runtime import SystemEntropy
from kustos.server.sasl import UserForms, mechanism_factories, token_lookup
from kustos.server.settings.listeners import SaslListenerSettings
from testkit.clocks import ManualClock
from testkit.sasl import SECRET, api_versions_body, log_in

NOW_MS = 1_000_000
TOKEN_ID, UNKNOWN_ID = "AKVSuQ5WSpWpmdttEIhTSA", "BBBBBBBBBBBBBBBBBBBBBB"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
COUNTED = (
    (hashlib, "pbkdf2_hmac"), (hmac, "digest"), (hmac, "compare_digest"),
    (ScramHash, "digest"), (hmac.HMAC, "copy"), (hmac.HMAC, "digest"),
)  # fmt: skip
"""What the server hashes and compares with."""

Work = Counter[str]


class Listener:
    """A listener with a user and a token; new for each login, as after a restart."""

    def __init__(self) -> None:
        secret = TokenSecret.of("the-token-s3cret")
        assert secret is not None
        self.password_of_token = secret.password(TOKEN_ID)
        later_ms = NOW_MS + 10**6
        token = DelegationTokenRecord("User:alice", "User:alice", (), 0, later_ms, later_ms, TOKEN_ID)
        image = MetadataImage(
            scram_credentials={
                ("alice", each.value): scram_credential(each, "alice-secret", b"s" * 26, 8192)
                for each in ScramMechanism
            },
            delegation_tokens={TOKEN_ID: token},
        )
        (plain,) = parse_jaas_config('x.PlainLoginModule required user_alice="alice-secret";')
        clock = ManualClock(NOW_MS)
        decoys = ScramDecoys(SECRET, UserForms(lambda: image, clock).of)
        settings = SaslListenerSettings(MECHANISMS, SaslServerSettings(), {"PLAIN": plain})
        factories = mechanism_factories(
            settings, lambda: image, decoys, SystemEntropy(), token_lookup(secret, lambda: image)
        )
        # the first login ever counts the users
        decoys.credential(ScramHash.SHA_256, "")
        self._parts = settings.server, factories, api_versions_body, clock

    def machine(self) -> SaslServerMachine:
        return SaslServerMachine(*self._parts)


@pytest.fixture
def work_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Work, Any]]:
    """Return a function that logs in and says what the server did for it, and how it ended."""
    work: Work = Counter()
    counts = False

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any) -> Any:
            if counts:
                work[name] += given[3] if name == "pbkdf2_hmac" else 1
            return real(*given)

        return counting

    for module, name in COUNTED:
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def watching(*given: Any) -> Any:
            nonlocal counts
            counts = True
            try:
                return real(*given)
            finally:
                counts = False

        return watching

    for name in ("receive", "resume"):
        monkeypatch.setattr(SaslServerMachine, name, watched(getattr(SaslServerMachine, name)))

    def measured(mechanism: ClientMechanism, before: ClientMechanism | None = None) -> tuple[Work, Any]:
        listener = Listener()
        if before is not None:
            assert isinstance(log_in(listener.machine(), before), Authenticated)
        machine = listener.machine()
        work.clear()
        ended = log_in(machine, mechanism)
        return Counter(work), ended

    return measured


def scram(name: str, password: str, scram_hash: ScramHash, *, token: bool = False) -> ScramClient:
    return ScramClient(scram_hash, name, password, SystemEntropy(), token)


def report_of(ended: object) -> tuple[bytes, int]:
    assert isinstance(ended, Fail)
    return ended.response, ended.delay_ms


WorkOf = Callable[..., tuple[Work, Any]]


def test_plain(work_of: WorkOf) -> None:
    wrong, refused = work_of(PlainClient("alice", "wrong"))
    unknown, also_refused = work_of(PlainClient("nobody", "wrong"))
    assert unknown == wrong == {"digest": 1, "compare_digest": 1}
    assert report_of(also_refused) == report_of(refused)
    _, done = work_of(PlainClient("alice", "alice-secret"))
    assert isinstance(done, Authenticated)


@pytest.mark.parametrize("scram_hash", ScramHash)
def test_a_user_of_scram(work_of: WorkOf, scram_hash: ScramHash) -> None:
    wrong, refused = work_of(scram("alice", "wrong", scram_hash))
    unknown, also_refused = work_of(scram("nobody", "wrong", scram_hash))
    assert unknown == wrong
    # nothing a stranger sends is worth thousands of rounds
    assert wrong["pbkdf2_hmac"] == 0 < wrong["digest"]
    assert report_of(also_refused) == report_of(refused)
    _, done = work_of(scram("alice", "alice-secret", scram_hash))
    assert isinstance(done, Authenticated)


@pytest.mark.parametrize("scram_hash", ScramHash)
def test_a_delegation_token(work_of: WorkOf, scram_hash: ScramHash) -> None:
    wrong, refused = work_of(scram(TOKEN_ID, "wrong", scram_hash, token=True))
    unknown, also_refused = work_of(scram(UNKNOWN_ID, "wrong", scram_hash, token=True))
    assert unknown == wrong
    assert wrong["pbkdf2_hmac"] == 4096
    assert report_of(also_refused) == report_of(refused)
    password = Listener().password_of_token

    def right() -> ScramClient:
        return scram(TOKEN_ID, password, scram_hash, token=True)

    _, done = work_of(right())
    assert isinstance(done, Authenticated)
    # nor does the time tell which tokens are used
    in_use, refused_again = work_of(scram(TOKEN_ID, "wrong", scram_hash, token=True), before=right())
    beside_it, unknown_again = work_of(scram(UNKNOWN_ID, "wrong", scram_hash, token=True), before=right())
    assert in_use == beside_it == wrong
    assert report_of(refused_again) == report_of(unknown_again) == report_of(refused)
    used, done = work_of(right(), before=right())
    assert isinstance(done, Authenticated)
    assert used["pbkdf2_hmac"] == 0
