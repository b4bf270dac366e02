"""Signed tokens: valid ones, forged ones and ones with invalid claims."""

import json
from typing import Any

import pytest

from kustos.auth import AcceptedToken, RefusedToken
from kustos.auth.jwt import (
    NO_KEYS,
    TOKEN_MAX_CHARACTERS,
    JwksError,
    TokenClaimRules,
    parse_jwks,
    validate_signed,
)
from kustos.auth.jwt.keys import JWKS_MAX_BYTES, KEYS_MAX, KEYS_TRIED_MAX
from kustos.auth.jwt.signed import KEY_ID_MAX_CHARACTERS
from testkit.bearer_tokens import (
    AUDIENCE,
    ISSUER,
    NOW_S,
    as_json,
    base64_url,
    claims,
    compact,
    jwks,
    key,
    known_keys,
    public,
    with_hmac,
    without_signature,
)

RULES = TokenClaimRules(frozenset({AUDIENCE, "other"}), ISSUER)
SKEW_S = RULES.clock_skew_seconds
KEYS = ("rsa-1", "rsa-2", "ec256-1", "ec384-1", "ec521-1", "ed-1")
ALGORITHM_OF = {
    "rsa-1": "RS256", "ec256-1": "ES256", "ec384-1": "ES384", "ec521-1": "ES512", "ed-1": "EdDSA",
}  # fmt: skip


def outcome(token: str, rules: TokenClaimRules = RULES) -> AcceptedToken | RefusedToken:
    return validate_signed(token, known_keys(*KEYS), rules, NOW_S * 1000).outcome


def reason(token: str, rules: TokenClaimRules = RULES) -> str:
    refused = outcome(token, rules)
    assert isinstance(refused, RefusedToken)
    assert refused.status == "invalid_token"
    assert refused.scope is None
    # nothing of the token stands in the log but the name, which is apart
    assert not any(part and part in refused.reason for part in token.split("."))
    return refused.reason


@pytest.mark.behaviour("B318")
@pytest.mark.parametrize("name", ALGORITHM_OF)
def test_a_token_of_a_known_key_proves_its_subject(name: str) -> None:
    token = compact(claims(scope=["read", " write "]), name, ALGORITHM_OF[name])
    expected = AcceptedToken("alice", (NOW_S + 3600) * 1000, frozenset({"read", "write"}))
    assert outcome(token) == expected


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_an_rsa_key_verifies_every_algorithm_of_its_kind_unless_it_names_one(algorithm: str) -> None:
    token = compact(claims(), "rsa-1", algorithm)
    assert isinstance(outcome(token), AcceptedToken)
    bound = parse_jwks(jwks(public("rsa-1", alg="RS256")))
    allowed = isinstance(validate_signed(token, bound, RULES, NOW_S * 1000).outcome, AcceptedToken)
    assert allowed == (algorithm == "RS256")


PEM = key("rsa-1").as_pem(private=False)
FORGED: dict[str, str] = {
    "no algorithm": compact(claims(), header={"kid": "rsa-1"}),
    "the algorithm none": without_signature(claims()),
    "the algorithm None": without_signature(claims(), {"alg": "None", "kid": "rsa-1"}),
    "none with a signature": compact(claims(), header={"alg": "none", "kid": "rsa-1"}),
    "RS256 without a signature": without_signature(claims(), {"alg": "RS256", "kid": "rsa-1"}),
    "HS256 with the public key in PEM": with_hmac(claims(), PEM, "rsa-1"),
    "HS256 with the public key as JSON": with_hmac(claims(), json.dumps(public("rsa-1")).encode(), "rsa-1"),
    "HS256 with nothing": with_hmac(claims(), b"", "rsa-1"),
    "the signature of another key": compact(claims(), "rsa-2", header={"alg": "RS256", "kid": "rsa-1"}),
    "an unknown key under a known id": compact(claims(), "rsa-9", header={"alg": "RS256", "kid": "rsa-1"}),
    "a key in the header": compact(claims(), "rsa-9", header={"alg": "RS256", "jwk": public("rsa-9")}),
    "a key of another curve": compact(claims(), "ec256-1", "ES256", {"alg": "ES384", "kid": "ec256-1"}),
    "an RSA key for ES256": compact(claims(), "rsa-1", header={"alg": "ES256", "kid": "rsa-1"}),
    "a list of algorithms": compact(claims(), header={"alg": ["RS256"], "kid": "rsa-1"}),
    "two algorithms": compact(claims(), header='{"alg":"none","alg":"RS256","kid":"rsa-1"}'),
    "a key id that is not text": compact(claims(), header={"alg": "RS256", "kid": 7}),
    "critical headers": compact(claims(), header={"alg": "RS256", "kid": "rsa-1", "crit": ["exp"]}),
    "no critical headers": compact(claims(), header={"alg": "RS256", "kid": "rsa-1", "crit": []}),
    "claims that are not encoded": compact(claims(), header={"alg": "RS256", "kid": "rsa-1", "b64": False}),
    "a nested token": compact(claims(), header={"alg": "RS256", "kid": "rsa-1", "cty": "JWT"}),
    "an encrypted token": "e30.e30.e30.e30.e30",
    "changed claims": ".".join(
        (
            compact(claims()).split(".")[0],
            base64_url(as_json(claims(sub="eve"))),
            compact(claims()).split(".")[2],
        )
    ),
    "a signature with blanks": compact(claims()) + " ",
    "a padded signature": compact(claims()) + "==",
    "two parts": "e30.e30",
    "nothing": "",
    "dots": "..",
    "four parts": compact(claims()) + ".x",
}


