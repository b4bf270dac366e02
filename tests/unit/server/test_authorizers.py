"""Authorizers are loaded by name, configured and started; otherwise the node does not start."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from kustos.authorizer import Authorizer, AuthorizerServerInfo, ClusterResource, Endpoint
from kustos.client import plugins
from kustos.client.errors import SettingsError
from kustos.legacy import AuthorizerWrapper, SimpleAclAuthorizer
from kustos.server.authorization import life as authorizer_life
from kustos.server.authorization.life import (
    AuthorizerStartError,
    ReconfigurationError,
    close,
    reconfigure,
    start,
)
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.plugins import find_authorizer
from testkit.acls.specified_authorizer import SpecAuthorizer
from testkit.waiting import NEVER_AWAITED
from tests.unit.server.test_settings import LEAST

PATH = "testkit.acls.specified_authorizer.SpecAuthorizer"
CLIENTS = Endpoint("CLIENTS", "PLAINTEXT", "127.0.0.1", 9092)
INSIDE = Endpoint("INSIDE", "PLAINTEXT", "127.0.0.1", 9093)
INFO = AuthorizerServerInfo(
    cluster_resource=ClusterResource("c"),
    broker_id=1,
    endpoints=(CLIENTS, INSIDE),
    inter_broker_endpoint=CLIENTS,
)


@pytest.mark.parametrize("name", [PATH, "testkit.acls.specified_authorizer:SpecAuthorizer"])
def test_a_path_leads_to_its_class(name: str) -> None:
    assert find_authorizer(name) is SpecAuthorizer


def test_kafkas_own_names_stand_for_the_standard_authorizer() -> None:
    assert find_authorizer("org.apache.kafka.metadata.authorizer.StandardAuthorizer") is None
    assert find_authorizer("kafka.security.authorizer.AclAuthorizer") is None
    with pytest.raises(SettingsError, match="a class of Java"):
        find_authorizer("kafka.security.authorizer.AclAuthorizerOfMine")


class WorkingHours(SimpleAclAuthorizer):
    """Somebody's authorizer of the legacy interface."""


def test_a_legacy_class_is_put_behind_todays_interface(tmp_path: Path) -> None:
    name = "kafka.security.auth.SimpleAclAuthorizer"
    keys = {"authorizer.class.name": name, "kustos.legacy.acl.file": str(tmp_path / "acls.json")}
    settings = settings_from(LEAST | keys, {})
    assert settings.make_authorizer is not None
    assert settings.make_authorizer is find_authorizer(name)
    made = settings.make_authorizer()
    assert isinstance(made, AuthorizerWrapper)
    made.configure(settings.authorizer_configs)
    theirs = find_authorizer("tests.unit.server.test_authorizers.WorkingHours")
    assert theirs is not None
    wrapper = theirs()
    assert isinstance(wrapper, AuthorizerWrapper)
    assert type(wrapper.base).__name__ == "WorkingHours"


def entry_points(*found: EntryPoint) -> Callable[..., EntryPoints]:
    return lambda **selected: EntryPoints(found).select(**selected)


def test_a_name_without_a_dot_is_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = EntryPoint("spec", "testkit.acls.specified_authorizer:SpecAuthorizer", "kustos.authorizers")
    others = EntryPoint("other", "json:loads", "kustos.authorizers")
    elsewhere = EntryPoint("elsewhere", ours.value, "console_scripts")
    monkeypatch.setattr(plugins, "entry_points", entry_points(ours, others, elsewhere))
    assert find_authorizer("spec") is SpecAuthorizer
    with pytest.raises(SettingsError, match="not a subclass"):
        find_authorizer("other")
    with pytest.raises(SettingsError, match="there are `other`, `spec`"):
        find_authorizer("elsewhere")
    monkeypatch.setattr(plugins, "entry_points", entry_points(ours, ours))
    with pytest.raises(SettingsError, match="2 installed packages"):
        find_authorizer("spec")


