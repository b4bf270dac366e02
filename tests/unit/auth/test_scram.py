"""SCRAM compared with the RFCs and an independent peer, and user enumeration."""

import base64
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from scramp import ScramClient as PeerClient
from scramp import ScramMechanism as PeerMechanism

from kustos.auth import (
    Authenticated,
    Fail,
    SaslAuthenticationError,
    SaslClientError,
    SaslMechanismError,
    ScramDecoys,
    ScramHash,
    ScramServer,
    client_mechanism,
)
from kustos.auth.mechanisms import Challenge, Proven
from kustos.auth.mechanisms.scram import ScramClient
from kustos.auth.mechanisms.scram_keys import ServerCredential, auth_message, exclusive_or
from kustos.auth.mechanisms.scram_messages import ClientFirst, ServerFinal, ServerFirst
from kustos.runtime import SystemEntropy, random_nonce, random_text
from testkit.sasl import (
    CREDENTIALS,
    OTHER_PASSWORD,
    PASSWORD,
    SECRET,
    SeededEntropy,
    StoredCredential,
    handshake,
    log_in,
    lookup,
    machine,
    mechanisms,
    only_send,
    refusal,
    response,
    settled,
    token,
)

HASHES = list(ScramHash)


def server(scram_hash: ScramHash = ScramHash.SHA_256, seed: int = 7) -> ScramServer:
    return ScramServer(scram_hash, lookup, ScramDecoys(SECRET), SeededEntropy(seed))


