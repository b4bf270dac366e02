"""Requests written as plain dicts, and their answers read as such."""

from typing import Any

from kustos.acl import AclBinding
from kustos.wire import (
    Message,
    read_request_header,
    read_response_header,
    request_codec,
    response_codec,
    response_header_is_flexible,
)
from testkit.protocol.driver import Driver, Outcome
from testkit.protocol.random_requests import frame_of, model


def built(made: type[Message], values: dict[str, Any]) -> Message:
    """Return a message of nested dicts."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        element = made.ELEMENTS.get(name)
        if element is not None and isinstance(value, list):
            value = [built(element, item) for item in value]
        elif element is not None and isinstance(value, dict):
            value = built(element, value)
        fields[name] = value
    return made(**fields)


def connection(*acls: AclBinding, ready: bool = True) -> Driver:
    return Driver(model(), list(acls), ready=ready)


def frame(api_key: int, version: int, **fields: Any) -> bytes:
    return frame_of(api_key, version, built(request_codec(api_key, version).root, fields))


def ask(driver: Driver, api_key: int, version: int, **fields: Any) -> tuple[Outcome, dict[str, Any]]:
    """Return what became of a request, and its answer as a dict ({} for none)."""
    outcome = driver.run(frame(api_key, version, **fields))
    if outcome.response is None:
        return outcome, {}
    codec = response_codec(api_key, version)
    flexible = response_header_is_flexible(api_key, codec)
    _, body_at = read_response_header(outcome.response, flexible)
    return outcome, codec.decode(outcome.response, body_at).message.to_dict()


def forwarded(outcome: Outcome, which: int = 0) -> dict[str, Any]:
    """Return a forwarded request as a dict."""
    sent = outcome.forwarded[which]
    codec = request_codec(int.from_bytes(sent[:2], "big"), int.from_bytes(sent[2:4], "big"))
    return codec.decode(sent, read_request_header(sent, codec.flexible).body_offset).message.to_dict()
