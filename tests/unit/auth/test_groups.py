"""The groups of clients: from the claims of tokens, and from principal builders."""

from collections.abc import Callable
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.auth import (
    AcceptedToken,
    AuthenticationContext,
    CallbackError,
    HandlerTokens,
    KafkaPrincipalBuilder,
    ListenerPrincipals,
    OAuthBearerServer,
    PrincipalBuilderError,
    Proven,
    RefusedToken,
)
from kustos.auth.groups import GROUP_NAME_MAX_CHARACTERS, GROUPS_MAX, GroupError, checked_groups
from kustos.auth.jwt import TokenClaimRules, UnsecuredTokenRules, validate_signed, validate_unsecured
from kustos.auth.jwt.groups import PATH_NAMES_MAX, ClaimPath, parse_path
from testkit.bearer_tokens import NOW_S, claims, compact, known_keys, without_signature

HOST = "192.0.2.7"
PRINCIPALS = ListenerPrincipals(listener_name="CLIENTS", security_protocol="SASL_SSL")


def validated(path: ClaimPath | None, **more: Any) -> AcceptedToken | RefusedToken:
    rules = TokenClaimRules(groups_claim_path=path)
    return validate_signed(compact(claims(**more)), known_keys("rsa-1"), rules, NOW_S * 1000).outcome


def groups_of(path: ClaimPath | None, **more: Any) -> tuple[str, ...]:
    found = validated(path, **more)
    assert isinstance(found, AcceptedToken)
    return found.groups


def refusal_of(path: ClaimPath, **more: Any) -> str:
    found = validated(path, **more)
    assert isinstance(found, RefusedToken)
    return found.reason


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("groups", ("groups",)),
        ("realm_access.roles", ("realm_access", "roles")),
        ("[https://example.com/groups]", ("https://example.com/groups",)),
        ("resource_access.[my.client].roles", ("resource_access", "my.client", "roles")),
        (".".join("a" * PATH_NAMES_MAX), ("a",) * PATH_NAMES_MAX),
    ],
)
def test_a_path_has_dots_between_names_and_brackets_around_names_with_dots(
    text: str, path: ClaimPath
) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", "a[b]", "[a", "[]", "a b", "[a]b", "[[a]]", ".".join("a" * 9)]
)
def test_other_paths_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_path(text)


@pytest.mark.parametrize("path", [("groups",), ("realm_access", "roles")])
def test_a_token_has_the_groups_at_the_path(path: ClaimPath) -> None:
    def claim(value: object) -> dict[str, Any]:
        return {path[0]: value if len(path) == 1 else {path[1]: value, "other": ["x"]}}

    assert groups_of(path, **claim(["ops", "/a/b", "ops", "Größe, 1"])) == ("ops", "/a/b", "Größe, 1")
    assert groups_of(path, **claim("ops")) == ("ops",)
    assert groups_of(path, **claim([])) == groups_of(path, **claim(None)) == ()
    assert groups_of(path) == ()
    assert groups_of(None, **claim(["ops"])) == (), "the path is not set"


@pytest.mark.parametrize("value", [7, True, {"a": "b"}, ["a", 7], [["a"]], [None], "", [""], ["*"], ["a\n"]])
def test_a_token_with_groups_that_cannot_be_used_is_refused_as_a_whole(value: object) -> None:
    refusal_of(("groups",), groups=value)
    refusal_of(("a", "groups"), a={"groups": value})
    rules = UnsecuredTokenRules(groups_claim_path=("groups",))
    token = without_signature(claims(groups=value))
    assert isinstance(validate_unsecured(token, rules, NOW_S * 1000), RefusedToken)


def test_a_path_does_not_lead_through_another_value_than_an_object() -> None:
    for value in ("text", ["roles"], 7):
        assert "is not an object" in refusal_of(("realm_access", "roles"), realm_access=value)