@pytest.mark.behaviour("B297")
def test_rfc_7677_example() -> None:
    """RFC 7677 section 3: the server's half of the nonce is random, so the arithmetic is shown alone."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    hash_ = ScramHash.SHA_256
    salted = hash_.salted_password(b"pencil", salt, 4096)
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    first = ClientFirst.parse(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    server_first = ServerFirst(nonce, salt, 4096).encode()
    assert server_first == f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    signed = auth_message(first.bare, server_first, f"c=biws,r={nonce}".encode())
    client_key = hash_.hmac(salted, b"Client Key")
    proof = exclusive_or(client_key, hash_.hmac(hash_.digest(client_key), signed))
    assert base64.b64encode(proof) == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    signature = hash_.hmac(hash_.hmac(salted, b"Server Key"), signed)
    assert ServerFinal(None, signature).encode() == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


class FixedEntropy(SeededEntropy):
    """Gives these bytes, and zeros before them."""

    def __init__(self, last: bytes) -> None:
        super().__init__()
        self._last = last

    def token_bytes(self, size: int) -> bytes:
        return self._last.rjust(size, b"\0")


def test_a_whole_exchange_with_known_nonces() -> None:
    entropy = FixedEntropy(bytes((1, 10, 31, 32, 255)))
    first = ScramServer(ScramHash.SHA_256, lookup, ScramDecoys(SECRET), entropy).respond(b"n,,n=alice,r=fyko")
    salt = base64.b64encode(CREDENTIALS["alice", ScramHash.SHA_256].salt).decode()
    assert first == Challenge(f"r=fyko{21 * '0'}1av0v,s={salt},i=4096".encode())
    assert random_text(FixedEntropy((int("zz09", 36) << 6).to_bytes(5))) == "zz09"


def test_a_nonce_has_five_random_bits_in_each_letter() -> None:
    letters = Counter(random_nonce(FixedEntropy(bytes((byte,))))[-1] for byte in range(256))
    assert set(letters.values()) == {8}
    nonces = {random_nonce(SystemEntropy()) for _ in range(100)}
    assert len(nonces) == 100
    assert {len(nonce) for nonce in nonces} == {26}


@pytest.mark.behaviour("B219")
@pytest.mark.parametrize("scram_hash", HASHES)
def test_an_independent_client_logs_in_to_our_server(scram_hash: ScramHash) -> None:
    peer = PeerClient([scram_hash.mechanism_name], "alice", PASSWORD)
    ours = server(scram_hash)
    challenge = settled(ours.respond(peer.get_client_first().encode()))
    peer.set_server_first(challenge.token.decode())
    proven = settled(ours.respond(peer.get_client_final().encode()))
    peer.set_server_final(proven.token.decode())
    assert isinstance(proven, Proven)
    assert proven.authorization_id == "alice"


@pytest.mark.parametrize("scram_hash", HASHES)
@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_our_client_logs_in_to_an_independent_server(scram_hash: ScramHash, password: str) -> None:
    mechanism = PeerMechanism(scram_hash.mechanism_name)
    made = mechanism.make_auth_info(PASSWORD, iteration_count=4096)
    peer = mechanism.make_server(lambda username: made)
    ours = ScramClient(scram_hash, "alice", password, SeededEntropy())
    peer.set_client_first(ours.first().decode())
    final = ours.respond(peer.get_server_first().encode())
    assert final is not None
    if password != PASSWORD:
        with pytest.raises(Exception, match="proof"):
            peer.set_client_final(final.decode())
        return
    peer.set_client_final(final.decode())
    assert ours.respond(peer.get_server_final().encode()) is None
    assert ours.is_complete


def shape(user: str, mechanism: str, seed: int = 5) -> list[tuple[str, Any]]:
    """What an attacker sees of a login with a password that is wrong: kinds, texts, sizes, delays."""
    ours = machine()
    seen: list[tuple[str, Any]] = []
    client = ScramClient(
        next(h for h in ScramHash if h.mechanism_name == mechanism), user, "guess", SeededEntropy(seed)
    )
    ours.receive(handshake(mechanism))
    first = response(only_send(ours.receive(token(client.first()))), 36, 2)
    challenge = ServerFirst.parse(first.auth_bytes)
    seen.append(
        ("challenge", (challenge.iterations, challenge.salt.isalnum(), len(challenge.salt) in range(23, 28)))
    )
    final = client.respond(first.auth_bytes)
    assert final is not None
    (failure,) = ours.receive(token(final))
    assert isinstance(failure, Fail)
    seen.append(("fail", (refusal(failure.response), failure.delay_ms, failure.reason)))
    return seen


@pytest.mark.behaviour("B219", "B220")
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_an_unknown_user_looks_like_a_wrong_password(mechanism: str) -> None:
    wrong = shape("alice", mechanism)
    assert shape("nobody", mechanism) == wrong
    assert wrong[-1][1][0] == (
        58,
        "Authentication failed during authentication due to invalid credentials with "
        f"SASL mechanism {mechanism}",
    )


@pytest.mark.behaviour("B220")
def test_a_user_of_the_other_mechanism_only_is_unknown() -> None:
    assert shape("only512", "SCRAM-SHA-256") == shape("alice", "SCRAM-SHA-256")
    failed = log_in(machine(), client_mechanism("SCRAM-SHA-256", "only512", OTHER_PASSWORD, SeededEntropy()))
    assert isinstance(failed, Fail)


def challenge_of(user: str, scram_hash: ScramHash, secret: bytes = SECRET, seed: int = 1) -> ServerFirst:
    ours = ScramServer(scram_hash, lookup, ScramDecoys(secret), SeededEntropy(seed))
    return ServerFirst.parse(settled(ours.respond(f"n,,n={user},r=abc".encode())).token)


def test_a_decoy_salt_is_stable_and_differs_by_name_mechanism_and_secret() -> None:
    first = challenge_of("ghost", ScramHash.SHA_256)
    again = challenge_of("ghost", ScramHash.SHA_256, seed=2)
    assert first.salt == again.salt
    assert first.nonce != again.nonce
    others = (
        challenge_of("ghost2", ScramHash.SHA_256),
        challenge_of("ghost", ScramHash.SHA_512),
        challenge_of("ghost", ScramHash.SHA_256, b"another secret of at least 32 bytes"),
    )
    assert len({first.salt, *(other.salt for other in others)}) == 4


def test_a_proof_with_the_keys_of_a_decoy_is_refused() -> None:
    """Were the lookup to return the decoy's own keys with a known client key, the proof would pass."""
    known = StoredCredential(ScramHash.SHA_256, PASSWORD, b"salt")

    class Leaked(ScramDecoys):
        def credential(
            self, scram_hash: ScramHash, username: str, *, is_token: bool = False
        ) -> ServerCredential:
            return known

    def final_of(ours: ScramServer) -> tuple[ScramServer, bytes]:
        client = ScramClient(ScramHash.SHA_256, "ghost", PASSWORD, SeededEntropy())
        final = client.respond(settled(ours.respond(client.first())).token)
        assert final is not None
        return ours, final

    leaked = Leaked(SECRET)
    entropy = SeededEntropy()
    real, proof = final_of(ScramServer(ScramHash.SHA_256, lambda u, h: known, leaked, entropy))
    assert isinstance(real.respond(proof), Proven)
    decoy, proof = final_of(ScramServer(ScramHash.SHA_256, lambda u, h: None, leaked, entropy))
    with pytest.raises(SaslMechanismError, match="invalid client credentials"):
        decoy.respond(proof)


