"""The client side of GSSAPI against our server with tickets of a real KDC, and against malicious servers."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kustos.auth import (
    CredentialsError,
    GssapiClient,
    GssapiCredentials,
    GssapiServer,
    GssapiTickets,
    SaslClientError,
    SaslMechanismError,
)
from kustos.auth.mechanisms import BlockingStep, Challenge, Proven
from testkit.kdc import REALM, Kdc, kdc_of_this_process
from testkit.sasl import settled

SERVICE = f"kafka/localhost@{REALM}"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with kdc_of_this_process(tmp_path_factory.mktemp("kdc")) as running:
        yield running


@pytest.fixture(scope="module")
def server_credentials(kdc: Kdc) -> GssapiCredentials:
    return GssapiCredentials.acquire(kdc.keytab("kafka/localhost"), SERVICE)


@pytest.fixture(scope="module")
def tickets(kdc: Kdc) -> GssapiTickets:
    return GssapiTickets.from_keytab(str(kdc.keytab("alice")), f"alice@{REALM}", "MEMORY:client-tests")


def answered(server: GssapiServer, token: bytes) -> Challenge | Proven:
    step = server.respond(token)
    assert isinstance(step, BlockingStep)
    return settled(step)


@pytest.mark.behaviour("B292")
def test_client_and_server_authenticate_each_other(
    server_credentials: GssapiCredentials, tickets: GssapiTickets
) -> None:
    client, server = GssapiClient(tickets, "kafka", "localhost"), GssapiServer(server_credentials)
    token: bytes | None = client.first()
    step: Challenge | Proven = Challenge(b"")
    rounds = 0
    while token is not None:
        assert not client.is_complete
        step = answered(server, token)
        token = client.respond(step.token)
        rounds += 1
    assert step == Proven(b"", f"alice@{REALM}", has_last_token=False)
    assert (client.is_complete, rounds) == (True, 3)
    with pytest.raises(SaslClientError, match="continues after"):
        client.respond(b"")


def offering(context: Any, layers: bytes) -> bytes:
    message: bytes = context.wrap(layers, False).message
    return message


OFFERS: tuple[tuple[Callable[[Any], bytes], str], ...] = (
    (lambda context: offering(context, b"\x06\x01\x00\x00"), "wants a security layer"),
    (lambda context: offering(context, b"\x01\x01\x00"), "wants a security layer"),
    (lambda context: offering(context, b"\x01\x01\x00\x00x"), "wants a security layer"),
    (lambda context: offering(context, b""), "wants a security layer"),
    (lambda context: b"\x01\x01\x00\x00", "GSSAPI: "),
    (lambda context: b"", "GSSAPI: "),
)


@pytest.mark.parametrize(("offer", "words"), OFFERS)
def test_an_offer_that_is_not_wrapped_or_demands_a_layer_is_refused(
    server_credentials: GssapiCredentials, tickets: GssapiTickets, offer: Callable[[Any], bytes], words: str
) -> None:
    client, context = GssapiClient(tickets, "kafka", "localhost"), server_credentials.context()
    assert client.respond(context.step(client.first())) == b""
    with pytest.raises(SaslClientError, match=words):
        client.respond(offer(context))
    assert not client.is_complete


def test_an_unauthenticated_server_is_refused(tickets: GssapiTickets, kdc: Kdc) -> None:
    for bad in (b"", b"junk", b"\x60\x03\x06\x01\x2a"):
        client = GssapiClient(tickets, "kafka", "localhost")
        client.first()
        with pytest.raises(SaslClientError):
            client.respond(bad)
        assert not client.is_complete
    # somebody with the key of another service cannot read the ticket
    other = GssapiCredentials.acquire(kdc.keytab("http/localhost"), f"http/localhost@{REALM}")
    with pytest.raises(SaslMechanismError, match="GSSAPI: "):
        answered(GssapiServer(other), GssapiClient(tickets, "kafka", "localhost").first())


def test_the_client_chooses_no_layer_of_several_offers(
    server_credentials: GssapiCredentials, tickets: GssapiTickets
) -> None:
    client, context = GssapiClient(tickets, "kafka", "localhost"), server_credentials.context()
    client.respond(context.step(client.first()))
    choice = client.respond(offering(context, b"\x07\x00\x10\x00"))
    assert choice is not None
    assert context.unwrap(choice).message == b"\x01\x00\x00\x00"
    with pytest.raises(SaslClientError, match="continues after"):
        client.respond(b"more")


@pytest.mark.behaviour("B356")
def test_an_unknown_service_is_reported(tickets: GssapiTickets) -> None:
    with pytest.raises(SaslClientError, match=r"no ticket for `kafka/nowhere`.*not found"):
        GssapiClient(tickets, "kafka", "nowhere").first()


@pytest.mark.behaviour("B356")
def test_a_wrong_key_and_a_missing_principal_are_reported(kdc: Kdc) -> None:
    keytab = str(kdc.keytab("stale"))
    with pytest.raises(CredentialsError, match="Kerberos gives no ticket"):
        GssapiTickets.from_keytab(keytab, f"nobody@{REALM}", "MEMORY:nobody")
    kdc.change_key("stale")
    with pytest.raises(CredentialsError, match="Kerberos gives no ticket"):
        GssapiTickets.from_keytab(keytab, f"stale@{REALM}", "MEMORY:stale")
