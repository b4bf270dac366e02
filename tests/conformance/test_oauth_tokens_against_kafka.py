"""Our validation of tokens against Kafka's own validators, over well-formed and bent ones."""

import random
import time
from pathlib import Path
from typing import Any

import pytest

from kustos.auth import AcceptedToken
from kustos.auth.jwt import TokenClaimRules, UnsecuredTokenRules, validate_signed, validate_unsecured
from testkit.bearer_tokens import (
    AUDIENCE,
    ISSUER,
    as_json,
    claims,
    compact,
    jwks,
    known_keys,
    public,
    without_signature,
)
from tests.conformance.oauth_probe import encoded, kafkas

SEED = 7519
COUNT = 1500
NAMES = {"rsa-1": "RS256", "ec256-1": "ES256", "ec384-1": "ES384"}
NOW_S = int(time.time())
SKEW_S = 30
FAR = 100_000
"""Seconds between now and any time that decides: the two sides look at their clocks a little apart, and both
some time after this file was read, which in a long run of tests is hours."""

PAST_S = NOW_S - 2 * SKEW_S
"""Not long ago, and expired whatever the skew: what expires now, one side may see before and one after."""

VALUES: tuple[Any, ...] = (
    None, "", " ", "x", AUDIENCE, ISSUER, 0, 1, -1, 1.5, True, [], ["x"], [AUDIENCE], [AUDIENCE, "y"], [1],
    {}, {"a": 1}, ["x", "x"], ["x", ""], " alice ", PAST_S, NOW_S - FAR, NOW_S + FAR, NOW_S - FAR + 0.5,
    NOW_S + 2 * FAR, str(NOW_S + FAR),
)  # fmt: skip
FIELDS = ("exp", "iat", "nbf", "iss", "aud", "sub", "scope", "jti", "client_id")


def bent(chance: random.Random) -> dict[str, Any]:
    payload = claims(NOW_S, exp=NOW_S + FAR, iat=NOW_S - FAR)
    for _ in range(chance.randint(0, 2)):
        payload[chance.choice(FIELDS)] = chance.choice(VALUES)
    if chance.random() < 0.2:
        payload.pop(chance.choice(FIELDS), None)
    return payload


def shown(outcome: object) -> str:
    if not isinstance(outcome, AcceptedToken):
        return "error"
    return " ".join(
        [
            "token",
            encoded(outcome.principal_name),
            str(outcome.expires_at_ms),
            *map(encoded, sorted(outcome.scopes)),
        ]
    )


def is_stricter_here(payload: dict[str, Any]) -> bool:
    """Whether the claims have what we refuse on purpose: an issue time in the future."""
    issued = payload.get("iat")
    return isinstance(issued, int | float) and issued > NOW_S + FAR / 2


@pytest.mark.behaviour("B318", "B319", "B320", "B321", "B322")
@pytest.mark.parametrize(("audience", "sub_claim"), [(AUDIENCE, "sub"), (f"other,{AUDIENCE}", "client_id")])
def test_signed_tokens_are_judged_alike(tmp_path: Path, audience: str, sub_claim: str) -> None:
    chance = random.Random(SEED)
    names = list(NAMES)
    payloads = [bent(chance) | ({"client_id": "svc"} if sub_claim != "sub" else {}) for _ in range(COUNT)]
    tokens = []
    for payload in payloads:
        name = chance.choice(names)
        header = {
            "alg": NAMES[name],
            "kid": chance.choice([name, name, name, "unknown", chance.choice(names)]),
        }
        tokens.append(compact(payload, name, NAMES[name], header))
    tokens += ["", "..", "e30.e30.e30", without_signature(claims(NOW_S)), compact(claims(NOW_S)) + ".x"]
    payloads += [{}] * (len(tokens) - len(payloads))
    keys = tmp_path / "jwks.json"
    keys.write_bytes(jwks(*map(public, names)))
    url = keys.as_uri()
    options = [
        f"sasl.oauthbearer.jwks.endpoint.url={url}", f"sasl.oauthbearer.expected.audience={audience}",
        f"sasl.oauthbearer.expected.issuer={ISSUER}", f"sasl.oauthbearer.clock.skew.seconds={SKEW_S}",
        f"sasl.oauthbearer.sub.claim.name={sub_claim}",
    ]  # fmt: skip
    theirs = kafkas("secured", tokens, options, url)
    rules = TokenClaimRules(frozenset(audience.split(",")), ISSUER, SKEW_S, "scope", sub_claim)
    known = known_keys(*names)
    accepted = stricter = 0
    for payload, token, answer in zip(payloads, tokens, theirs, strict=True):
        ours = shown(validate_signed(token, known, rules, int(time.time() * 1000)).outcome)
        if ours == "error" and answer.startswith("token") and is_stricter_here(payload):
            stricter += 1
            continue
        assert ours == ("error" if answer == "raised" else answer), payload
        accepted += ours != "error"
    assert COUNT / 10 < accepted < COUNT * 0.9
    assert stricter < COUNT / 20


def standard_base64(token: str) -> bool:
    """Whether Kafka reads it here: it decodes these tokens as Base64 that is not for URLs."""
    return not {"-", "_"}.intersection(token)


def is_turned_into_text(value: Any) -> bool:
    """Whether Kafka takes the claim for a text that it is not."""
    if isinstance(value, list):
        return any(not isinstance(each, str) for each in value)
    return value is None or isinstance(value, bool | dict)


@pytest.mark.behaviour("B313", "B314", "B315", "B316", "B317")
def test_unsecured_tokens_are_judged_alike() -> None:
    chance = random.Random(SEED + 1)
    payloads = [bent(chance) for _ in range(COUNT)]
    tokens = [without_signature(payload, {"alg": "none"}) for payload in payloads]
    pairs = [pair for pair in zip(payloads, tokens, strict=True) if standard_base64(pair[1])]
    options = {"RequiredScope": "x", "AllowableClockSkewMs": "3000"}
    given = {f"unsecuredValidator{name}": value for name, value in options.items()}
    rules = UnsecuredTokenRules.from_jaas_options(given)
    theirs = kafkas("unsecured", (token for _, token in pairs), [f"{k}={v}" for k, v in given.items()])
    seen: dict[str, int] = {}
    for (payload, token), answer in zip(pairs, theirs, strict=True):
        outcome = validate_unsecured(token, rules, int(time.time() * 1000))
        if isinstance(outcome, AcceptedToken):
            ours = shown(outcome)
        else:
            ours = f"error {outcome.status} {encoded(outcome.scope) if outcome.scope else ''}"
        if ours != answer:
            # only what Kafka turned into a text, or left unread, may be refused here alone
            looked_at = [payload[name] for name in ("exp", "iat", "sub", "scope") if name in payload]
            assert any(map(is_turned_into_text, looked_at)), (as_json(payload), ours, answer)
            assert ours.startswith("error"), (as_json(payload), ours, answer)
            continue
        seen[ours.partition(" ")[0] + ours.split(" ")[1][:4]] = 1
    assert {"errorinva", "errorinsu"} < set(seen)
