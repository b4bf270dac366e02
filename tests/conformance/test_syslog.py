"""A real rsyslogd reads every message as it was meant, by each transport, whatever a client calls itself."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from ssl import SSLContext, create_default_context

import pytest

from kustos.acl import KafkaPrincipal
from kustos.authorizer import PASSED, ShadowDecision
from kustos.authorizer.audit import AuditFormat
from kustos.gateway.audit import parse_receiver
from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.events import RequestEvents
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.syslog import SyslogMessages, SyslogSink
from testkit.gateway.audit import CONTEXT, DENIED, EVENTS, decided, failure, lines_of
from testkit.rsyslog import MESSAGE_BYTES_MAX, Received, Rsyslog
from testkit.waiting import wait_until

TRANSPORTS = ("tcp", "tls", "udp", "unix")
HOSTILE = (
    "two\nlines",
    '<0>1 - - - - - - forged\n<0>1 - forged "][]\\',
    "35 <13>1 2026-01-01T00:00:00Z h a p m -",
    "nul\x00 bell\x07 tab\t esc\x1b[2J",
    "\u2028\u202e\ufeffbom 😀 ü",
    "x" * 1000,
    "é" * 6000,
)


@pytest.fixture(scope="module")
def rsyslog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rsyslog]:
    with Rsyslog(tmp_path_factory.mktemp("rsyslog")) as receiver:
        yield receiver


def trusting(rsyslog: Rsyslog) -> Callable[[], SSLContext]:
    return lambda: create_default_context(cadata=rsyslog.authority.pem)


def sink_of(rsyslog: Rsyslog, transport: str, line_format: AuditFormat = AuditFormat.KUSTOS) -> SyslogSink:
    messages = SyslogMessages.of_host("authpriv", line_format, MESSAGE_BYTES_MAX)
    return SyslogSink(parse_receiver(rsyslog.receiver(transport)), messages, trusting(rsyslog))


def requests_of(number: int) -> list[RequestEvents]:
    """Return an event for each hostile text, which is in every field that a client chooses."""
    return [
        RequestEvents(
            number + at,
            1_795_235_215_815,
            replace(CONTEXT, principal=KafkaPrincipal("User", text), client_id=text[:255]),
            (decided(text, DENIED),),
            7,
        )
        for at, text in enumerate(HOSTILE)
    ]


async def arrived(rsyslog: Rsyslog, count: int) -> list[Received]:
    def look() -> list[Received]:
        found = rsyslog.received()
        return found if len(found) >= count else []

    await asyncio.to_thread(wait_until, look, what=f"{count} messages are there")
    return rsyslog.received()


@pytest.mark.parametrize("line_format", AuditFormat)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_each_event_is_one_message_and_reads_as_the_event(
    rsyslog: Rsyslog, transport: str, line_format: AuditFormat
) -> None:
    before = len(rsyslog.received())
    sink = sink_of(rsyslog, transport, line_format)
    requests = requests_of(0)
    await sink.write(lines_of(*requests))
    await sink.close()
    found = (await arrived(rsyslog, before + len(requests)))[before:]
    assert len(found) == len(requests)
    for text, request, message in zip(HOSTILE, requests, found, strict=True):
        (own,) = map(json.loads, EVENTS.json_lines(request))
        assert message.app_name == "kustos"
        assert (message.procid, message.msgid) == ("3", "DECISION")
        assert (message.facility, message.severity) == ("authpriv", "warning")
        assert message.structured_data.startswith('[origin software="kustos" swVersion="')
        assert message.timestamp == "2026-11-21T04:26:55.815Z"
        assert message.input_name in {transport, "imuxsock", "imtcp", "imudp"}
        event = json.loads(message.message)
        if line_format is AuditFormat.CLOUDEVENTS:
            assert event["specversion"] == "1.0"
            event = event["data"]
        if line_format is AuditFormat.OCSF:
            assert event["metadata"]["uid"] == own["event_id"]
            name = event["actor"]["user"]["name"]
        else:
            name = event["principal_name"]
            assert event["event_id"] == own["event_id"]
        if len(text) < 1000:
            assert name == text
            if line_format is AuditFormat.KUSTOS:
                assert event == own
        assert name.startswith(text[:32])
    assert sink.shortened_events >= 1


async def test_severity_says_what_an_event_is(rsyslog: Rsyslog) -> None:
    before = len(rsyslog.received())
    items = {
        "info": decided("allowed"),
        "warning": decided("denied", DENIED),
        "info ": decided("probe", DENIED, log_if_denied=False),
        "info  ": decided("listed", DENIED)._replace(listing=True),
        "warning ": decided("shadow", PASSED)._replace(shadow=ShadowDecision(DENIED)),
    }
    security = EVENTS.security_line(9, failure("eve\n<0>1 forged"))
    sink = sink_of(rsyslog, "tcp")
    await sink.write(lines_of(RequestEvents(0, 1, CONTEXT, tuple(items.values()), 7)) + security)
    await sink.close()
    found = (await arrived(rsyslog, before + 6))[before:]
    assert [each.severity for each in found] == [*(each.strip() for each in items), "warning"]
    assert found[-1].msgid == "LOGIN"
    assert json.loads(found[-1].message)["claimed_name"] == "eve\n<0>1 forged"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_receiver_that_was_away_gets_what_waited_and_what_comes(
    tmp_path: Path, transport: str
) -> None:
    receiver = Rsyslog(tmp_path / "rsyslog")
    await asyncio.to_thread(receiver.start)
    log = AuditLog(EVENTS, [sink_of(receiver, transport)])
    try:
        log.record(CONTEXT, [decided("before")], 1)
        await arrived(receiver, 1)
        await asyncio.to_thread(receiver.stop)
        for number in range(3):
            log.record(CONTEXT, [decided(f"while-{number}")], 1)
        if transport != "udp":
            # nobody tells a sender of UDP for certain that there is no receiver
            await asyncio.to_thread(wait_until, lambda: log.is_full, what="the sink fails")
        await asyncio.to_thread(receiver.start)
        await asyncio.to_thread(wait_until, lambda: not log.is_full, what="the sink writes again")
        log.record(CONTEXT, [decided("after")], 1)

        def names() -> set[str]:
            return {json.loads(each.message)["resource_name"] for each in receiver.received()}

        await asyncio.to_thread(wait_until, lambda: "after" in names(), what="the last event is there")
        assert {"before", "after"} <= names()
        if transport != "udp":
            assert {"while-0", "while-1", "while-2"} <= names()
    finally:
        await log.close()
        await asyncio.to_thread(receiver.stop)


async def test_a_receiver_whose_certificate_is_not_trusted_gets_nothing(rsyslog: Rsyslog) -> None:
    before = len(rsyslog.received())
    messages = SyslogMessages.of_host("local0", AuditFormat.KUSTOS, MESSAGE_BYTES_MAX)
    sink = SyslogSink(parse_receiver(rsyslog.receiver("tls")), messages, create_default_context)
    with pytest.raises(AuditSinkError, match="its certificate is not trusted"):
        await sink.open()
    with pytest.raises(AuditSinkError, match="its certificate is not trusted"):
        await sink.write(lines_of(*requests_of(0)))
    assert len(rsyslog.received()) == before


async def test_without_a_receiver_a_sink_does_not_open(tmp_path: Path) -> None:
    messages = SyslogMessages.of_host("local0", AuditFormat.KUSTOS, MESSAGE_BYTES_MAX)
    sink = SyslogSink(parse_receiver(f"unix://{tmp_path}/nobody"), messages)
    with pytest.raises(AuditSinkError, match="cannot send to the syslog receiver `unix://"):
        await sink.open()
