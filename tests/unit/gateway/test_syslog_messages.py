"""Messages of syslog by the letter of RFC 5424: headers, encoding, framing, size, and receivers by name."""

import asyncio
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import KafkaPrincipal
from kustos.authorizer.audit import AuditFormat
from kustos.gateway.audit import SyslogTransport, parse_receiver
from kustos.gateway.audit.events import RequestEvents
from kustos.gateway.audit.syslog import SyslogMessages, SyslogSink
from kustos.gateway.audit.syslog.messages import header_text, parameter_value
from testkit.gateway.audit import CONTEXT, DENIED, EVENTS, decided, lines_of

GRAMMAR = re.compile(
    rb"<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([\x21-\x7e]{1,255}) ([\x21-\x7e]{1,48}) "
    rb"([\x21-\x7e]{1,128}) ([\x21-\x7e]{1,32}) "
    rb'(\[[^ ="\]]{1,32}(?: [^ ="\]]{1,32}="(?:[^"\\\]]|\\["\\\]])*")*\]) ([\x20-\x7e]*)'
)
"""RFC 5424, section 6, with the fields that kustos always has; MSG in ASCII without a byte order mark."""


def messages_of(line_format: AuditFormat = AuditFormat.KUSTOS, max_bytes: int = 8192) -> SyslogMessages:
    return SyslogMessages.of_host("audit", line_format, max_bytes)


def request_of(text: str) -> RequestEvents:
    context = replace(CONTEXT, principal=KafkaPrincipal("User", text), client_id=text)
    return RequestEvents(0, 1_795_235_215_815, context, (decided(text, DENIED),), 7)


@given(
    st.text(max_size=40) | st.text(max_size=20).map(lambda text: text * 2000), st.sampled_from(AuditFormat)
)
def test_every_message_follows_the_grammar_and_fits(text: str, line_format: AuditFormat) -> None:
    clean = text.encode("utf-8", "replace").decode()
    for message in messages_of(line_format).of_lines(lines_of(request_of(clean))):
        parsed = GRAMMAR.fullmatch(message.data)
        assert parsed is not None
        assert int(parsed[1]) == 13 * 8 + 4
        assert len(message.data) <= 8192
        event = json.loads(parsed[8])
        if not message.is_shortened and line_format is AuditFormat.KUSTOS:
            assert [event] == list(map(json.loads, EVENTS.json_lines(request_of(clean))))


@pytest.mark.parametrize(
    ("text", "field"), [("a b\x00é", "ab"), ("", "-"), ("\n", "-"), ("n" * 300, "n" * 255)]
)
def test_a_field_of_the_header_is_printable_and_never_empty(text: str, field: str) -> None:
    assert header_text(text) == field


def test_three_characters_are_escaped_in_structured_data() -> None:
    assert parameter_value('a"b\\c]d[e') == 'a\\"b\\\\c\\]d[e'


@pytest.mark.parametrize(
    ("text", "transport", "at"),
    [
        ("tcp://log:514", SyslogTransport.TCP, ("log", 514)),
        ("TLS://[::1]:6514", SyslogTransport.TLS, ("::1", 6514)),
        ("udp://10.0.0.1:514", SyslogTransport.UDP, ("10.0.0.1", 514)),
        ("unix:///dev/log", SyslogTransport.UNIX, ("", 0)),
    ],
)
def test_a_receiver_is_named_by_transport_and_address(
    text: str, transport: SyslogTransport, at: tuple[str, int]
) -> None:
    receiver = parse_receiver(text)
    assert (receiver.transport, (receiver.host, receiver.port)) == (transport, at)


@pytest.mark.parametrize(
    "text",
    ["", "log:514", "tcp://log", "tcp://:514", "tcp://log:0", "tcp://log:65536", "unix://dev/log", "x://a:1"],
)
def test_an_invalid_receiver_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid"):
        parse_receiver(text)


async def test_each_message_of_a_stream_has_a_length_prefix_and_no_suffix() -> None:
    received: list[bytes] = []
    ended = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read())
        writer.close()
        ended.set()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sink = SyslogSink(parse_receiver(f"tcp://127.0.0.1:{port}"), messages_of())
    await sink.write(lines_of(request_of("one\ntwo"), request_of("three")))
    await sink.close()
    async with asyncio.timeout(60):
        await ended.wait()
    server.close()
    rest, seen = received[0], []
    while rest:
        # RFC 6587, 3.4.1: MSG-LEN is a number without leading zeros, then a blank
        length = re.match(rb"([1-9]\d*) ", rest)
        assert length is not None
        end = length.end() + int(length[1])
        seen.append(rest[length.end() : end])
        rest = rest[end:]
    assert [GRAMMAR.fullmatch(each) is not None for each in seen] == [True, True]
