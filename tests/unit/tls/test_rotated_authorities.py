"""Authorities with one name and several keys: each certificate finds the key that signed it."""

import ssl
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa

from kustos.tls import Side, TlsError, make_context, prove, tls_settings
from kustos.tls.openssl import CHEAP_KEY_BYTES, SENT_MAX, SIGNATURES_MAX, _Functions
from testkit.certificates import Authority, Holder, pem
from testkit.handshakes import refusal
from tests.unit.tls.test_pem_stores import keys_of

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
GENERATIONS = 3
ORDERS = list(permutations(range(GENERATIONS)))


@pytest.fixture(scope="module")
def authorities() -> list[Authority]:
    return [Authority("rotated") for _ in range(GENERATIONS)]


@pytest.fixture(scope="module")
def node() -> Holder:
    return Authority("of nodes").issue("node")


def context_of(
    side: Side, holder: Holder, trusted: str, version: ssl.TLSVersion = TLS13, **more: str
) -> ssl.SSLContext:
    keys = {
        **keys_of(holder),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": trusted,
        "ssl.client.auth": "required",
        "ssl.endpoint.identification.algorithm": "",
    }
    keys |= {name.replace("_", "."): value for name, value in more.items()}
    made = make_context(tls_settings(keys), side)
    prove(made, side)
    made.context.minimum_version = made.context.maximum_version = version
    return made.context


def both_ways(node: Holder, holder: Holder, trusted: str, version: ssl.TLSVersion) -> list[str | None]:
    """Return why this holder is refused by a listener and by an outgoing connection with this trust store."""
    theirs = pem([node.certificate])
    listener = context_of(Side.SERVER, node, trusted, version)
    client = context_of(Side.CLIENT, holder, theirs, version)
    broker = context_of(Side.SERVER, holder, theirs, version, ssl_client_auth="none")
    outgoing = context_of(Side.CLIENT, node, trusted, version)
    return [refusal(listener, client), refusal(broker, outgoing)]


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("order", ORDERS)
def test_every_key_of_a_rotated_authority_is_found(
    authorities: list[Authority], node: Holder, order: Sequence[int], version: ssl.TLSVersion
) -> None:
    trusted = "".join(authorities[index].pem for index in order)
    for authority in authorities:
        assert both_ways(node, authority.issue("alice"), trusted, version) == [None, None]
    for other in (Authority("rotated"), Authority("other")):
        refused = both_ways(node, other.issue("alice"), trusted, version)
        assert refused == ["unable to get local issuer certificate"] * 2


def presenting(holder: Holder, node: Holder, directory: Path) -> ssl.SSLContext:
    """Return a context that presents a chain as it is, whether or not it holds together."""
    context = ssl.create_default_context(cadata=pem([node.certificate]))
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    context.load_cert_chain(holder.write(directory / "alice.pem"))
    return context


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("place", ["in the store", "sent by the peer"])
def test_intermediates_with_one_name_are_distinguished(
    node: Holder, order: Sequence[int], place: str, tmp_path: Path
) -> None:
    root = Authority("root")
    between = [Authority("between", root) for _ in range(GENERATIONS)]
    listed = [between[index].certificate for index in order]
    for issuer in between:
        leaf = issuer.issue("alice")
        if place == "in the store":
            holder, trusted = Holder(leaf.key, leaf.chain[:1]), pem(listed)
        else:
            holder, trusted = Holder(leaf.key, (leaf.certificate, *listed)), root.pem
        server = context_of(Side.SERVER, node, trusted)
        assert refusal(server, presenting(holder, node, tmp_path)) is None


@pytest.mark.parametrize("order", ORDERS)
def test_a_chain_continues_with_the_issuer_that_leads_to_trust(
    node: Holder, order: Sequence[int], tmp_path: Path
) -> None:
    """One key under three authorities, each below a root of its own; one root is trusted."""
    roots = [Authority("root") for _ in range(GENERATIONS)]
    above = [Authority("above", root) for root in roots]
    first = Authority("crossed", above[0])
    crossed = [first, *(Authority("crossed", each, key=first.key) for each in above[1:])]
    leaf = first.issue("alice")
    sent = [each.certificate for index in order for each in (above[index], crossed[index])]
    holder = Holder(leaf.key, (leaf.certificate, *sent))
    client = presenting(holder, node, tmp_path)
    for root in roots:
        assert refusal(context_of(Side.SERVER, node, root.pem), client) is None
    other = context_of(Side.SERVER, node, Authority("root").pem)
    assert refusal(other, client) == "unable to get local issuer certificate"


