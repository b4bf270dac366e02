"""Custom login classes are called for each connection, and their results are validated."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from kustos.auth import BearerToken, SaslServerSettings
from kustos.client import (
    AuthenticationFailedError,
    CannotConnectError,
    ClientSettings,
    LoginCallbackHandler,
    SettingsError,
    UserPassword,
    connect,
)
from kustos.server.settings.node_settings import settings_from
from testkit.gateway.gateways import PASSWORD, running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.ports import LOOPBACK
from tests.unit.server.test_settings import LEAST

SASL = SaslServerSettings(failed_authentication_delay_ms=10)
VAULT: dict[str, str] = {}
CONFIGURED: list[tuple[dict[str, str], str, dict[str, str]]] = []
SECRET = "the secret of the vault"


class Vault(LoginCallbackHandler):
    """The password is in a vault, and changes there."""

    def configure(self, configs: Mapping[str, str], mechanism: str, options: Mapping[str, str]) -> None:
        self.entry = options["entry"]
        CONFIGURED.append((dict(configs), mechanism, dict(options)))

    def credentials(self) -> UserPassword:
        return UserPassword("alice", VAULT[self.entry])


class Broken(LoginCallbackHandler):
    """Does what the test says."""

    answer: Any = None

    def credentials(self) -> Any:
        return type(self).answer()


def settings(port: int, handler: type[LoginCallbackHandler], **keys: str) -> ClientSettings:
    name = f"{handler.__module__}.{handler.__qualname__}"
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.login.callback.handler.class": name,
        "sasl.jaas.config": 'own.Vault required entry="kafka" token="hidden-option";',
        "ssl.key.password": "hidden-key",
        **{key.replace("_", "."): value for key, value in keys.items()},
    }
    return ClientSettings.from_properties(f"{LOOPBACK}:{port}", properties)


async def broker() -> ScriptedBroker:
    made = ScriptedBroker(1)
    await made.start()
    return made


@pytest.mark.behaviour("B237")
async def test_each_connection_asks_the_class_for_its_credentials() -> None:
    CONFIGURED.clear()
    async with running_gateway([await broker()], sasl=SASL) as served:
        ours = settings(served.port, Vault)
        VAULT["kafka"] = PASSWORD
        (await connect(ours.bootstrap_servers[0], ours)).close()
        VAULT["kafka"] = "out of date"
        with pytest.raises(AuthenticationFailedError, match=r"as `Vault`: .*Invalid username or password"):
            await connect(ours.bootstrap_servers[0], ours)
        VAULT["kafka"] = PASSWORD
        (await connect(ours.bootstrap_servers[0], ours)).close()
    [(configs, mechanism, options)] = CONFIGURED
    assert (mechanism, options["entry"]) == ("PLAIN", "kafka")
    assert configs["security.protocol"] == "SASL_PLAINTEXT"
    assert "hidden" not in str(configs)
    assert "hidden" not in repr(ours)
    assert ours.principal is None
    assert ours.who == "whom `Vault` logs in"


def fail() -> None:
    raise ValueError(SECRET)


def leave() -> None:
    raise SystemExit(SECRET)


@pytest.mark.behaviour("B237")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (fail, "`Broken` raised ValueError"),
        (leave, "`Broken` raised SystemExit"),
        (lambda: None, "unusable credentials for `PLAIN`, a `NoneType`"),
        (lambda: ("alice", SECRET), "unusable credentials for `PLAIN`, a `tuple`"),
        (lambda: UserPassword("alice", 4711), "unusable credentials"),  # type: ignore[arg-type]
        (lambda: BearerToken(SECRET), "unusable credentials for `PLAIN`, a `BearerToken`"),
        (lambda: UserPassword("", SECRET), "must not be empty"),
    ],
)
async def test_what_a_class_does_wrong_fails_the_login_without_its_words(answer: Any, words: str) -> None:
    async with running_gateway([await broker()], sasl=SASL) as served:
        ours = settings(served.port, Broken)
        Broken.answer = staticmethod(answer)
        with pytest.raises(AuthenticationFailedError) as caught:
            await connect(ours.bootstrap_servers[0], ours)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


async def test_a_class_that_hangs_is_given_up() -> None:
    async with running_gateway([await broker()], sasl=SASL) as served:
        Broken.answer = staticmethod(threading.Event().wait)
        for timeout_ms in ("200", "2000", "20000"):
            ours = settings(served.port, Broken, socket_connection_setup_timeout_ms=timeout_ms)
            with pytest.raises(CannotConnectError) as caught:
                await connect(ours.bootstrap_servers[0], ours)
            # a busy machine may need all of that until it is connected
            if "did not answer within" not in str(caught.value):
                break
        assert f"did not finish the login within {timeout_ms} ms" in str(caught.value)


@pytest.mark.behaviour("B237")
def test_a_node_may_log_in_upstream_by_a_class() -> None:
    prefix = "kustos.upstream."
    keys = {
        prefix + "security.protocol": "SASL_PLAINTEXT",
        prefix + "sasl.mechanism": "SCRAM-SHA-512",
        prefix + "sasl.login.callback.handler.class": f"{__name__}.Vault",
    }
    sasl = settings_from(LEAST | keys, {}).upstream.sasl
    assert sasl is not None
    assert sasl.login is not None
    assert sasl.login.handler_class is Vault


@pytest.mark.behaviour("B237")
@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            {"sasl_login_callback_handler_class": "json.JSONDecoder"},
            "not a subclass of `kustos.client.Login",
        ),
        ({"sasl_login_callback_handler_class": "unheard-of"}, "in `kustos.sasl.login.callbacks`"),
        ({"sasl_login_class": "a.Login"}, "`sasl.login.class` is `a.Login`: there is no login to replace"),
        ({"sasl_jaas_config": "nonsense"}, "`sasl.jaas.config`: "),
    ],
)
def test_what_cannot_be_used_is_said(keys: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(9092, Vault, **keys)
    assert words in str(caught.value)


@pytest.mark.behaviour("B237")
def test_a_listener_has_no_login_to_replace() -> None:
    kafkas = "org.apache.kafka.common.security.kerberos.KerberosLogin"
    settings_from(LEAST | {"sasl.login.class": kafkas}, {})
    for key in ("sasl.login.class", "listener.name.plaintext.plain.sasl.login.class"):
        with pytest.raises(SettingsError, match=r"a listener has no login of its own to replace"):
            settings_from(LEAST | {key: "a.Login"}, {})
