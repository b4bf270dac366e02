"""Principals are built as Kafka's class builds them, and a custom builder is not trusted."""

import traceback
from collections.abc import Callable, Mapping

import pytest

from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.auth import (
    Authenticated,
    AuthenticationContext,
    DefaultKafkaPrincipalBuilder,
    Fail,
    KafkaPrincipalBuilder,
    ListenerPrincipals,
    PlainServer,
    PlainUsers,
    PrincipalBuilderError,
    SaslAuthenticationContext,
    SaslServerMachine,
    SaslServerSettings,
    SslAuthenticationContext,
    client_mechanism,
    configured,
)
from kustos.auth.mapping import kerberos_shortener, ssl_principal_mapper
from kustos.auth.mechanisms import Proven
from testkit.clocks import ManualClock
from testkit.sasl import (
    PASSWORD,
    SeededEntropy,
    api_versions_body,
    handshake,
    log_in,
    refusal,
    token,
)

HOST = "192.0.2.7"
NAME = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


def principals(builder: KafkaPrincipalBuilder) -> ListenerPrincipals:
    return ListenerPrincipals(listener_name="CLIENTS", security_protocol="SASL_SSL", builder=builder)


def default(ssl_rules: str = "DEFAULT", kerberos_rules: tuple[str, ...] = ("DEFAULT",)) -> ListenerPrincipals:
    return principals(
        DefaultKafkaPrincipalBuilder(
            ssl_principal_mapper(ssl_rules), kerberos_shortener(kerberos_rules, "REALM")
        )
    )


class Building(KafkaPrincipalBuilder):
    """Builds as a test says."""

    def __init__(self, build: Callable[[AuthenticationContext], object] = lambda _: ANONYMOUS) -> None:
        self._build = build

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        built: KafkaPrincipal = self._build(context)  # type: ignore[assignment]  # that is what is tested
        return built


@pytest.mark.behaviour("B289", "B291")
def test_without_login_or_certificate_one_is_anonymous() -> None:
    assert default().without_login(HOST) == ANONYMOUS
    assert default().of_certificate(HOST, None, None) == ANONYMOUS


@pytest.mark.behaviour("B290")
def test_the_name_of_a_certificate_is_mapped() -> None:
    rules = "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L"
    assert default(rules).of_certificate(HOST, NAME, b"") == KafkaPrincipal("User", "duke")
    assert default().of_certificate(HOST, NAME, b"") == KafkaPrincipal("User", NAME)
    with pytest.raises(PrincipalBuilderError, match="no rule applies to `CN=x`"):
        default(rules).of_certificate(HOST, "CN=x", b"")


@pytest.mark.behaviour("B292")
def test_kerberos_names_are_shortened_and_other_users_are_not() -> None:
    rules = ("RULE:[2:$1-$2]", "DEFAULT")
    of_login = default(kerberos_rules=rules).of_login
    assert of_login(HOST, "GSSAPI", Proven(b"", "alice@REALM")) == KafkaPrincipal("User", "alice")
    assert of_login(HOST, "GSSAPI", Proven(b"", "a/b@R")) == KafkaPrincipal("User", "a-b")
    assert of_login(HOST, "SCRAM-SHA-256", Proven(b"", "a/b@R")) == KafkaPrincipal("User", "a/b@R")
    with pytest.raises(PrincipalBuilderError, match="no rule applies"):
        of_login(HOST, "GSSAPI", Proven(b"", "alice@ELSEWHERE"))


@pytest.mark.behaviour("B294")
def test_the_token_flag_comes_from_the_login() -> None:
    liar = Building(lambda _: KafkaPrincipal("User", "x", token_authenticated=True))
    assert not principals(liar).of_login(HOST, "PLAIN", Proven(b"", "x")).token_authenticated
    by_token = default().of_login(HOST, "SCRAM-SHA-256", Proven(b"", "x", token_authenticated=True))
    assert by_token.token_authenticated
    assert by_token == KafkaPrincipal("User", "x")


@pytest.mark.behaviour("B338")
def test_a_builder_is_configured_and_gets_the_context() -> None:
    seen: list[object] = []

    def remembering(context: AuthenticationContext) -> object:
        seen.append(context)
        return KafkaPrincipal("Group", "staff")

    class Ours(Building):
        def __init__(self) -> None:
            super().__init__(remembering)

        def configure(self, configs: Mapping[str, str]) -> None:
            seen.append(configs["the.key"])

    ours = principals(configured(Ours, {"the.key": "value"}))
    assert ours.of_certificate(HOST, NAME, b"DER") == KafkaPrincipal("Group", "staff")
    assert ours.of_login(HOST, "PLAIN", Proven(b"", "alice")) == KafkaPrincipal("Group", "staff")
    assert seen == [
        "value",
        SslAuthenticationContext(
            listener_name="CLIENTS", client_address=HOST, distinguished_name=NAME, certificate=b"DER"
        ),
        SaslAuthenticationContext(
            listener_name="CLIENTS",
            client_address=HOST,
            security_protocol="SASL_SSL",
            mechanism="PLAIN",
            authorization_id="alice",
        ),
    ]


