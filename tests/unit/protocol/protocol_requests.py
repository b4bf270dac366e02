"""Requests as plain dicts, and their answers as dicts."""

from collections.abc import Sequence
from typing import Any

from kustos.acl import CLUSTER_NAME, AclBinding, AclOperation, ResourceType
from kustos.wire import (
    Message,
    read_request_header,
    read_response_header,
    request_codec,
    response_codec,
    response_header_is_flexible,
)
from testkit.protocol.driver import Driver, Outcome
from testkit.protocol.random_requests import allow, frame_of, model

ALPHA = "alpha-topic"
GROUP_NAME, TRANSACTION = "group-one", "tx-one"


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
    """Return the outcome of a request, and its answer as a dict ({} for none)."""
    outcome = driver.run(frame(api_key, version, **fields))
    return outcome, answer_of(outcome, api_key, version)


def answer_of(outcome: Outcome, api_key: int, version: int) -> dict[str, Any]:
    """Return the answer to a request as a dict ({} for none)."""
    if outcome.response is None:
        return {}
    codec = response_codec(api_key, version)
    flexible = response_header_is_flexible(api_key, codec)
    _, body_at = read_response_header(outcome.response, flexible)
    return codec.decode(outcome.response, body_at).message.to_dict()


def forwarded(outcome: Outcome, which: int = 0) -> dict[str, Any]:
    """Return a forwarded request as a dict."""
    sent = outcome.forwarded[which]
    codec = request_codec(int.from_bytes(sent[:2], "big"), int.from_bytes(sent[2:4], "big"))
    return codec.decode(sent, read_request_header(sent, codec.flexible).body_offset).message.to_dict()


def may(operation: str, kind: str = "TOPIC", name: str | None = None) -> AclBinding:
    """Return the ACL of an operation, by default on the test resource of its kind."""
    names = {"TOPIC": ALPHA, "GROUP": GROUP_NAME, "CLUSTER": CLUSTER_NAME, "TRANSACTIONAL_ID": TRANSACTION}
    return allow(ResourceType[kind], name or names[kind], AclOperation[operation])


def codes(value: Any) -> set[int]:
    """Return every error code of an answer other than success."""
    if isinstance(value, dict):
        own = {value[name] for name in ("error_code", "partition_error_code") if name in value} - {0}
        return own.union(*map(codes, value.values()))
    return set().union(*map(codes, value)) if isinstance(value, list) else set()


def refusals(acls: Sequence[AclBinding], api_key: int, version: int, fields: dict[str, Any]) -> set[int]:
    """Return the error codes of the answer; check that the request is forwarded exactly if there are none."""
    outcome, answer = ask(connection(*acls), api_key, version, **fields)
    assert bool(outcome.forwarded) is not bool(codes(answer) & {29, 30, 31, 53})
    return codes(answer)


def needs(
    api_key: int,
    version: int,
    fields: dict[str, Any],
    acls: Sequence[AclBinding],
    code: int,
    *others: AclBinding,
) -> None:
    """Check that exactly these ACLs suffice, and that no other ACL replaces one of them."""
    assert refusals(acls, api_key, version, fields) == set()
    for missing in range(len(acls)):
        fewer = [*acls[:missing], *acls[missing + 1 :]]
        assert refusals(fewer, api_key, version, fields), acls[missing]
        for other in others:
            assert refusals([*fewer, other], api_key, version, fields), other
    assert refusals([], api_key, version, fields) == {code}
