"""Theorems about the guard, over every API and version of its table."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import AclBinding
from kustos.wire import read_request_header, request_codec
from kustos.wire.primitives import uvarint
from testkit.protocol.driver import EVERY_VERSION, HOST, PRINCIPAL, Driver, Outcome
from testkit.protocol.random_requests import ALL_ALLOWED, frame_of, model, random_acls, random_request
from testkit.tap.checker import LISTINGS, RULES, Client, check_request, is_listing
from testkit.tap.client import AUTHORIZATION_CODES, UNKNOWN_SERVER_ERROR
from testkit.tap.frames import code, read_request, read_response
from testkit.tap.needs import NEEDS

SILENT_OR_SERVED = frozenset({17, 18, 27, 29, 30, 31, 36, 38, 39, 40, 41, 50, 51})
NEEDS_NO_ACL = frozenset({18, 38, 39, 40, 41})
"""ApiVersions needs no right, and own tokens need none; `check_response` checks their owner."""
IN_SESSIONS = frozenset({79})
"""APIs whose requests need the session that an earlier one has opened on the connection."""
REWRITTEN = frozenset({3, 75})
"""APIs for which the guard sends its own request about the topics."""


def drawn(api_key: int, version: int, seed: int, acls: list[AclBinding] | None) -> tuple[Driver, bytes]:
    """Return a connection, with random rights if none are given, and a request's frame."""
    random = Random(seed)
    world = model()
    world.auto_creates = random.random() < 0.7
    driver = Driver(world, random_acls(random) if acls is None else acls)
    return driver, frame_of(api_key, version, random_request(api_key, version, random, world))


@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION)
def test_nothing_unauthorised_is_forwarded_and_answers_are_kafkas(api_key: int, version: int) -> None:
    for seed in range(60):
        driver, frame = drawn(api_key, version, seed, [[], ALL_ALLOWED, None, None][seed % 4])
        _, violations = driver.checked(frame)
        assert not violations, f"seed {seed}: {violations}"


@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION)
def test_allowed_requests_reach_upstream_byte_for_byte(api_key: int, version: int) -> None:
    if api_key in SILENT_OR_SERVED | IN_SESSIONS:
        return
    unchanged = 0
    for seed in range(20):
        driver, frame = drawn(api_key, version, seed, ALL_ALLOWED)
        outcome = driver.run(frame)
        if api_key in REWRITTEN:
            assert all(forwarded[:2] == frame[:2] for forwarded in outcome.forwarded)
            unchanged += len(outcome.forwarded)
        elif outcome.forwarded[-1:] == [frame]:
            # kustos asks for the group of a member that it does not know
            assert {(api_key, sent[1]) for sent in outcome.forwarded[:-1]} <= {(68, 69), (88, 89)}
            unchanged += 1
    # requests that Kafka always rejects (unknown ids, duplicates, junk records) are not forwarded unchanged
    assert unchanged >= (
        1 if api_key in {0, 1, 3, 8, 9, 10, 19, 20, 32, 33, 37, 44, 61, 66, 75, 78, 88} else 8
    )


@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION)
def test_a_principal_without_rights_reaches_nothing(api_key: int, version: int) -> None:
    for seed in range(20):
        driver, frame = drawn(api_key, version, seed, [])
        before = dict(driver.model.topics)
        outcome = driver.run(frame)
        subject = Client(PRINCIPAL, HOST, [], driver.model.names)
        assert all(not NEEDS[api_key](read_request(f), subject) for f in outcome.forwarded)
        assert outcome.served is None or api_key in NEEDS_NO_ACL
        assert driver.model.topics == before


@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION)
def test_every_item_is_an_unknown_server_error_before_the_acls_are_loaded(api_key: int, version: int) -> None:
    for seed in range(20):
        driver, frame = drawn(api_key, version, seed, [])
        driver = Driver(driver.model, [], ready=False)
        outcome = driver.run(frame)
        request = read_request(frame)
        subject = Client(PRINCIPAL, HOST, [], driver.model.names, driver.model.auto_creates)
        assert all(not NEEDS[api_key](read_request(f), subject) for f in outcome.forwarded)
        if outcome.response is None:
            assert api_key == 0
            assert request.body.acks == 0, "only a request without acknowledgement gets no answer"
            assert outcome.closed is not None or not outcome.forwarded
            continue
        _, body = read_response(outcome.response, api_key, version)
        if api_key in LISTINGS - {9} or (is_listing(request) and api_key != 9):
            assert not getattr(body, "topics", ()), "nothing is listed"
            assert not getattr(body, "groups", ()), "nothing is listed"
            assert not getattr(body, "transaction_states", ()), "nothing is listed"
            continue
        if hasattr(body, "error_code") and code(body) == UNKNOWN_SERVER_ERROR:
            continue
        answered = dict(RULES[api_key].answered(request, body))
        for key, refusal in RULES[api_key].expected(request, subject):
            if refusal in AUTHORIZATION_CODES and not (api_key == 0 and answered[key] == refusal):
                assert answered[key] == UNKNOWN_SERVER_ERROR, f"seed {seed}: {key} of {answered}"