def test_a_module_that_breaks_when_it_is_loaded_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(SettingsError, match="loading it failed, ZeroDivisionError"):
        find_authorizer("broken_module.Authorizer")


FOREIGN = {
    "authorizer.class.name": PATH,
    "ranger.url": "http://${env:RANGER}",
    "super.users": "User:root",
    "listener.name.plaintext.plain.sasl.jaas.config": "a secret",
}


def test_a_custom_authorizer_gets_every_key_but_our_secrets() -> None:
    keys = LEAST | FOREIGN
    del keys["listener.name.plaintext.plain.sasl.jaas.config"]
    secret = {"kustos.upstream.sasl.jaas.config": 'PlainLoginModule required username="u" password="hidden";'}
    settings = settings_from(keys | secret, {"RANGER": "ranger:6080"})
    assert settings.make_authorizer is SpecAuthorizer
    assert settings.authorizer_configs["ranger.url"] == "http://ranger:6080"
    assert settings.authorizer_configs["super.users"] == "User:root"
    assert settings.authorizer_configs["node.id"] == keys["node.id"]
    assert not any("hidden" in text for text in settings.authorizer_configs.values())
    assert "ranger:6080" not in repr(settings)
    assert not any("ranger" in warning for warning in settings.warnings)


def test_keys_that_look_like_a_slip_are_told_of_though_they_are_handed_on() -> None:
    settings = settings_from(LEAST | {"authorizer.class.name": PATH, "super.user": "User:x"}, {})
    [warning] = [each for each in settings.warnings if "super.user`" in each]
    assert "handed to the authorizer, did you mean `super.users`" in warning


def test_a_reference_that_leads_nowhere_is_never_handed_on() -> None:
    with pytest.raises(SettingsError, match=r"`ranger.url`: the environment variable `RANGER` is not set"):
        settings_from(LEAST | {"authorizer.class.name": PATH, "ranger.url": "${env:RANGER}"}, {})


def test_keys_of_kustos_that_are_none_are_refused_as_ever() -> None:
    with pytest.raises(SettingsError, match=r"`kustos.ranger` is not a setting of kustos"):
        settings_from(LEAST | {"authorizer.class.name": PATH, "kustos.ranger": "1"}, {})


def test_the_standard_authorizer_gets_what_it_knows_and_foreign_keys_are_warned_of() -> None:
    keys = LEAST | {"super.users": "User:root", "ranger.url": "${env:NOWHERE}"}
    settings = settings_from(keys, {})
    assert settings.make_authorizer is None
    assert settings.authorizer_configs == {"super.users": "User:root"}
    assert any("`ranger.url` is not known and ignored" in warning for warning in settings.warnings)


