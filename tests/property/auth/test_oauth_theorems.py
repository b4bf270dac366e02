"""Theorems of OAUTHBEARER: whatever a peer sends, it is read as what it says, or refused by a typed error."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.auth import AcceptedToken, RefusedToken
from kustos.auth.jwt import TokenClaimRules, UnsecuredTokenRules, validate_signed, validate_unsecured
from kustos.auth.mechanisms.oauthbearer_messages import InitialResponse, InitialResponseError
from testkit.bearer_tokens import (
    AUDIENCE,
    ISSUER,
    NOW_S,
    as_json,
    base64_url,
    claims,
    compact,
    known_keys,
    without_signature,
)

KEYS = known_keys("rsa-1", "ec256-1")
RULES = TokenClaimRules(frozenset({AUDIENCE}), ISSUER)
TOKEN = st.from_regex(r"[-_~+/.a-zA-Z0-9]{1,40}={0,2}", fullmatch=True)
EXTENSIONS = st.dictionaries(
    st.from_regex(r"[A-Za-z]{1,8}", fullmatch=True).filter(lambda key: key != "auth"),
    st.from_regex(r"[\x21-\x7e \t\r\n]{1,20}", fullmatch=True),
    max_size=5,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PIECES = (b"n,", b"a=", b",", b"\x01", b"auth=", b"Bearer ", b"t", b"k=v", b"\xff", b"=2C")


@pytest.mark.behaviour("B310", "B311", "B312")
@given(TOKEN, st.sampled_from(["", "alice", "a=2Cb=3D"]), EXTENSIONS)
def test_what_is_written_is_read(token: str, identity: str, extensions: dict[str, str]) -> None:
    message = InitialResponse(token, identity, extensions)
    read = InitialResponse.parse(message.encode())
    assert (read.token, read.authorization_id, dict(read.extensions)) == (token, identity, extensions)


@given(st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join))
def test_whatever_bytes_come_they_are_read_or_refused(data: bytes) -> None:
    try:
        read = InitialResponse.parse(data)
    except InitialResponseError:
        return
    assert read.token
    assert InitialResponse.parse(read.encode()) == read


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(["e30", ".", "", "eyJ", "a", "-"]), max_size=8).map("".join)
)
def test_whatever_text_comes_as_a_token_is_refused(text: str) -> None:
    for outcome in (
        validate_signed(text, KEYS, RULES, NOW_S * 1000).outcome,
        validate_unsecured(text, UnsecuredTokenRules(), NOW_S * 1000),
    ):
        assert isinstance(outcome, RefusedToken)


@given(
    st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "cty", "jwk", "x5u", "b64"]), JSON), JSON
)
def test_whatever_header_comes_only_a_signature_of_a_known_key_counts(
    header: dict[str, object], payload: object
) -> None:
    head, body = (
        base64_url(as_json(header)),
        base64_url(as_json(payload if isinstance(payload, dict) else "x")),
    )
    for signature in ("", "AAAA", "A" * 342):
        outcome = validate_signed(f"{head}.{body}.{signature}", KEYS, RULES, NOW_S * 1000).outcome
        assert isinstance(outcome, RefusedToken)


@pytest.mark.behaviour("B318", "B321")
@given(
    st.dictionaries(
        st.sampled_from(["exp", "iat", "nbf", "aud", "iss", "sub", "scope", "jti"]), JSON, max_size=2
    )
)
def test_whatever_claims_are_signed_a_name_an_end_and_the_expected_audience_and_issuer_are_among_them(
    bent: dict[str, object],
) -> None:
    payload = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": NOW_S, "exp": NOW_S + 60} | bent
    outcome = validate_signed(compact(payload, "ec256-1", "ES256"), KEYS, RULES, NOW_S * 1000).outcome
    if isinstance(outcome, AcceptedToken):
        assert outcome.principal_name
        assert outcome.expires_at_ms > (NOW_S - RULES.clock_skew_seconds) * 1000
        audience = payload["aud"]
        assert audience == AUDIENCE or (isinstance(audience, list) and AUDIENCE in audience)
        assert payload["iss"] == ISSUER


@given(st.integers(0, 300), st.integers(0, 7))
def test_a_token_with_one_bit_turned_is_refused(place: int, bit: int) -> None:
    token = SIGNED
    place %= len(token)
    turned = token[:place] + chr(ord(token[place]) ^ (1 << bit)) + token[place + 1 :]
    outcome = validate_signed(turned, KEYS, RULES, NOW_S * 1000).outcome
    # the last letter of a part has bits that stand for nothing
    assert isinstance(outcome, RefusedToken) or token[place + 1 : place + 2] in {"", "."}


SIGNED = compact(claims(), "ec256-1", "ES256")


def test_an_unsecured_token_never_passes_where_keys_are_set() -> None:
    token = without_signature(claims(int(time.time())))
    assert isinstance(validate_signed(token, KEYS, RULES, int(time.time() * 1000)).outcome, RefusedToken)
