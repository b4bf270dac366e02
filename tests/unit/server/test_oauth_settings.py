"""Settings of a listener with OAUTHBEARER, and their errors."""

from pathlib import Path

import pytest

from kustos.auth.jwt import TokenClaimRules, UnsecuredTokenRules
from kustos.client.errors import SettingsError
from kustos.client.oauth import LOGIN_MODULE
from kustos.runtime import SystemClock
from kustos.server.oauth import BearerTokens
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.oauth import SignedTokenSettings
from kustos.server.settings.plugins import SIGNED_HANDLER, UNSECURED_HANDLER
from testkit.certificates import Authority

URL = "https://provider.example/jwks"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
OWN = "listener.name.clients.oauthbearer."
HANDLER = OWN + "sasl.server.callback.handler.class"
KEYS = {
    "node.id": "7",
    "metadata.log.dir": "/var/lib/kustos",
    "listeners": "CLIENTS://127.0.0.1:9092",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
    "kustos.upstream.bootstrap.servers": "127.0.0.1:19092",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    HANDLER: SIGNED_HANDLER,
    OWN + "sasl.oauthbearer.jwks.endpoint.url": URL,
    OWN + "sasl.oauthbearer.expected.audience": "kafka, other",
    OWN + "sasl.oauthbearer.expected.issuer": "https://provider.example",
    ALLOWED: f"https://other.example,{URL}",
}


def with_keys(*left_out: str, **more: str) -> dict[str, str]:
    keys = KEYS | {OWN + "sasl.oauthbearer." + name.replace("_", "."): value for name, value in more.items()}
    return {key: value for key, value in keys.items() if not key.endswith(left_out or ("nothing",))}


def oauth_of(settings: KustosSettings) -> object:
    sasl = settings.listeners[0].sasl
    assert sasl is not None
    return sasl.oauth


@pytest.mark.behaviour("B319", "B324")
def test_kafkas_keys_say_how_tokens_are_judged() -> None:
    settings = settings_from(with_keys(sub_claim_name="client_id", clock_skew_seconds="5"), {})
    oauth = oauth_of(settings)
    assert isinstance(oauth, SignedTokenSettings)
    expected = frozenset({"kafka", "other"})
    assert oauth.rules == TokenClaimRules(expected, "https://provider.example", 5, "scope", "client_id")
    jwks = oauth.jwks
    assert (jwks.endpoint.url, jwks.refresh_ms) == (URL, 3_600_000)
    assert (jwks.retry_backoff_ms, jwks.retry_backoff_max_ms, jwks.tls) == (100, 10_000, None)
    assert not any("oauth" in warning for warning in settings.warnings)