@pytest.mark.behaviour("B318", "B320", "B322", "B358")
@pytest.mark.parametrize("how", FORGED)
def test_a_forged_token_is_refused(how: str) -> None:
    reason(FORGED[how])


BENT: dict[str, dict[str, Any] | str] = {
    "no expiry": claims(exp=None),
    "expired": claims(exp=NOW_S - SKEW_S),
    "expiry as text": claims(exp=str(NOW_S + 60)),
    "expiry true": claims(exp=True),
    "expiry null": as_json(claims(exp=None))[:-1] + ', "exp": null}',
    "expiry infinite": as_json(claims(exp=None))[:-1] + ', "exp": Infinity}',
    "expiry too far": claims(exp=10**17),
    "expiry of 10^400": as_json(claims(exp=None))[:-1] + ', "exp": 1e400}',
    "negative expiry": claims(exp=-1),
    "no issue time": claims(iat=None),
    "negative issue time": claims(iat=-1),
    "issued in the future": claims(iat=NOW_S + SKEW_S + 1),
    "issued after its expiry": claims(iat=NOW_S + 20, exp=NOW_S + 10),
    "not yet valid": claims(nbf=NOW_S + SKEW_S + 1),
    "never valid": claims(nbf=NOW_S + 20, exp=NOW_S + 10),
    "valid from a text": claims(nbf="soon"),
    "no audience": claims(aud=None),
    "another audience": claims(aud="kafka2"),
    "no audience in a list": claims(aud=[]),
    "audience and a number": claims(aud=[AUDIENCE, 1]),
    "audience as object": claims(aud={AUDIENCE: True}),
    "no issuer": claims(iss=None),
    "another issuer": claims(iss=ISSUER + "/"),
    "issuer in a list": claims(iss=[ISSUER]),
    "no subject": claims(sub=None),
    "blank subject": claims(sub=" \t"),
    "subject as number": claims(sub=7),
    "subject as list": claims(sub=["alice"]),
    "id as number": claims(jti=7),
    "two subjects": as_json(claims())[:-1] + ', "sub": "admin"}',
    "two names deep inside": as_json(claims())[:-1] + ', "a": {"b": 1, "b": 2}}',
    "one scope twice": claims(scope=["a", " a"]),
    "empty scope": claims(scope=""),
    "scope and a number": claims(scope=["a", 1]),
    "a list of claims": "[]",
    "a text for claims": '"alice"',
    "no JSON": "{",
    "not UTF-8": "{}\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    "nested too deeply": '{"a":' + "[" * 20_000 + "]" * 20_000 + "}",
    "a number of 20000 digits": as_json(claims(exp=None))[:-1] + f', "exp": {"9" * 20_000}}}',
}


@pytest.mark.behaviour("B315", "B319", "B321", "B324")
@pytest.mark.parametrize("how", BENT)
def test_a_token_with_invalid_claims_is_refused(how: str) -> None:
    reason(compact(BENT[how]))


@pytest.mark.behaviour("B315", "B321")
@pytest.mark.parametrize(
    "bent",
    [
        {"exp": NOW_S - SKEW_S + 1, "iat": 1.5}, {"iat": NOW_S + SKEW_S, "exp": NOW_S + 60},
        {"nbf": NOW_S + SKEW_S}, {"iat": 0, "nbf": 0}, {"exp": NOW_S + 0.9}, {"aud": ["x", "other"]},
        {"sub": " alice\n"}, {"scope": 7}, {"scope": []}, {"exp": NOW_S + 1e6},
    ],
)  # fmt: skip
def test_a_token_at_its_limits_is_accepted(bent: dict[str, Any]) -> None:
    accepted = outcome(compact(claims(**bent)))
    assert isinstance(accepted, AcceptedToken)
    assert accepted.principal_name == "alice"
    assert accepted.expires_at_ms == int(bent.get("exp", NOW_S + 3600)) * 1000