@pytest.mark.parametrize("extension", ["tokenauth=true", "tokenauth=TRUE", "x=1,tokenauth=true"])
def test_a_delegation_token_is_refused_as_an_unknown_user(extension: str) -> None:
    ours = server()
    first = ServerFirst.parse(settled(ours.respond(f"n,,n=alice,r=abc,{extension}".encode())).token)
    assert first.salt != CREDENTIALS["alice", ScramHash.SHA_256].salt


def test_a_credential_of_too_few_iterations_is_refused_as_an_unknown_user() -> None:
    weak: ServerCredential = StoredCredential(ScramHash.SHA_256, PASSWORD, b"salt", 4095)
    ours = ScramServer(ScramHash.SHA_256, lambda u, h: weak, ScramDecoys(SECRET), SeededEntropy())
    assert ServerFirst.parse(settled(ours.respond(b"n,,n=alice,r=abc")).token).iterations == 4096


@pytest.mark.behaviour("B295")
@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_foreign_authorization_id_is_refused_at_once(user: str) -> None:
    with pytest.raises(SaslAuthenticationError, match="authorization id that is different from username"):
        server().respond(f"n,a=other,n={user},r=abc".encode())
    assert isinstance(server().respond(f"n,a={user},n={user},r=abc".encode()), Challenge)


@pytest.mark.behaviour("B298", "B299")
@pytest.mark.parametrize(
    "message",
    [
        b"", b"y,,n=alice,r=abc", b"p=tls-unique,,n=alice,r=abc", b"n,,n=al=ice,r=abc", b"n,,n=al=2c,r=abc",
        b"n,,n=,r=abc", b"n,,n=alice,r=", b"n,,n=alice", b"n,,r=abc,n=alice", b"n,,n=alice,r=a,b",
        b"n,,n=alice,r=abc,1=2", b"n,,n=alice,r=abc,a=", "n,,n=älice,r=abc".encode(), b"n,,n=alice,r=abc\n",
        b"n,alice,n=alice,r=abc", b"n,,n=al\x00ice,r=abc",
    ],
)  # fmt: skip
def test_malformed_first_messages_are_refused(message: bytes) -> None:
    with pytest.raises(SaslMechanismError):
        server().respond(message)


@pytest.mark.behaviour("B299")
def test_first_messages_are_parsed() -> None:
    message = ClientFirst.parse(b"n,a=x=2Cy,m=abc,n=a=3Db=2Cc,r=n0nce,ext=v=1,tokenauth=true")
    assert message.authorization_id == "x=2Cy"
    assert message.username == "a=b,c"
    assert message.extensions == (("ext", "v=1"), ("tokenauth", "true"))
    assert message.bare == b"n=a=3Db=2Cc,r=n0nce,ext=v=1,tokenauth=true"
    assert message.is_token


