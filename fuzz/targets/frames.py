"""Everything before a login: bytes of a connection, cut into frames, for the SASL machine of a listener.

Seeds are the conversations that Kafka's own broker has answered.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Final

from fuzz.targets import require
from kustos.auth import Authenticated, Close, Fail, SaslServerMachine, SaslState, SendFrame
from kustos.auth.sasl_requests import read_request
from kustos.wire import (
    ApiKey,
    FrameLengthError,
    FrameReader,
    MalformedMessageError,
    read_request_header,
    request_codec,
)
from testkit.sasl import NAMES, OTHER_PASSWORD, PASSWORD, machine

INPUT_MAX_BYTES: Final = 4_096
FRAME_LIMIT: Final = 2_048
"""Of the reader, so that inputs go beyond it."""

HELD_MAX_BYTES: Final = 2 * FRAME_LIMIT
"""What the reader holds beside the bytes that came last: less than a frame; a buffer that grows has some
room."""

ANSWER_MAX_BYTES: Final = 1_024
"""The longest answer to a frame before a login: a few mechanisms, a SCRAM challenge, a sentence."""

_READ: Final = frozenset(
    {int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE), int(ApiKey.API_VERSIONS)}
)


def check(data: bytes) -> None:
    """Raise if somebody without the password is let in, or if it matters how TCP cuts the bytes."""
    whole = converse([data])
    at = data[0] if data else 0
    pieces = [data[:at], *(data[begin : begin + 7] for begin in range(at, len(data), 7))]
    require(converse(pieces) == whole, "the cuts of the stream change what is answered")
    # a SCRAM proof needs our nonce, which nobody has told the input
    secrets = (PASSWORD.encode(), OTHER_PASSWORD.encode())
    if any(isinstance(effect, Authenticated) for effect in whole):
        require(any(secret in data for secret in secrets), "somebody logs in without a password")


def converse(pieces: Sequence[bytes]) -> list[object]:
    """Return all effects of the bytes, as a connection has them."""
    server, reader = machine(connections_max_reauth_ms=dict.fromkeys(NAMES, 60_000)), FrameReader(FRAME_LIMIT)
    effects: list[object] = []
    for piece in pieces:
        try:
            frames, is_over = reader.feed(piece), False
        except FrameLengthError as error:
            frames, is_over = error.frames, True
        held = sum(map(sys.getsizeof, reader._parts))
        require(
            held <= HELD_MAX_BYTES + sys.getsizeof(piece), "a frame that is cut small takes more than it has"
        )
        for frame in frames:
            effects += taken(server, frame)
        if is_over:
            effects += server.oversized()
            break
    return effects


def taken(server: SaslServerMachine, frame: bytes) -> tuple[object, ...]:
    """Return what one frame leads to, and check its form."""
    printed(frame)
    if server.state is SaslState.COMPLETE:
        effects = server.begin_reauthentication(frame) or ()
    else:
        had_failed = server.state is SaslState.FAILED
        effects = server.receive(frame)
        require(not (had_failed and effects), "a machine that has failed answers")
    for effect in effects:
        match effect:
            case SendFrame(data):
                well_formed(data)
            case Fail(response=data):
                require(server.state is SaslState.FAILED, "a failure is not the end")
                if data:
                    well_formed(data)
            case Close():
                require(server.state is SaslState.FAILED, "a close is not the end")
    return effects


def well_formed(data: bytes) -> None:
    """Require that an answer is one frame, and a short one."""
    require(int.from_bytes(data[:4]) == len(data) - 4, "an answer is no frame")
    require(len(data) <= ANSWER_MAX_BYTES, "an answer is long")


def printed(frame: bytes) -> None:
    """Require that a request that was read says the same when it is written and read again."""
    try:
        request = read_request(frame, _READ)
    except MalformedMessageError:
        return
    if request.body is None:
        return
    codec = request_codec(request.api_key, request.api_version)
    header = read_request_header(frame, codec.flexible)
    require(header.correlation_id == request.correlation_id, "there are two correlation ids")
    again = codec.decode(codec.encode(request.body)).message
    require(again == request.body, "a request changes when it is written")


def seeds() -> Iterator[bytes]:
    """Yield what clients of the conversations say, as far as it does not depend on the answers."""
    from testkit.conversations import CORPUS, conversations
    from testkit.conversations.speaker import Speaker

    secrets = dict.fromkeys(("token", "hmac", "expired-token", "expired-hmac"), "c2VjcmV0")
    for conversation in conversations(CORPUS):
        speaker = Speaker(secrets)
        steps = [step for step in conversation.steps if not needs_kerberos(step.argument)]
        yield b"".join(speaker.say(step).data for step in steps)


def needs_kerberos(argument: object) -> bool:
    """Return whether the bytes of a step come from a ticket."""
    if isinstance(argument, list):
        return any(map(needs_kerberos, argument))
    if not isinstance(argument, dict):
        return False
    return bool({"ticket", "wrapped"} & argument.keys()) or any(map(needs_kerberos, argument.values()))