@given(
    which=st.sampled_from(EVERY_VERSION),
    seed=st.integers(0, 2**32),
    acls=st.sampled_from([None, ALL_ALLOWED]),
    noise=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 40),
    tail=st.binary(max_size=8),
)
@settings(max_examples=1500, deadline=None)
def test_any_request_is_rejected_or_forwarded_as_parsed(
    which: tuple[int, int],
    seed: int,
    acls: list[AclBinding] | None,
    noise: list[tuple[int, int]],
    cut: int,
    tail: bytes,
) -> None:
    driver, frame = drawn(*which, seed, acls)
    spoiled = bytearray(frame[: max(0, len(frame) - cut)] + tail)
    for place, byte in noise:
        if spoiled:
            spoiled[place % len(spoiled)] = byte
    assert_understood(driver, driver.run(bytes(spoiled)))


@given(noise=st.binary(max_size=80), which=st.sampled_from(EVERY_VERSION))
@settings(max_examples=500, deadline=None)
def test_noise_raises_only_a_rejection(noise: bytes, which: tuple[int, int]) -> None:
    driver = Driver(model(), ALL_ALLOWED)
    driver.run(noise)
    start = which[0].to_bytes(2, "big") + which[1].to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    assert_understood(driver, driver.run(start + noise))


def assert_understood(driver: Driver, outcome: Outcome) -> None:
    """Check that all forwarded bytes are canonical, and that kio reads the authorized request."""
    for forwarded in outcome.forwarded:
        request = read_request(forwarded)
        codec = request_codec(request.api_key, request.version)
        header = read_request_header(forwarded, codec.flexible)
        decoded = codec.decode(forwarded, header.body_offset)
        assert not decoded.had_unknown_tags
        again = codec.decode(codec.encode(decoded.message))
        assert again.message == decoded.message
        names = {**model().names, **driver.model.names}
        auto = driver.model.auto_creates
        assert not check_request(
            forwarded, PRINCIPAL, HOST, driver.acls, names, auto_creates_topics=auto
        ) or creates_what_is_there(request.api_key)


def creates_what_is_there(api_key: int) -> bool:
    """Return whether the API changes the state on which the needs depend: it creates or deletes topics."""
    return api_key in {3, 20}


FLEXIBLE = [which for which in EVERY_VERSION if request_codec(*which).flexible]


@given(which=st.sampled_from(FLEXIBLE), seed=st.integers(0, 2**32), tag=st.integers(50, 10**6))
@settings(max_examples=400, deadline=None)
def test_unknown_tags_are_stripped_in_the_header_and_in_the_body(
    which: tuple[int, int], seed: int, tag: int
) -> None:
    driver, frame = drawn(*which, seed, ALL_ALLOWED)
    plain = driver.run(frame)
    header = read_request_header(frame, True)
    payload = uvarint(1) + uvarint(tag) + uvarint(8) + b"smuggled"
    for tagged in (
        frame[: header.body_offset - 1] + payload + frame[header.body_offset :],
        frame[:-1] + payload if frame[-1] == 0 else frame,
    ):
        driver, _ = drawn(*which, seed, ALL_ALLOWED)
        outcome = driver.run(tagged)
        if outcome.closed is None:
            assert outcome.forwarded == plain.forwarded
            assert not any(b"smuggled" in forwarded for forwarded in outcome.forwarded)


@given(
    which=st.sampled_from(EVERY_VERSION), seed=st.integers(0, 2**32), tail=st.binary(min_size=1, max_size=9)
)
@settings(max_examples=400, deadline=None)
def test_bytes_after_the_body_are_never_forwarded(which: tuple[int, int], seed: int, tail: bytes) -> None:
    driver, frame = drawn(*which, seed, ALL_ALLOWED)
    plain = driver.run(frame)
    driver, _ = drawn(*which, seed, ALL_ALLOWED)
    assert driver.run(frame + tail).forwarded == plain.forwarded


@given(which=st.sampled_from(FLEXIBLE), seed=st.integers(0, 2**32), place=st.integers(0, 400))
@settings(max_examples=400, deadline=None)
def test_over_long_varints_are_never_forwarded(which: tuple[int, int], seed: int, place: int) -> None:
    driver, frame = drawn(*which, seed, ALL_ALLOWED)
    start = read_request_header(frame, True).body_offset - 1
    at = start + place % (len(frame) - start)
    longer = frame[:at] + bytes((frame[at] | 0x80, 0)) + frame[at + 1 :]
    outcome = driver.run(longer)
    assert longer not in outcome.forwarded or request_codec(*which).decode(
        longer, read_request_header(longer, True).body_offset
    )
    assert_understood(driver, outcome)