class Sly(KafkaPrincipal):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def raising(error: Exception) -> Callable[[AuthenticationContext], object]:
    def build(_: AuthenticationContext) -> object:
        raise error

    return build


BROKEN = (
    (raising(RuntimeError("the s3cret")), "`Building` raised RuntimeError"),
    (lambda _: None, "returned a NoneType"),
    (lambda _: "User:alice", "returned a str"),
    (lambda _: Sly("User", "alice"), "returned a Sly"),
    (lambda _: KafkaPrincipal("User", ""), "a principal without a name"),
    (lambda _: KafkaPrincipal("", "alice"), "a principal without a name"),
    (lambda _: KafkaPrincipal("User", "*"), "may not log in"),
)


@pytest.mark.parametrize(("build", "words"), BROKEN)
def test_an_invalid_result_of_a_builder_is_refused(
    build: Callable[[AuthenticationContext], object], words: str
) -> None:
    broken = principals(Building(build))
    asks: tuple[Callable[[], object], ...] = (
        lambda: broken.without_login(HOST),
        lambda: broken.of_certificate(HOST, NAME, b""),
        lambda: broken.of_login(HOST, "PLAIN", Proven(b"", "alice")),
    )
    for ask in asks:
        with pytest.raises(PrincipalBuilderError, match=words) as caught:
            ask()
        assert "s3cret" not in str(caught.value)


def machine(builder: KafkaPrincipalBuilder) -> SaslServerMachine:
    users = PlainUsers({"alice": PASSWORD}, SeededEntropy())
    made = principals(builder)
    return SaslServerMachine(
        SaslServerSettings({"PLAIN": 60_000}),
        {"PLAIN": PlainServer.factory(users)},
        api_versions_body,
        ManualClock(1_000_000),
        principal_of_login=lambda mechanism, proven: made.of_login(HOST, mechanism, proven),
    )


@pytest.mark.behaviour("B338")
def test_the_session_is_the_principals_that_the_builder_built() -> None:
    server = machine(Building(lambda _: KafkaPrincipal("Service", "billing")))
    done = log_in(server, client_mechanism("PLAIN", "alice", PASSWORD, SeededEntropy()))
    assert isinstance(done, Authenticated)
    assert server.principal == KafkaPrincipal("Service", "billing")


@pytest.mark.parametrize(("build", "words"), BROKEN)
def test_a_login_that_the_builder_refuses_fails_without_its_reason(
    build: Callable[[AuthenticationContext], object], words: str
) -> None:
    server = machine(Building(build))
    server.receive(handshake())
    [failure] = server.receive(token(b"\0alice\0" + PASSWORD.encode()))
    assert isinstance(failure, Fail)
    code, text = refusal(failure.response)
    assert (code, "due to invalid credentials with SASL mechanism PLAIN" in text) == (58, True)
    assert words in failure.reason
    assert server.principal is None


def test_another_principal_fails_the_re_authentication() -> None:
    names = iter(("one", "two"))
    server = machine(Building(lambda _: KafkaPrincipal("User", next(names))))
    assert isinstance(
        log_in(server, client_mechanism("PLAIN", "alice", PASSWORD, SeededEntropy())), Authenticated
    )
    failed = log_in(server, client_mechanism("PLAIN", "alice", PASSWORD, SeededEntropy()))
    assert isinstance(failed, Fail)
    assert "Cannot change principals during re-authentication from User.one: User.two" in failed.reason


def test_a_builder_that_cannot_be_configured_is_an_error_without_its_text() -> None:
    class NoSettings(Building):
        def configure(self, configs: Mapping[str, str]) -> None:
            raise ValueError(f"cannot log in with {configs['ldap.password']}")

    class NoMaking(Building):
        def __init__(self) -> None:
            raise OSError("no database")

    with pytest.raises(PrincipalBuilderError, match=r"`NoSettings`, .*: it raised ValueError$") as caught:
        configured(NoSettings, {"ldap.password": PASSWORD})
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(PrincipalBuilderError, match=r"`NoMaking`, .*: it raised OSError$"):
        configured(NoMaking, {})
