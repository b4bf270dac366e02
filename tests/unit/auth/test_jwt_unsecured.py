"""Tokens without a signature, where the settings name their validator."""

from typing import Any

import pytest

from kustos.auth import AcceptedToken, JaasError, RefusedToken
from kustos.auth.jwt import UnsecuredTokenRules, validate_unsecured
from testkit.bearer_tokens import compact, without_signature

NOW_MS = 1_800_000_000_000
NOW_S = NOW_MS // 1000
EXP = NOW_S + 60


def outcome(
    payload: dict[str, Any] | str, header: dict[str, Any] | None = None, **options: str
) -> AcceptedToken | RefusedToken:
    rules = UnsecuredTokenRules.from_jaas_options(
        {f"unsecuredValidator{name}": value for name, value in options.items()}
    )
    return validate_unsecured(without_signature(payload, header), rules, NOW_MS)


@pytest.mark.behaviour("B313", "B314")
def test_an_unsigned_token_proves_its_claims() -> None:
    assert outcome({"sub": " alice", "exp": NOW_S + 0.5}) == AcceptedToken(" alice", NOW_MS + 500)
    named = outcome({"who": "bob", "exp": EXP}, PrincipalClaimName=" who ")
    assert named == AcceptedToken("bob", EXP * 1000)


@pytest.mark.behaviour("B313", "B314", "B315")
@pytest.mark.parametrize(
    "payload",
    [
        {"exp": EXP}, {"sub": "", "exp": EXP}, {"sub": " ", "exp": EXP}, {"sub": 7, "exp": EXP}, {"sub": "a"},
        {"sub": "a", "exp": "1"}, {"sub": "a", "exp": NOW_S}, {"sub": "a", "exp": EXP, "iat": NOW_S + 1},
        {"sub": "a", "exp": EXP, "iat": EXP}, {"sub": "a", "exp": EXP, "scope": 7}, '{"sub":"a","sub":"b"}',
        {"sub": "a\ud800", "exp": EXP}, {"sub": "a", "exp": EXP, "\udfff": 1},
    ],
)  # fmt: skip
def test_an_invalid_unsigned_token_is_refused(payload: dict[str, Any] | str) -> None:
    refused = outcome(payload)
    assert isinstance(refused, RefusedToken)
    assert refused.document == '{"status":"invalid_token"}'
    assert (refused.claimed_name or "").isprintable(), "the audit log can hold it"


@pytest.mark.behaviour("B313")
def test_a_signed_token_is_refused() -> None:
    rules, valid = UnsecuredTokenRules(), {"sub": "a", "exp": EXP}
    for token in (
        compact(valid),
        compact(valid, header={"alg": "none"}),
        without_signature(valid, {"alg": "x"}),
    ):
        assert isinstance(validate_unsecured(token, rules, NOW_MS), RefusedToken)


@pytest.mark.behaviour("B315")
def test_the_option_sets_the_allowed_clock_skew() -> None:
    late = {"sub": "a", "exp": NOW_S - 2}
    early = {"sub": "a", "exp": EXP, "iat": NOW_S + 2}
    for payload in (late, early):
        assert isinstance(outcome(payload, AllowableClockSkewMs="1999"), RefusedToken)
        assert isinstance(outcome(payload, AllowableClockSkewMs="2001"), AcceptedToken)


@pytest.mark.behaviour("B241", "B316", "B317")
def test_a_missing_required_scope_is_reported() -> None:
    refused = outcome({"sub": "a", "exp": EXP, "scope": ["x", " "]}, RequiredScope=" x  y ")
    assert isinstance(refused, RefusedToken)
    assert refused.document == '{"status":"insufficient_scope", "scope":"[x, y]"}'
    accepted = outcome({"sub": "a", "exp": EXP, "s": ["x", " y "]}, RequiredScope="x y", ScopeClaimName="s")
    assert accepted == AcceptedToken("a", EXP * 1000, frozenset({"x", "y"}))


@pytest.mark.parametrize("skew", ["-1", "x", "1.5", "99999999999", "٣"])
def test_a_wrong_option_is_named(skew: str) -> None:
    with pytest.raises(JaasError, match="unsecuredValidatorAllowableClockSkewMs"):
        UnsecuredTokenRules.from_jaas_options({"unsecuredValidatorAllowableClockSkewMs": skew})
