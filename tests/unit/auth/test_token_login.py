"""Logins by delegation token (KIP-48): over SCRAM, as the owner, for as long as the token lasts."""

import pytest

from kustos.acl import KafkaPrincipal
from kustos.auth import (
    Authenticated,
    Challenge,
    Fail,
    MechanismFactory,
    OwnedToken,
    Proven,
    SaslMechanismError,
    SaslServerMachine,
    SaslServerSettings,
    ScramDecoys,
    ScramHash,
    ScramServer,
    Surroundings,
    TokenLogin,
)
from kustos.auth.mechanisms.base import HASHING, BlockingStep
from kustos.auth.mechanisms.custom import CallbackServer
from kustos.auth.mechanisms.scram import TOKEN_ID_MAX_CHARACTERS, ScramClient
from kustos.auth.mechanisms.scram_keys import ServerCredential
from kustos.auth.mechanisms.scram_messages import ServerFirst
from kustos.runtime import random_text
from testkit.clocks import ManualClock
from testkit.sasl import (
    CREDENTIALS,
    OTHER_PASSWORD,
    PASSWORD,
    SECRET,
    SeededEntropy,
    StoredCredential,
    api_versions_body,
    handshake,
    log_in,
    lookup,
    settled,
    token,
)

TOKEN_ID = "AKVSuQ5WSpWpmdttEIhTSA"
LIFE_MS = 5000
HASHES = list(ScramHash)


class World:
    """A listener that takes tokens: one of the owner `alice`, and one that has the name of a user."""

    def __init__(self, life_ms: int = LIFE_MS, max_reauth_ms: int = 0, *, knows: bool = False) -> None:
        self.knows = knows
        """Whether credentials were computed before."""
        self.gone: set[str] = set()
        """Tokens that there are no longer."""
        self.clock = ManualClock(1_000_000)
        self.ends_ms = self.clock.wall_ms() + life_ms
        settings = SaslServerSettings({each.mechanism_name: max_reauth_ms for each in HASHES})
        self.machine = SaslServerMachine(settings, self.mechanisms(), api_versions_body, self.clock)

    def mechanisms(self) -> dict[str, MechanismFactory]:
        return {
            each.mechanism_name: ScramServer.factory(
                each, lookup, ScramDecoys(SECRET), SeededEntropy(), self.token
            )
            for each in HASHES
        }

    def token(self, token_id: str, scram_hash: ScramHash) -> TokenLogin:
        salt = random_text(SeededEntropy(sum(token_id.encode()))).encode()
        right = StoredCredential(scram_hash, PASSWORD, salt)
        known = right if self.knows else StoredCredential(scram_hash, "nobody's", salt)

        def find() -> OwnedToken | None:
            there_is = token_id in {TOKEN_ID, "only512"} - self.gone
            return OwnedToken("owner", self.ends_ms) if there_is else None

        return TokenLogin(known, lambda: right, find)


def client(
    name: str, password: str, scram_hash: ScramHash = ScramHash.SHA_256, *, token: bool = True
) -> ScramClient:
    return ScramClient(scram_hash, name, password, SeededEntropy(3), token)


@pytest.mark.behaviour("B222", "B252")
@pytest.mark.parametrize("scram_hash", HASHES)
@pytest.mark.parametrize("knows", [False, True])
def test_a_token_logs_in_as_its_owner_until_it_expires(scram_hash: ScramHash, knows: bool) -> None:
    world = World(knows=knows)
    done = log_in(world.machine, client(TOKEN_ID, PASSWORD, scram_hash))
    assert isinstance(done, Authenticated)
    assert done.principal == KafkaPrincipal("User", "owner")
    assert done.principal.token_authenticated
    assert done.session_lifetime_ms == LIFE_MS
    world.clock.now_ms += LIFE_MS - 1
    assert not world.machine.is_expired()
    world.clock.now_ms += 1
    assert world.machine.is_expired()