@pytest.mark.behaviour("B319")
def test_another_claim_may_name_the_principal_and_the_scopes() -> None:
    rules = TokenClaimRules(frozenset({AUDIENCE}), ISSUER, 0, "scp", "client_id")
    accepted = outcome(compact(claims(sub="x", client_id="svc", scp="a b")), rules)
    assert isinstance(accepted, AcceptedToken)
    assert (accepted.principal_name, accepted.scopes) == ("svc", frozenset({"a b"}))
    assert "`client_id`" in reason(compact(claims()), rules)


@pytest.mark.behaviour("B324")
def test_without_an_expected_audience_and_issuer_neither_is_checked() -> None:
    for bent in ({"aud": None, "iss": None}, {"aud": "x", "iss": "y"}):
        assert isinstance(outcome(compact(claims(**bent)), TokenClaimRules()), AcceptedToken)


def test_a_refused_token_has_a_claimed_name() -> None:
    for token in (compact(claims(exp=1)), compact(claims(), "rsa-9")):
        refused = outcome(token)
        assert isinstance(refused, RefusedToken)
        assert refused.claimed_name == "alice"


@pytest.mark.behaviour("B325", "B326")
def test_an_unknown_key_id_is_named_unless_it_is_too_long() -> None:
    for length, is_named in ((KEY_ID_MAX_CHARACTERS, True), (KEY_ID_MAX_CHARACTERS + 1, False)):
        token = compact(claims(), header={"alg": "RS256", "kid": "k" * length})
        verdict = validate_signed(token, known_keys(*KEYS), RULES, NOW_S * 1000)
        assert isinstance(verdict.outcome, RefusedToken)
        assert verdict.unknown_key_id == ("k" * length if is_named else None)


def test_without_a_key_id_matching_keys_are_tried_up_to_a_limit() -> None:
    token = compact(claims(), "rsa-2", header={"alg": "RS256"})
    assert isinstance(outcome(token), AcceptedToken)
    other = public("rsa-1", kid=None)
    many = parse_jwks(jwks(*[other] * KEYS_TRIED_MAX, public("rsa-2")))
    assert isinstance(validate_signed(token, many, RULES, NOW_S * 1000).outcome, RefusedToken)
    assert isinstance(validate_signed(token, NO_KEYS, RULES, NOW_S * 1000).outcome, RefusedToken)


def test_a_token_longer_than_the_limit_is_not_parsed() -> None:
    token = compact(claims(groups=["g" * TOKEN_MAX_CHARACTERS]))
    assert str(TOKEN_MAX_CHARACTERS) in reason(token)
    large = compact(claims(groups=["g" * (TOKEN_MAX_CHARACTERS // 2)]))
    assert isinstance(outcome(large), AcceptedToken)


def test_unusable_keys_are_ignored() -> None:
    small = {**public("rsa-1"), "n": base64_url(b"\xff" * 128)}
    entries = [
        public("rsa-1", use="enc"), {"kty": "oct", "k": base64_url(b"secret"), "kid": "s"}, {"kty": "RSA"},
        {}, {"kty": "RSA", "use": ["sig"]}, small, public("ec256-1", crv="P-512"), public("rsa-1", kid=7),
        {"kty": ["RSA"]}, public("ec256-1", x="AA"),
    ]  # fmt: skip
    found = parse_jwks(jwks(*entries, public("rsa-2", use=None)))
    assert [each.key_id for each in found.keys] == ["rsa-2"]
    assert found.left_out == len(entries)
    assert parse_jwks(jwks()) == NO_KEYS
    private = parse_jwks(json.dumps({"keys": [key("rsa-1").as_dict(private=True)]}).encode())
    assert not private.keys[0].key.is_private


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"{}", b'{"keys": {}}', b'{"keys": [1]}', b"\xff", b"[" * 100_000]
)
def test_an_invalid_key_set_is_refused(text: bytes) -> None:
    with pytest.raises(JwksError):
        parse_jwks(text)


def test_a_key_set_has_limits() -> None:
    with pytest.raises(JwksError, match="100 keys"):
        parse_jwks(jwks(*[{}] * (KEYS_MAX + 1)))
    with pytest.raises(JwksError, match="bytes"):
        parse_jwks(b" " * (JWKS_MAX_BYTES + 1))