class Starting(SpecAuthorizer):
    """Starts as a test says."""

    def __init__(self, begin: Callable[[], Any]) -> None:
        super().__init__()
        self.begin = begin

    def start(self, server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        assert server_info is INFO
        made: Mapping[Endpoint, Awaitable[None]] = self.begin()
        return made


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_each_listener_waits_for_its_own_and_one_that_has_none_for_all() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    ready = start(Starting(lambda: {CLIENTS: future}), INFO)
    await turn()
    assert not any(each.done() for each in ready.values())
    future.set_result(None)
    await asyncio.gather(*ready.values())


async def test_one_coroutine_may_stand_for_many_listeners() -> None:
    async def soon() -> None:
        await asyncio.sleep(0)

    once = soon()
    await asyncio.gather(*start(Starting(lambda: dict.fromkeys((CLIENTS, INSIDE), once)), INFO).values())
    await asyncio.gather(*start(SpecAuthorizer(), INFO).values())


def fails() -> Any:
    raise OSError("the store is down")


async def fails_later() -> None:
    raise OSError("the store is down")


@pytest.mark.filterwarnings(*NEVER_AWAITED)
@pytest.mark.parametrize(
    "begin", [fails, lambda: None, lambda: 7, lambda: [CLIENTS], lambda: {CLIENTS: None}, fails_later]
)
async def test_what_does_not_start_is_an_error(begin: Callable[[], Any]) -> None:
    with pytest.raises(AuthorizerStartError, match="the authorizer `Starting` does not start"):
        start(Starting(begin), INFO)


async def test_what_fails_later_fails_the_listeners_that_wait_for_it() -> None:
    ready = start(Starting(lambda: {CLIENTS: fails_later()}), INFO)
    for listener in ("CLIENTS", "INSIDE"):
        with pytest.raises(AuthorizerStartError, match="does not start, OSError: the store is down"):
            await ready[listener]


class Adjustable(SpecAuthorizer):
    """Has two settings that may change, of which one has to be a number."""

    def __init__(self) -> None:
        super().__init__()
        self.now: list[Mapping[str, str]] = []

    def reconfigurable_configs(self) -> frozenset[str]:
        return frozenset({"limit", "mode"})

    def validate_reconfiguration(self, configs: Mapping[str, str]) -> None:
        int(configs.get("limit", "0"))

    def reconfigure(self, configs: Mapping[str, str]) -> None:
        self.now.append(configs)


def test_only_what_may_change_changes() -> None:
    authorizer = Adjustable()
    old = {"limit": "1", "mode": "a", "url": "x", "kept": "y"}
    configs, waiting = reconfigure(authorizer, old, {"limit": "2", "url": "z", "kept": "y", "new": "w"})
    assert authorizer.now == [configs] == [{"limit": "2", "url": "x", "kept": "y"}]
    assert waiting == {"url", "new"}
    assert reconfigure(authorizer, old, old | {"url": "z"}) == (old, frozenset({"url"}))
    assert reconfigure(authorizer, old, old) == (old, frozenset())
    assert len(authorizer.now) == 1


def test_what_is_not_valid_changes_nothing() -> None:
    authorizer = Adjustable()
    with pytest.raises(ReconfigurationError, match="`Adjustable` refuses its new settings, ValueError"):
        reconfigure(authorizer, {"limit": "1"}, {"limit": "many"})
    assert authorizer.now == []


class Talkative(Adjustable):
    """Repeats what it does not like."""

    def validate_reconfiguration(self, configs: Mapping[str, str]) -> None:
        raise ValueError(configs["limit"])


def test_what_an_authorizer_says_of_its_settings_is_one_short_line() -> None:
    with pytest.raises(ReconfigurationError) as raised:
        reconfigure(Talkative(), {"limit": "1"}, {"limit": "many\n" * 1000})
    assert "refuses its new settings, ValueError: many" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 1000


async def test_an_end_that_takes_time_is_waited_for() -> None:
    ended: list[str] = []

    class Ending(SpecAuthorizer):
        def close(self) -> Awaitable[None]:  # type: ignore[override]
            async def end() -> None:
                await asyncio.sleep(0)
                ended.append("ended")

            return end()

    made: Authorizer = Ending()
    await close(made)
    await close(SpecAuthorizer())
    assert ended == ["ended"]


@pytest.mark.parametrize("end", [fails, fails_later, lambda: 7])
async def test_an_end_that_fails_keeps_nothing_else_open(end: Callable[[], Any]) -> None:
    authorizer: Any = SpecAuthorizer()
    authorizer.close = end
    with capture_logs() as logs:
        await close(authorizer)
    assert [log["log_level"] for log in logs] == ["error"]


async def test_an_end_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorizer_life, "CLOSE_TIMEOUT_S", 0.01)
    authorizer: Any = SpecAuthorizer()
    authorizer.close = asyncio.get_running_loop().create_future
    with capture_logs() as logs:
        await close(authorizer)
    assert ["TimeoutError" in log["reason"] for log in logs] == [True]