def test_groups_that_the_provider_keeps_elsewhere_are_not_taken_for_none() -> None:
    elsewhere = {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://x"}}}
    assert "is not in the token" in refusal_of(("groups",), **elsewhere)
    assert groups_of(("roles",), **elsewhere, roles=["ops"]) == ("ops",)
    assert "is not in the token" in refusal_of(("roles",), _claim_names="roles")


def test_more_or_longer_groups_are_refused_not_cut() -> None:
    most = [f"g{number}" for number in range(GROUPS_MAX)]
    assert groups_of(("groups",), groups=most) == tuple(most)
    assert f"more than {GROUPS_MAX} groups" in refusal_of(("groups",), groups=[*most, "g0"])
    longest = "g" * GROUP_NAME_MAX_CHARACTERS
    assert groups_of(("groups",), groups=[longest]) == (longest,)
    assert "longer than" in refusal_of(("groups",), groups=[longest + "g"])


def test_an_unsecured_token_has_groups_too() -> None:
    rules = UnsecuredTokenRules.from_jaas_options({}, ("realm_access", "roles"))
    token = without_signature(claims(realm_access={"roles": ["ops"]}))
    found = validate_unsecured(token, rules, NOW_S * 1000)
    assert isinstance(found, AcceptedToken)
    assert found.groups == ("ops",)


def test_the_groups_of_a_token_are_the_groups_of_its_principal() -> None:
    server = OAuthBearerServer(lambda _: AcceptedToken("alice", 1, groups=("ops",)))
    proven = server.respond(b"n,,\x01auth=Bearer x\x01\x01")
    assert isinstance(proven, Proven)
    principal = PRINCIPALS.of_login(HOST, "OAUTHBEARER", proven)
    assert principal == KafkaPrincipal("User", "alice"), "they are not part of its identity"
    assert principal.groups == ("ops",)


def test_a_session_of_a_delegation_token_has_no_groups() -> None:
    proven = Proven(b"", "alice", token_authenticated=True, groups=("ops",))
    assert PRINCIPALS.of_login(HOST, "SCRAM-SHA-256", proven).groups == ()
    own = built(lambda _: KafkaPrincipal("User", "alice", True, ("ops",)))
    principal = own.of_login(HOST, "SCRAM-SHA-256", proven)
    assert (principal.groups, principal.token_authenticated) == ((), True)


def built(build: Callable[[AuthenticationContext], KafkaPrincipal]) -> ListenerPrincipals:
    class Building(KafkaPrincipalBuilder):
        def build(self, context: AuthenticationContext) -> KafkaPrincipal:
            return build(context)

    return ListenerPrincipals(listener_name="CLIENTS", security_protocol="SASL_SSL", builder=Building())


def test_a_builder_takes_the_groups_of_the_context_or_chooses_them() -> None:
    proven = Proven(b"", "alice", groups=("ops", "dev"))
    taking = built(lambda context: KafkaPrincipal("User", "x", groups=context.groups[:1]))
    assert taking.of_login(HOST, "OAUTHBEARER", proven).groups == ("ops",)
    listing = built(lambda _: KafkaPrincipal("User", "x", groups=["a", "b", "a"]))  # type: ignore[arg-type]
    assert listing.of_login(HOST, "OAUTHBEARER", proven).groups == ("a", "b")
    assert listing.without_login(HOST).groups == ("a", "b")


@pytest.mark.parametrize("groups", [None, "ops", {"ops"}, (7,), ("",), ("*",), ("a\u2028b",)])
def test_what_a_builder_or_handler_returns_as_groups_is_checked(groups: Any) -> None:
    with pytest.raises(GroupError):
        checked_groups(groups)
    with pytest.raises(PrincipalBuilderError, match="returned groups that cannot be used"):
        built(lambda _: KafkaPrincipal("User", "x", groups=groups)).without_login(HOST)

    class Tokens:
        def validate(self, _token: str) -> AcceptedToken:
            return AcceptedToken("alice", 99, groups=groups)

    with pytest.raises(CallbackError, match="returned groups that cannot be used"):
        HandlerTokens(Tokens())("t")  # type: ignore[arg-type]