@pytest.mark.behaviour("B296", "B300")
def test_only_the_exact_nonce_and_a_complete_proof_pass() -> None:
    good = ScramClient(ScramHash.SHA_256, "alice", PASSWORD, SeededEntropy(8))
    damages: list[Callable[[bytes], bytes]] = [
        lambda final: final.replace(b",r=", b",r=x"),
        lambda final: final[:-9] + b"AAAA" + final[-5:],
        lambda final: final.partition(b",p=")[0] + b",p=",
        lambda final: final.partition(b",p=")[0],
        lambda final: final + b",x=1",
        lambda final: final.replace(b"c=biws", b"c=eSws"),
    ]  # fmt: skip
    for damage in damages:
        ours = server()
        client = ScramClient(ScramHash.SHA_256, "alice", PASSWORD, SeededEntropy(8))
        final = client.respond(settled(ours.respond(client.first())).token)
        assert final is not None
        damaged = damage(final)
        assert damaged != final
        with pytest.raises(SaslMechanismError):
            ours.respond(damaged)
    assert isinstance(log_in(machine(), good), Authenticated)


@pytest.mark.parametrize(
    "first",
    [
        b"", b"r=evil,s=QUJD,i=4096", b"r={nonce},s=QUJD,i=4096", b"r={nonce}x,s=QUJD,i=4095",
        b"r={nonce}x,s=QUJD,i=0", b"r={nonce}x,s=QUJD,i=9999999999", b"r={nonce}x,s=QUJD,i=1000001",
        b"r={nonce}x,s=Q,i=4096", b"e=other-error",
    ],
)  # fmt: skip
def test_our_client_refuses_servers_that_weaken_the_exchange(first: bytes) -> None:
    client = ScramClient(ScramHash.SHA_256, "alice", PASSWORD, SeededEntropy())
    nonce = client.first().rpartition(b"r=")[2]
    with pytest.raises(SaslClientError) as raised:
        client.respond(first.replace(b"{nonce}", nonce))
    assert PASSWORD not in str(raised.value)


def test_our_client_refuses_a_server_that_does_not_know_the_password() -> None:
    client = ScramClient(ScramHash.SHA_256, "alice", PASSWORD, SeededEntropy())
    client.respond(settled(server().respond(client.first())).token)
    with pytest.raises(SaslClientError, match="does not know the password"):
        client.respond(b"v=" + base64.b64encode(bytes(32)))
    assert not client.is_complete
    with pytest.raises(SaslClientError, match="error"):
        client.respond(b"e=invalid-proof")


@pytest.mark.parametrize("name", ["", "älice", "a\0b"])
def test_names_that_cannot_log_in_are_refused_before_anything_is_sent(name: str) -> None:
    with pytest.raises(SaslClientError, match="ASCII"):
        client_mechanism("SCRAM-SHA-256", name, PASSWORD, SeededEntropy())


def test_a_short_decoy_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        ScramDecoys(b"short")


def test_the_user_called_star_does_not_log_in() -> None:
    failed = log_in(machine(), client_mechanism("SCRAM-SHA-256", "*", PASSWORD, SeededEntropy()))
    assert isinstance(failed, Fail)
    assert mechanisms().keys() == {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}


@pytest.mark.behaviour("B296")
@pytest.mark.parametrize("change", ["{client}{server}", "{client}", "{server}", "{client}{client}{server}x"])
def test_a_proof_over_another_nonce_is_refused_though_it_is_right(change: str) -> None:
    """Nothing but the comparison of the nonces stands between such a client and the session."""
    ours, hash_ = server(), ScramHash.SHA_256
    bare = b"n=alice,r=abc"
    challenge = settled(ours.respond(b"n,," + bare)).token
    first = ServerFirst.parse(challenge)
    nonce = change.format(client="abc", server=first.nonce)
    without_proof = f"c=biws,r={nonce}".encode()
    client_key = hash_.hmac(hash_.salted_password(PASSWORD.encode(), first.salt, 4096), b"Client Key")
    signature = hash_.hmac(hash_.digest(client_key), auth_message(bare, challenge, without_proof))
    proof = base64.b64encode(exclusive_or(client_key, signature))
    message = without_proof + b",p=" + proof
    if nonce == first.nonce:
        assert isinstance(ours.respond(message), Proven)
    else:
        with pytest.raises(SaslMechanismError, match="nonce"):
            ours.respond(message)