def test_a_token_logs_in_with_a_callback_handler_for_users() -> None:
    factory = World().mechanisms()[ScramHash.SHA_256.mechanism_name]
    server, peer = (
        CallbackServer.factory(factory, Surroundings("CLIENTS", 1000))(),
        client(TOKEN_ID, PASSWORD),
    )
    first = server.respond(peer.first())
    assert isinstance(first, BlockingStep)
    challenge = first.run()
    assert isinstance(challenge, Challenge)
    second = server.respond(peer.respond(challenge.token) or b"")
    assert isinstance(second, BlockingStep)
    hashing = second.run()
    assert isinstance(hashing, BlockingStep)
    assert (hashing.group, hashing.timeout_ms) == (HASHING, None), "not in the threads of the handler"
    last = hashing.run()
    assert isinstance(last, Proven)
    assert last.authorization_id == "owner"
    assert last.token_authenticated


@pytest.mark.parametrize(("password", "kind"), [(PASSWORD, Authenticated), (OTHER_PASSWORD, Fail)])
def test_a_login_by_token_through_a_callback_handler_ends_after_both_steps(
    password: str, kind: type[Authenticated] | type[Fail]
) -> None:
    name = ScramHash.SHA_256.mechanism_name
    factory = CallbackServer.factory(World().mechanisms()[name], Surroundings("CLIENTS", 1000))
    machine = SaslServerMachine(SaslServerSettings(), {name: factory}, api_versions_body, ManualClock(1))
    assert isinstance(log_in(machine, client(TOKEN_ID, password)), kind)


@pytest.mark.behaviour("B251")
@pytest.mark.parametrize(("max_reauth_ms", "lifetime_ms"), [(1000, 1000), (LIFE_MS + 1, LIFE_MS)])
def test_the_earlier_end_counts(max_reauth_ms: int, lifetime_ms: int) -> None:
    done = log_in(World(max_reauth_ms=max_reauth_ms).machine, client(TOKEN_ID, PASSWORD))
    assert isinstance(done, Authenticated)
    assert done.session_lifetime_ms == lifetime_ms


@pytest.mark.behaviour("B223")
def test_a_re_authentication_lasts_as_long_as_the_token() -> None:
    world = World(max_reauth_ms=4000)
    first = log_in(world.machine, client(TOKEN_ID, PASSWORD))
    world.clock.now_ms += 3000
    again = log_in(world.machine, client(TOKEN_ID, PASSWORD))
    assert isinstance(first, Authenticated)
    assert isinstance(again, Authenticated)
    assert (first.session_lifetime_ms, again.session_lifetime_ms) == (4000, 2000)
    assert again.is_reauthentication
    assert again.principal.token_authenticated


def test_only_the_same_token_renews_a_token_session() -> None:
    world = World(max_reauth_ms=4000)
    log_in(world.machine, client(TOKEN_ID, PASSWORD))
    world.machine.begin_reauthentication(handshake(ScramHash.SHA_256.mechanism_name))
    for name, is_token in ((TOKEN_ID, False), ("owner", False), ("only512", True)):
        first = client(name, PASSWORD, token=is_token).first()
        assert world.machine.may_guess(token(first)), "it may be a guess of another password"
    peer = client(TOKEN_ID, PASSWORD)
    assert not world.machine.may_guess(token(peer.first()))


@pytest.mark.parametrize("knows", [False, True])
@pytest.mark.parametrize("change", ["deleted", "expired"])
def test_a_login_fails_if_its_token_is_removed(change: str, knows: bool) -> None:
    world, peer = World(knows=knows), client(TOKEN_ID, PASSWORD)
    server = world.mechanisms()[ScramHash.SHA_256.mechanism_name]()
    challenge = server.respond(peer.first())
    assert isinstance(challenge, Challenge)
    if change == "deleted":
        world.gone.add(TOKEN_ID)
        with pytest.raises(SaslMechanismError, match="invalid client credentials"):
            settled(server.respond(peer.respond(challenge.token) or b""))
    else:
        world.ends_ms -= LIFE_MS - 1
        proven = settled(server.respond(peer.respond(challenge.token) or b""))
        assert isinstance(proven, Proven)
        assert proven.credential_expires_at_ms == world.clock.wall_ms() + 1