@pytest.mark.behaviour("B236", "B323", "B327")
@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (with_keys("handler.class"), f"but `{HANDLER}` is not set; set it to `{SIGNED_HANDLER}`"),
        (with_keys() | {HANDLER: "a.b.C"}, f"`{HANDLER}` is `a.b.C`, which cannot be used"),
        (with_keys("jwks.endpoint.url"), "jwks.endpoint.url` is not set; set it to the provider's key set"),
        (with_keys(ALLOWED), f"which `{ALLOWED}` does not allow; add it there"),
        (with_keys(jwks_endpoint_url=URL + "/"), "does not allow; add it there"),
        (with_keys(jwks_endpoint_url="ftp://x/y"), "use a URL that begins with `https`, `http` or `file`"),
        (with_keys(jwks_endpoint_url="https:///y"), "write `https://host/path` or `file:///path`"),
        (with_keys(jwks_endpoint_url="file://host/y"), "write `https://host/path` or `file:///path`"),
        (with_keys(jwks_endpoint_url="https://x:y/"), "is not a URL"),
        (with_keys(jwks_endpoint_url="https://x/a b"), "characters that must be encoded"),
        (with_keys(jwks_endpoint_url="https://x/ä"), "characters that must be encoded"),
        (with_keys(jwks_endpoint_url="https://u:p4ss@x/"), "has a user name or password in its URL"),
        (with_keys("expected.audience"), "set `sasl.oauthbearer.allow.unverified.audience=true` if"),
        (with_keys("expected.issuer"), "set `sasl.oauthbearer.allow.unverified.issuer=true` if"),
        (with_keys(clock_skew_seconds="-1"), "use a whole number of seconds from 0"),
        (with_keys() | {OWN + "sasl.jaas.config": "a.B required;"}, "the login module of `OAUTHBEARER`"),
        (
            with_keys() | {OWN + "sasl.jaas.config": f'{LOGIN_MODULE} required ssl.truststore.location="x";'},
            "`ssl.truststore.location` (`x`) cannot be used",
        ),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named_with_its_remedy(keys: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from(keys, {})
    assert words in str(caught.value)
    assert "p4ss" not in str(caught.value)


@pytest.mark.behaviour("B328")
@pytest.mark.parametrize(
    "path",
    [
        "/keys/../secret",
        "/keys/./jwks",
        "/keys//jwks",
        "/keys/%2e%2e/secret",
        "/keys/jwks/",
        "/Keys/jwks",
        "/keys",
    ],
)
def test_no_path_leads_from_an_allowed_file_to_another(path: str) -> None:
    allowed = {ALLOWED: "file:///keys/jwks"}
    settings_from(with_keys(jwks_endpoint_url="file:///keys/jwks") | allowed, {})
    with pytest.raises(SettingsError, match="does not allow; add it there"):
        settings_from(with_keys(jwks_endpoint_url=f"file://{path}") | allowed, {})


@pytest.mark.behaviour("B324")
def test_what_is_unsafe_is_done_only_if_it_is_meant_and_warned_of() -> None:
    opted = {"allow_unverified_audience": "true", "allow_unverified_issuer": "true"}
    settings = settings_from(with_keys("expected.audience", "expected.issuer", **opted), {})
    oauth = oauth_of(settings)
    assert isinstance(oauth, SignedTokenSettings)
    assert (oauth.rules.expected_audiences, oauth.rules.expected_issuer) == (frozenset(), None)
    assert len([warning for warning in settings.warnings if "for others can log in" in warning]) == 2
    plain = URL.replace("https", "http")
    keys = with_keys(jwks_endpoint_url=plain) | {ALLOWED: plain}
    assert any("is not encrypted" in warning for warning in settings_from(keys, {}).warnings)


def test_unsecured_tokens_are_taken_only_where_their_validator_is_named_and_warned_of() -> None:
    option = 'unsecuredValidatorRequiredScope="a b"'
    keys = with_keys() | {
        HANDLER: UNSECURED_HANDLER,
        OWN + "sasl.jaas.config": f"{LOGIN_MODULE} required {option};",
    }
    settings = settings_from(keys, {})
    assert oauth_of(settings) == UnsecuredTokenRules(required_scopes=("a", "b"))
    assert any("every client may log in as any user" in warning for warning in settings.warnings)
    wrong = f'{LOGIN_MODULE} required unsecuredValidatorAllowableClockSkewMs="x";'
    with pytest.raises(SettingsError, match="unsecuredValidatorAllowableClockSkewMs"):
        settings_from(keys | {OWN + "sasl.jaas.config": wrong}, {})


def test_the_providers_certificates_may_be_ones_own(tmp_path: Path) -> None:
    options = f'ssl.truststore.location="{tmp_path / "none.pem"}" ssl.truststore.type="PEM"'
    keys = with_keys() | {OWN + "sasl.jaas.config": f"{LOGIN_MODULE} required {options};"}
    with pytest.raises(SettingsError, match="cannot be used: it cannot be read, no such file"):
        settings_from(keys, {})
    Authority().write(tmp_path / "none.pem")
    settings = settings_from(keys, {})
    tokens = BearerTokens((*settings.listeners, *settings_from(keys, {}).listeners), SystemClock())
    assert tokens.readiness == {"jwks": False}
    sasl = settings.listeners[0].sasl
    assert sasl is not None
    assert tokens.validator(sasl.oauth) is not None
