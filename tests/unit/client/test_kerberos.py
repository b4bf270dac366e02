"""Kerberos tickets of the client: settings, renewal, and tickets of a real KDC."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.client import AuthenticationFailedError, ClientSettings, SettingsError
from kustos.client.kerberos import LOGIN_MODULE, KerberosClientSettings, RenewRules, TicketSource, host_of
from kustos.client.kerberos.tickets import STEPS_AT_ONCE
from testkit.kdc import REALM, Kdc, kdc_of_this_process

ALICE = f"alice@{REALM}"
PATIENCE_S = 300.0
"""Ten tickets of ten seconds each take twenty on an idle machine."""

SOON = {
    "sasl.kerberos.ticket.renew.window.factor": "0.2",
    "sasl.kerberos.ticket.renew.jitter": "0",
    "sasl.kerberos.min.time.before.relogin": "0",
}


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with kdc_of_this_process(tmp_path_factory.mktemp("kdc")) as running:
        yield running


def settings(options: str, **more: str) -> KerberosClientSettings:
    keys = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": f"{LOGIN_MODULE} required {options};",
    }
    sasl = ClientSettings.from_properties("localhost:9092", keys | more).sasl
    assert sasl is not None
    assert sasl.kerberos is not None
    return sasl.kerberos


def by_keytab(keytab: Path, **more: str) -> KerberosClientSettings:
    return settings(f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="{ALICE}"', **more)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.to_thread(threading.Event().wait, 0.005)


def test_a_brokers_line_can_be_taken_over() -> None:
    found = settings(f'useKeyTab=true storeKey=true keyTab="file:/k" principal="{ALICE}" debug=true')
    assert found == KerberosClientSettings("kafka", ALICE, "/k")
    assert found.renew == RenewRules(0.8, 0.05, 60_000)
    cached = settings("useTicketCache=true renewTGT=true ticketCache='/c'", **SOON)
    assert cached == KerberosClientSettings("kafka", None, None, True, "/c", renew=RenewRules(0.2, 0.0, 0))
    by_option = settings("useTicketCache=true serviceName=x", **{"sasl.kerberos.service.name": ""})
    assert by_option.service_name == "x"


@pytest.mark.parametrize(
    ("options", "more", "expected"),
    [
        ("", {}, "names neither keytab nor ticket cache"),
        ("storeKey=true", {}, "names neither keytab nor ticket cache"),
        ('useKeyTab=true keyTab="/k"', {}, "lacks `keyTab` or `principal`"),
        ("useKeyTab=true principal=a", {}, "lacks `keyTab` or `principal`"),
        (
            "useTicketCache=true",
            {"sasl.kerberos.service.name": " "},
            "`sasl.kerberos.service.name` is not set",
        ),
        ("useTicketCache=true serviceName=x", {}, "differ, make them the same"),
        ("useTicketCache=true", {"sasl.kerberos.ticket.renew.jitter": "2"}, "ticket.renew.jitter` is `2`"),
        ("useTicketCache=true", {"sasl.kerberos.ticket.renew.window.factor": "x"}, "factor` is `x`"),
        ("useTicketCache=true", {"sasl.kerberos.min.time.before.relogin": "-1"}, "relogin` is `-1`"),
    ],
)
def test_what_cannot_be_used_is_named(options: str, more: dict[str, str], expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        settings(options, **more)


RULES = st.builds(RenewRules, st.floats(0, 1), st.floats(0, 1), st.integers(0, 10**6))


@given(RULES, st.floats(0, 1), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**8))
def test_a_ticket_is_renewed_while_it_is_valid_and_no_sooner_than_may_be(
    rules: RenewRules, chance: float, age_ms: int, started_ms: int, rest_ms: int
) -> None:
    now_ms, expires_ms = started_ms + age_ms, started_ms + age_ms + rest_ms
    at_ms = rules.renew_at_ms(chance, now_ms, started_ms, expires_ms)
    assert now_ms <= at_ms <= expires_ms
    if rest_ms < rules.min_before_relogin_ms:
        return
    # as KerberosLogin.getRefreshTime calculates it, and its thread afterwards
    proposed_ms = started_ms + int((expires_ms - started_ms) * (rules.window_factor + rules.jitter * chance))
    if proposed_ms <= expires_ms:
        assert at_ms == max(proposed_ms, now_ms + rules.min_before_relogin_ms)
    else:
        assert at_ms == now_ms


async def test_all_who_wait_get_one_ticket_by_the_keytab(kdc: Kdc) -> None:
    source = TicketSource(by_keytab(kdc.keytab("alice")))
    before = kdc.logins("alice")
    got = await asyncio.gather(*(source.tickets() for _ in range(20)))
    assert {each.principal for each in got} == {ALICE}
    assert kdc.logins("alice") == before + 1
    assert "redentials" not in repr(got[0])


async def test_a_ticket_is_renewed_ahead_of_its_end_and_again(kdc: Kdc) -> None:
    keytab = kdc.keytab("short", max_life="10 seconds")
    options = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="short@{REALM}"'
    source = TicketSource(settings(options, **SOON))
    first = await source.tickets()
    assert 0 < first.lifetime_s <= 10
    # more often than there are caches, so that one is used again
    await until(lambda: kdc.logins("short") >= 10)
    assert await source.tickets() is not first


async def test_a_failed_renewal_keeps_the_ticket_as_long_as_it_is_valid(kdc: Kdc, tmp_path: Path) -> None:
    keytab = tmp_path / "copy.keytab"
    keytab.write_bytes(kdc.new_key("alice").read_bytes())
    source = TicketSource(by_keytab(keytab))
    first = await source.tickets()
    keytab.unlink()
    with pytest.raises(AuthenticationFailedError, match=f"cannot log in to Kerberos as `{ALICE}`"):
        await source.refreshed._next()
    assert await source.tickets() is first
    assert source.refreshed.timer is not None
    assert not source.refreshed.timer.cancelled()


async def test_the_tickets_of_a_cache_are_used_and_renewed_there(kdc: Kdc, tmp_path: Path) -> None:
    keytab = kdc.keytab("carol")
    cache = kdc.fill_cache(tmp_path / "tickets", "carol", keytab)
    kinit = tmp_path / "kinit"
    kinit.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/renewed\n')
    kinit.chmod(0o700)
    options = f'useTicketCache=true ticketCache="{cache}"'
    source = TicketSource(settings(options, **SOON, **{"sasl.kerberos.kinit.cmd": str(kinit)}))
    assert (await source.tickets()).principal == f"carol@{REALM}"
    kdc.fill_cache(cache, "alice", kdc.new_key("alice"))
    await source.refreshed._next()
    assert (await source.tickets()).principal == ALICE
    assert (tmp_path / "renewed").read_text() == f"-R -c {cache}\n"


async def test_without_a_ticket_in_the_cache_the_keytab_is_used_and_else_nothing(
    kdc: Kdc, tmp_path: Path
) -> None:
    cache = f'useTicketCache=true ticketCache="{tmp_path}/none"'
    with pytest.raises(AuthenticationFailedError, match="as the owner of the ticket cache"):
        await TicketSource(settings(cache)).tickets()
    both = f'{cache} useKeyTab=true keyTab="{kdc.new_key("alice")}" principal="{ALICE}"'
    assert (await TicketSource(settings(both)).tickets()).principal == ALICE


async def test_calls_that_nobody_waits_for_keep_their_slots() -> None:
    source = TicketSource(KerberosClientSettings("kafka", ALICE, "/k"))
    may_end, running = threading.Event(), []

    def step() -> None:
        running.append(1)
        may_end.wait(60)

    waiting = [asyncio.ensure_future(source.in_thread(step)) for _ in range(3 * STEPS_AT_ONCE)]
    await until(lambda: len(running) == STEPS_AT_ONCE)
    for each in waiting[:STEPS_AT_ONCE]:
        each.cancel()
    await asyncio.wait(waiting[:STEPS_AT_ONCE])
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(running) == STEPS_AT_ONCE
    may_end.set()
    await asyncio.gather(*waiting[STEPS_AT_ONCE:])
    assert len(running) == 3 * STEPS_AT_ONCE


def test_an_address_is_called_by_its_name_as_in_java() -> None:
    assert host_of("127.0.0.1") == "localhost"
    assert host_of("broker.example.com") == "broker.example.com"
    assert host_of("192.0.2.1") == "192.0.2.1"