def test_a_python_that_hides_openssl_verifies_clients_in_tls13_only(
    node: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kustos.tls.openssl._FUNCTIONS", None)
    with pytest.raises(TlsError, match=r"or set `ssl\.enabled\.protocols=TLSv1\.3`"):
        context_of(Side.SERVER, node, pem([node.certificate]))
    context_of(Side.SERVER, node, pem([node.certificate]), ssl_enabled_protocols="TLSv1.3")
    context_of(Side.SERVER, node, pem([node.certificate]), ssl_client_auth="none")
    context_of(Side.CLIENT, node, pem([node.certificate]))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_renewed_authority_replaces_the_expired_one(
    authorities: list[Authority], node: Holder, order: Sequence[int]
) -> None:
    """One key, two certificates: the valid one counts."""
    valid = authorities[0]
    expired = valid.renewed(datetime.now(UTC) - timedelta(hours=1))
    trusted = pem([(valid.certificate, expired)[index] for index in order])
    assert both_ways(node, valid.issue("alice"), trusted, TLS13) == [None, None]
    refused = both_ways(node, valid.issue("alice"), pem([expired]), TLS13)
    assert refused == ["certificate has expired"] * 2


@pytest.mark.parametrize("order", ORDERS)
def test_each_generation_has_its_list_of_revocations(
    authorities: list[Authority], node: Holder, order: Sequence[int], tmp_path: Path
) -> None:
    good = [each.issue("alice") for each in authorities]
    bad = [each.issue("mallory") for each in authorities]
    lists = tmp_path / "revoked.pem"
    revoked = [each.revoke(gone.certificate) for each, gone in zip(authorities, bad, strict=True)]
    lists.write_text("".join(revoked[index] for index in order))
    trusted = "".join(each.pem for each in authorities)
    server = context_of(Side.SERVER, node, trusted, kustos_ssl_crl_location=str(lists))

    def answer(holder: Holder) -> str | None:
        return refusal(server, context_of(Side.CLIENT, holder, pem([node.certificate])))

    assert [answer(each) for each in good] == [None] * GENERATIONS
    assert [answer(each) for each in bad] == ["certificate revoked"] * GENERATIONS
    lists.write_text("".join(revoked[:-1]))
    server = context_of(Side.SERVER, node, trusted, kustos_ssl_crl_location=str(lists))
    assert [answer(each) for each in good] == [None, None, "unable to get certificate CRL"]


def test_a_search_for_issuers_is_limited(node: Holder, tmp_path: Path) -> None:
    """Every certificate may be the issuer of every other, and none leads to the trust store."""
    key = Authority("maze")
    maze = [Authority("maze", key, key=key.key).certificate for _ in range(SENT_MAX - 1)]
    leaf = key.issue("alice")
    client = presenting(Holder(leaf.key, (leaf.certificate, *maze)), node, tmp_path)
    server = context_of(Side.SERVER, node, Authority("root").pem)
    assert refusal(server, client) == "unable to get local issuer certificate"


def test_more_generations_than_are_tried_are_refused(node: Holder) -> None:
    generations = [Authority("rotated") for _ in range(SIGNATURES_MAX + 1)]
    client = context_of(Side.CLIENT, generations[-1].issue("alice"), pem([node.certificate]))
    others = "".join(each.pem for each in generations[:-1])
    server = context_of(Side.SERVER, node, others)
    assert refusal(server, client) == "unable to get local issuer certificate"


LARGE_KEY_BITS = 16_384
RACE = """
import ssl, sys, threading
from kustos.tls import openssl
sys.setswitchinterval(1e-6)
barrier = threading.Barrier(12)
def create():
    barrier.wait()
    openssl.new_context(ssl.PROTOCOL_TLS_CLIENT)
threads = [threading.Thread(target=create) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
others = [bytes(200) for _ in range(10_000)]
for _ in range(50): ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""


def test_costly_keys_of_a_peer_are_tried_less_often(
    node: Holder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attacker needs no private key: any odd number is a modulus."""
    signer = Authority("signer", key=rsa.generate_private_key(65_537, 2_048))
    modulus = 2**LARGE_KEY_BITS - 1
    large = rsa.RSAPublicNumbers(65_537, modulus).public_key()
    subject = signer.certificate.subject

    def claimed(number: int) -> x509.Certificate:
        builder = x509.CertificateBuilder(subject, subject, large, number)
        builder = builder.not_valid_before(signer.certificate.not_valid_before_utc)
        builder = builder.not_valid_after(signer.certificate.not_valid_after_utc)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        assert isinstance(signer.key, rsa.RSAPrivateKey)
        return builder.sign(signer.key, hashes.SHA256())

    leaf = signer.issue("alice")
    sent = [claimed(number) for number in range(1, SENT_MAX)]
    client = presenting(Holder(leaf.key, (leaf.certificate, *sent)), node, tmp_path)
    server = context_of(Side.SERVER, node, Authority("root").pem)
    verified: list[int] = []
    verify = _Functions._is_signed

    def counted(functions: _Functions, name: str, signed: int, issuer: int) -> bool:
        verified.append(issuer)
        return verify(functions, name, signed, issuer)

    monkeypatch.setattr(_Functions, "_is_signed", counted)
    assert refusal(server, client) == "unable to get local issuer certificate"
    assert 1 <= len(verified) <= SIGNATURES_MAX // (LARGE_KEY_BITS // 8 // CHEAP_KEY_BYTES) ** 2


def test_threads_that_create_the_first_contexts_share_their_callbacks() -> None:
    """OpenSSL would go on to call callbacks that Python has freed."""
    for _ in range(4):
        subprocess.run([sys.executable, "-c", RACE], check=True)