@pytest.mark.parametrize("life_ms", [0, -1, -1_000_000])
def test_an_expired_token_is_refused_as_a_wrong_password(life_ms: int) -> None:
    late = log_in(World(life_ms).machine, client(TOKEN_ID, PASSWORD))
    wrong = log_in(World().machine, client(TOKEN_ID, OTHER_PASSWORD))
    assert isinstance(late, Fail)
    assert isinstance(wrong, Fail)
    assert late.response == wrong.response
    assert "expired" in late.reason


@pytest.mark.parametrize(
    ("name", "password", "token"),
    [
        ("alice", PASSWORD, True),  # a user's password is not a token's
        ("only512", OTHER_PASSWORD, True),  # the token of that name has another
        (TOKEN_ID, PASSWORD, False),  # a token must be called one
        ("nobody", PASSWORD, True),
    ],
)
def test_users_and_tokens_are_kept_apart(name: str, password: str, token: bool) -> None:
    refused = log_in(World().machine, client(name, password, ScramHash.SHA_512, token=token))
    assert isinstance(refused, Fail)
    assert refused.reason == "invalid client credentials"


def test_a_user_of_the_name_of_a_token_logs_in_as_before() -> None:
    done = log_in(World().machine, client("only512", OTHER_PASSWORD, ScramHash.SHA_512, token=False))
    assert isinstance(done, Authenticated)
    assert done.principal == KafkaPrincipal("User", "only512")
    assert not done.principal.token_authenticated
    assert done.session_lifetime_ms == 0


def test_an_unknown_token_gets_a_credential_as_well() -> None:
    def salt(name: str) -> bytes:
        server = ScramServer(ScramHash.SHA_256, lookup, ScramDecoys(SECRET), SeededEntropy(), World().token)
        challenge = server.respond(f"n,,n={name},r=abc,tokenauth=true".encode())
        return ServerFirst.parse(settled(challenge).token).salt

    def credential(name: str) -> ServerCredential:
        return World().token(name, ScramHash.SHA_256).compute()

    assert salt("alice") == credential("alice").salt
    assert salt("alice") != CREDENTIALS["alice", ScramHash.SHA_256].salt
    assert salt(TOKEN_ID) == credential(TOKEN_ID).salt
    # nothing is computed for what cannot be an id
    name = "x" * (TOKEN_ID_MAX_CHARACTERS + 1)
    decoy = ScramDecoys(SECRET).credential(ScramHash.SHA_256, name, is_token=True)
    assert salt(name) == decoy.salt


def test_no_text_form_shows_the_credential() -> None:
    login = World().token(TOKEN_ID, ScramHash.SHA_256)
    assert "known" not in repr(login)
    assert "compute" not in repr(login)


@pytest.mark.parametrize("name", [TOKEN_ID, "nobody"])
@pytest.mark.parametrize("knows", [False, True])
def test_every_wrong_proof_is_refused_after_hashing_in_the_one_thread_for_that(
    name: str, knows: bool
) -> None:
    world = World(knows=knows)
    server = ScramServer(ScramHash.SHA_256, lookup, ScramDecoys(SECRET), SeededEntropy(), world.token)
    peer = client(name, OTHER_PASSWORD)
    challenge = server.respond(peer.first())
    assert isinstance(challenge, Challenge), "a first message costs no hashing"
    step = server.respond(peer.respond(challenge.token) or b"")
    assert isinstance(step, BlockingStep)
    assert step.group == HASHING
    with pytest.raises(SaslMechanismError, match="invalid client credentials"):
        step.run()


def test_a_known_credential_is_proven_without_hashing() -> None:
    world = World(knows=True)
    server = ScramServer(ScramHash.SHA_256, lookup, ScramDecoys(SECRET), SeededEntropy(), world.token)
    peer = client(TOKEN_ID, PASSWORD)
    challenge = server.respond(peer.first())
    assert isinstance(challenge, Challenge)
    assert isinstance(server.respond(peer.respond(challenge.token) or b""), Proven)
