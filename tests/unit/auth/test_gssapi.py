"""The server side of GSSAPI, with tickets of a real KDC; the client is MIT's library, driven by hand."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gssapi
import pytest

from kustos.acl import KafkaPrincipal
from kustos.auth import (
    Authenticated,
    Close,
    CredentialsError,
    Fail,
    GssapiCredentials,
    GssapiServer,
    RunInThread,
    SaslEffect,
    SaslMechanismError,
    SaslServerMachine,
    SaslServerSettings,
    SaslState,
    default_realm,
)
from kustos.auth.mechanisms import BlockingStep, Challenge, MechanismStep, Proven
from testkit.clocks import ManualClock
from testkit.kdc import REALM, Kdc, kdc_of_this_process
from testkit.sasl import (
    api_versions_body,
    handshake,
    only_send,
    refusal,
    response,
    settled,
    token,
    versions_request,
)

SERVICE = f"kafka/localhost@{REALM}"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with kdc_of_this_process(tmp_path_factory.mktemp("kdc")) as running:
        yield running


@pytest.fixture(scope="module")
def credentials(kdc: Kdc) -> GssapiCredentials:
    return GssapiCredentials.acquire(kdc.keytab("kafka/localhost"), SERVICE)


@pytest.fixture(scope="module")
def alice(kdc: Kdc) -> Any:
    keytab = kdc.keytab("alice")
    # tickets of one KDC are of no use at the next
    store: Any = {"client_keytab": str(keytab), "ccache": f"MEMORY:{keytab}"}
    name = gssapi.Name(f"alice@{REALM}", gssapi.NameType.kerberos_principal)
    return gssapi.Credentials(usage="initiate", store=store, name=name)


def client(creds: Any, service: str = "kafka@localhost") -> Any:
    target = gssapi.Name(service, gssapi.NameType.hostbased_service)
    return gssapi.SecurityContext(
        name=target, usage="initiate", creds=creds, mech=gssapi.MechType.kerberos,
        flags=gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity,
    )  # fmt: skip


def answered(server: GssapiServer, data: bytes) -> MechanismStep:
    step = server.respond(data)
    assert isinstance(step, BlockingStep)
    return settled(step)


def offered(server: GssapiServer, context: Any) -> bytes:
    """Establish the context; return what the server then offers."""
    first = answered(server, context.step())
    assert isinstance(first, Challenge)
    assert context.step(first.token) is None
    assert context.complete
    offer = answered(server, b"")
    assert isinstance(offer, Challenge)
    unwrapped = context.unwrap(offer.token)
    assert not unwrapped.encrypted
    message: bytes = unwrapped.message
    return message


@pytest.mark.behaviour("B292")
@pytest.mark.parametrize("authorization_id", [b"", b"alice", b"root"])
def test_a_ticket_proves_its_principal_regardless_of_the_authorization_id(
    credentials: GssapiCredentials, alice: Any, authorization_id: bytes
) -> None:
    server, context = GssapiServer(credentials), client(alice)
    claimed = [server.claimed_name]
    assert offered(server, context) == b"\x01\x01\x00\x00"
    choice = context.wrap(b"\x01\x00\x00\x00" + authorization_id, False).message
    assert answered(server, choice) == Proven(b"", f"alice@{REALM}", has_last_token=False)
    assert [*claimed, server.claimed_name] == [None, f"alice@{REALM}"]
    with pytest.raises(SaslMechanismError, match="has ended"):
        server.respond(b"")


BAD_CHOICES: tuple[tuple[Callable[[Any], bytes], str], ...] = (
    (lambda context: context.wrap(b"\x02\x00\x00\x00", False).message, "without a security layer"),
    (lambda context: context.wrap(b"\x03\x00\x00\x00", False).message, "without a security layer"),
    (lambda context: context.wrap(b"\x00\x00\x00\x00", False).message, "without a security layer"),
    (lambda context: context.wrap(b"\x01\x00\x00", False).message, "without a security layer"),
    (lambda context: context.wrap(b"", False).message, "without a security layer"),
    (lambda context: b"\x01\x00\x00\x00", "GSSAPI: "),
    (lambda context: b"", "GSSAPI: "),
)


@pytest.mark.parametrize(("choose", "words"), BAD_CHOICES)
def test_an_unwrapped_or_not_offered_layer_choice_is_refused(
    credentials: GssapiCredentials, alice: Any, choose: Callable[[Any], bytes], words: str
) -> None:
    server, context = GssapiServer(credentials), client(alice)
    offered(server, context)
    with pytest.raises(SaslMechanismError, match=words):
        answered(server, choose(context))


@pytest.mark.behaviour("B356")
def test_a_replayed_ticket_is_refused(credentials: GssapiCredentials, alice: Any) -> None:
    context = client(alice)
    ticket = context.step()
    server, thiefs = GssapiServer(credentials), GssapiServer(credentials)
    first = answered(server, ticket)
    assert isinstance(first, Challenge)
    context.step(first.token)
    offer = answered(server, b"")
    assert isinstance(offer, Challenge)
    choice = context.wrap(b"\x01\x00\x00\x00", False).message
    assert isinstance(answered(server, choice), Proven)

    def replay() -> None:
        # the library may refuse the ticket; if not, its context has another key than the recorded choice
        for each in (ticket, b"", choice):
            answered(thiefs, each)

    with pytest.raises(SaslMechanismError):
        replay()


def test_invalid_tokens_are_refused(credentials: GssapiCredentials, alice: Any, kdc: Kdc) -> None:
    kdc.keytab("http/localhost")
    for bad in (b"", b"junk", client(alice, "http@localhost").step(), b"\x60\x03\x06\x01\x2a"):
        with pytest.raises(SaslMechanismError, match="GSSAPI: "):
            answered(GssapiServer(credentials), bad)
    server, context = GssapiServer(credentials), client(alice)
    answered(server, context.step())
    with pytest.raises(SaslMechanismError, match="none is expected"):
        answered(server, b"x")


def test_the_realm_comes_from_the_configuration(kdc: Kdc) -> None:
    assert default_realm() == REALM


def test_a_keytab_without_the_key_is_an_error_that_names_both(kdc: Kdc, tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"no-such\.keytab` has no usable key of `kafka/localhost@"):
        GssapiCredentials.acquire(tmp_path / "no-such.keytab", SERVICE)
    with pytest.raises(CredentialsError, match="no usable key of `kafka/elsewhere@"):
        GssapiCredentials.acquire(kdc.keytab("kafka/other"), f"kafka/elsewhere@{REALM}")


def machine(credentials: GssapiCredentials) -> SaslServerMachine:
    factories = {"GSSAPI": GssapiServer.factory(credentials)}
    return SaslServerMachine(
        SaslServerSettings({"GSSAPI": 60_000}), factories, api_versions_body, ManualClock(1_000_000)
    )


def run(server: SaslServerMachine, effects: tuple[SaslEffect, ...]) -> tuple[SaslEffect, ...]:
    """Run the blocking step that the machine asks for, and go on."""
    [blocking] = effects
    assert isinstance(blocking, RunInThread)
    assert server.state is SaslState.VERIFYING
    return server.resume(blocking.step)


def token_of(effects: tuple[SaslEffect, ...]) -> bytes:
    answer: bytes = response(only_send(effects), 36, 2).auth_bytes
    return answer


def test_a_login_with_blocking_steps_succeeds(credentials: GssapiCredentials, alice: Any) -> None:
    server, context = machine(credentials), client(alice)
    server.receive(versions_request())
    server.receive(handshake("GSSAPI"))
    context.step(token_of(run(server, server.receive(token(context.step())))))
    context.unwrap(token_of(run(server, server.receive(token(b"")))))
    choice = context.wrap(b"\x01\x00\x00\x00", False).message
    done = run(server, server.receive(token(choice)))[-1]
    assert isinstance(done, Authenticated)
    assert done.principal == KafkaPrincipal("User", f"alice@{REALM}")
    assert server.state is SaslState.COMPLETE
    assert server.resume(lambda: Proven(b"", "mallory")) == ()
    assert server.principal == done.principal


def test_a_frame_during_a_step_fails_the_login(credentials: GssapiCredentials, alice: Any) -> None:
    server = machine(credentials)
    server.receive(handshake("GSSAPI"))
    [blocking] = server.receive(token(client(alice).step()))
    assert isinstance(blocking, RunInThread)
    assert isinstance(server.receive(token(b""))[0], Close)
    assert server.resume(blocking.step) == ()
    assert server.principal is None


def raising(error: Exception) -> Callable[[], MechanismStep]:
    def step() -> MechanismStep:
        raise error

    return step


@pytest.mark.parametrize("error", [SaslMechanismError("the reason"), RuntimeError("with a s3cret")])
def test_a_step_that_fails_refuses_with_the_general_text(
    credentials: GssapiCredentials, alice: Any, error: Exception
) -> None:
    server = machine(credentials)
    server.receive(handshake("GSSAPI"))
    server.receive(token(client(alice).step()))
    [failure] = server.resume(raising(error))
    assert isinstance(failure, Fail)
    code, text = refusal(failure.response)
    assert (code, "due to invalid credentials with SASL mechanism GSSAPI" in text) == (58, True)
    assert "s3cret" not in failure.reason


def test_a_re_authentication_uses_blocking_steps(
    credentials: GssapiCredentials, alice: Any, kdc: Kdc
) -> None:
    keytab = kdc.keytab("bob")
    store: Any = {"client_keytab": str(keytab), "ccache": f"MEMORY:{keytab}"}
    name = gssapi.Name(f"bob@{REALM}", gssapi.NameType.kerberos_principal)
    bob = gssapi.Credentials(usage="initiate", store=store, name=name)
    server = machine(credentials)

    def log_in(creds: Any) -> SaslEffect:
        context = client(creds)
        begun = server.begin_reauthentication(handshake("GSSAPI")) or server.receive(handshake("GSSAPI"))
        assert response(only_send(begun), 17, 1).error_code == 0
        context.step(token_of(run(server, server.receive(token(context.step())))))
        context.unwrap(token_of(run(server, server.receive(token(b"")))))
        return run(server, server.receive(token(context.wrap(b"\x01\x00\x00\x00", False).message)))[-1]

    first, again = log_in(alice), log_in(alice)
    assert isinstance(first, Authenticated)
    assert isinstance(again, Authenticated)
    assert (first.is_reauthentication, again.is_reauthentication) == (False, True)
    server = machine(credentials)
    log_in(alice)
    changed = log_in(bob)
    assert isinstance(changed, Fail)
    assert "Cannot change principals during re-authentication" in changed.reason


def test_a_new_key_in_the_keytab_needs_no_restart(kdc: Kdc) -> None:
    keytab = kdc.keytab("rotated/localhost")
    rotated = GssapiCredentials.acquire(keytab, f"rotated/localhost@{REALM}")
    client_keytab = str(kdc.keytab("carol"))
    for number in range(2):
        store: Any = {"client_keytab": client_keytab, "ccache": f"MEMORY:{client_keytab}-{number}"}
        name = gssapi.Name(f"carol@{REALM}", gssapi.NameType.kerberos_principal)
        carol = gssapi.Credentials(usage="initiate", store=store, name=name)
        server, context = GssapiServer(rotated), client(carol, "rotated@localhost")
        offered(server, context)
        choice = context.wrap(b"\x01\x00\x00\x00", False).message
        assert answered(server, choice) == Proven(b"", f"carol@{REALM}", has_last_token=False)
        assert kdc.new_key("rotated/localhost") == keytab
