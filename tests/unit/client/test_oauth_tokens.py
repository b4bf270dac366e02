"""Tokens of the client come from a provider or a file, one fetch for all callers, and are refreshed early."""

import asyncio
import json
import threading
import time
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, RSAKey

from kustos.auth.jwt import parse_jwks
from kustos.auth.jwt.keys import is_signed_by
from kustos.client import AuthenticationFailedError, CannotConnectError, ClientSettings, SettingsError
from kustos.client.oauth import LOGIN_MODULE, EndpointError, OAuthClientSettings, TokenSource, token_source
from kustos.client.oauth.tokens import read_answer, token_request
from kustos.client.refreshed import RefreshRules, refresh_at_ms, retry_pauses_ms
from testkit.bearer_tokens import compact, without_signature
from testkit.certificates import Authority
from testkit.http_provider import Provider

ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
ALLOWED_FILES = "org.apache.kafka.sasl.oauthbearer.allowed.files"
URL_KEY = "sasl.oauthbearer.token.endpoint.url"
SECRET = "a:s3cret/ä"
OPTIONS = {"clientId": "svc", "clientSecret": SECRET, "scope": "kafka read", "extension_traceId": "7"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as running:
        running.body = answer_of(token())
        yield running


def token(life_s: int = 3600, number: int = 0) -> str:
    now_s = int(time.time())
    return without_signature({"sub": "svc", "n": number, "iat": now_s, "exp": now_s + life_s})


def answer_of(value: str, **more: Any) -> bytes:
    return json.dumps({"access_token": value, "token_type": "Bearer"} | more).encode()


def settings(url: str, **more: str) -> OAuthClientSettings:
    keys = {URL_KEY: url, ALLOWED: f"x, {url}"} | {
        name.replace("_", "."): value for name, value in more.items()
    }
    return OAuthClientSettings.from_properties(keys, OPTIONS)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.to_thread(threading.Event().wait, 0.005)


@pytest.mark.behaviour("B332")
async def test_the_request_has_the_clients_credentials_and_the_scope(provider: Provider) -> None:
    got = await TokenSource(settings(provider.url)).token()
    assert got.value == json.loads(provider.body)["access_token"]
    assert got.extensions == {"traceId": "7"}
    ((method, path, headers, body),) = provider.requests
    assert (method, path, body) == ("POST", "/path?x=1", b"grant_type=client_credentials&scope=kafka+read")
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert headers["accept"] == "application/json"
    assert b64decode(headers["authorization"].removeprefix("Basic ")).decode() == f"svc:{SECRET}"


@pytest.mark.behaviour("B332")
def test_credentials_may_be_encoded_as_the_rfc_says() -> None:
    given = settings("https://x/", sasl_oauthbearer_header_urlencode="TRUE")
    _, headers = token_request(given)
    assert b64decode(headers["Authorization"].removeprefix("Basic ")) == b"svc:a%3As3cret%2F%C3%A4"


@pytest.mark.behaviour("B332")
async def test_what_may_pass_is_tried_again_and_what_may_not_is_final(provider: Provider) -> None:
    def busy_once(handler: Any) -> None:
        provider.behave = None
        handler.send_error(503)

    provider.behave = busy_once
    await TokenSource(settings(provider.url, sasl_login_retry_backoff_ms="1")).token()
    assert len(provider.requests) == 2
    provider.status, provider.body = 401, json.dumps({"error": "invalid_client", "hint": SECRET}).encode()
    with pytest.raises(AuthenticationFailedError, match="HTTP status 401") as caught:
        await TokenSource(settings(provider.url)).token()
    assert len(provider.requests) == 3
    assert SECRET not in str(caught.value)
    provider.status = 500
    quick = {"sasl_login_retry_backoff_ms": "1", "sasl_login_retry_backoff_max_ms": "7"}
    with pytest.raises(CannotConnectError, match="HTTP status 500"):
        await TokenSource(settings(provider.url, **quick)).token()
    assert len(provider.requests) == 3 + 4


@pytest.mark.behaviour("B329", "B337")
async def test_all_who_wait_get_one_token_and_equal_settings_share_it(provider: Provider) -> None:
    sources = [token_source(settings(provider.url)) for _ in range(20)]
    values = {each.value for each in await asyncio.gather(*(source.token() for source in sources))}
    assert len(values) == len(provider.requests) == 1
    other = token_source(settings(provider.url, sasl_oauthbearer_scope="write"))
    await other.token()
    assert len(provider.requests) == 2
    authority = Authority()
    trusting = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.pem}
    keys = {URL_KEY: provider.url, ALLOWED: provider.url}
    shared = {token_source(OAuthClientSettings.from_properties(keys, OPTIONS | trusting)) for _ in range(2)}
    assert len(shared) == 1
    assert token_source(settings(provider.url)) not in shared


@pytest.mark.behaviour("B330")
async def test_a_token_is_refreshed_before_its_end_while_nobody_waits(provider: Provider) -> None:
    none = {"min_period": "0", "buffer": "0"}
    early = {f"sasl_login_refresh_{name}_seconds": value for name, value in none.items()}
    source = TokenSource(settings(provider.url, sasl_login_refresh_window_factor="0.5", **early))

    def soon_over(handler: Any) -> None:
        # made when it is asked for: where it comes too late the next one does not
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(answer_of(token(life_s=4)))

    provider.behave = soon_over
    first = await source.token()
    provider.behave, wanted = None, token(number=1)
    provider.body = answer_of(wanted)
    refreshed = source.refreshed
    await until(lambda: refreshed.held is not None and refreshed.held.value == wanted)
    assert first.value != (await source.token()).value == wanted


@pytest.mark.behaviour("B331")
async def test_a_failed_refresh_keeps_the_token_as_long_as_it_is_valid(provider: Provider) -> None:
    source = TokenSource(settings(provider.url, sasl_login_retry_backoff_max_ms="0"))
    first = await source.token()
    provider.status = 500
    with pytest.raises(CannotConnectError):
        await source.refreshed._next()
    assert (await source.token()).value == first.value
    assert source.refreshed.timer is not None
    assert not source.refreshed.timer.cancelled()


async def test_a_token_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(token() + "\n")
    source = TokenSource(settings(file.as_uri()))
    assert (await source.token()).value == file.read_text().strip()
    missing = settings((tmp_path / "none").as_uri(), sasl_login_retry_backoff_max_ms="0")
    with pytest.raises(CannotConnectError, match="no such file"):
        await TokenSource(missing).token()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{}", b'{"access_token": 7}', b'{"access_token": ""}', b'{"access_token": "a b"}',
        b'{"access_token": "opaque"}', b'{"access_token": "opaque", "expires_in": true}',
        answer_of(token(life_s=-1)), b'{"access_token": "opaque", "expires_in": -1}',
    ],
)  # fmt: skip
def test_an_answer_without_a_usable_token_is_refused_without_its_text(data: bytes) -> None:
    with pytest.raises(EndpointError) as caught:
        read_answer(data, int(time.time() * 1000))
    assert "opaque" not in str(caught.value)


def test_a_token_that_is_no_jwt_lives_as_long_as_its_provider_says() -> None:
    held = read_answer(b'{"access_token": "opaque", "expires_in": 60}', 1000)
    assert (held.issued_at_ms, held.expires_at_ms) == (1000, 61_000)
    assert "opaque" not in repr(held)


@pytest.mark.behaviour("B330")
@given(
    st.floats(0.5, 1), st.floats(0, 0.25), st.integers(0, 900), st.integers(0, 3600), st.floats(0, 1),
    st.integers(0, 10**6), st.integers(1, 10**8),
)  # fmt: skip
def test_the_time_of_a_refresh_keeps_the_least_period_and_the_buffer(
    factor: float, jitter: float, least_s: int, buffer_s: int, chance: float, age_ms: int, rest_ms: int
) -> None:
    now_ms = 10**12
    issued_ms, expires_ms = now_ms - age_ms, now_ms + rest_ms
    rules = RefreshRules(factor, jitter, least_s, buffer_s)
    at_ms = refresh_at_ms(rules, chance, now_ms, issued_ms, expires_ms)
    part = factor + jitter * chance
    if rest_ms < (least_s + buffer_s) * 1000:
        assert at_ms == now_ms + int(rest_ms * part)
    else:
        proposed = issued_ms + int((expires_ms - issued_ms) * part)
        assert now_ms + least_s * 1000 <= at_ms <= max(expires_ms - buffer_s * 1000, now_ms + least_s * 1000)
        assert at_ms == proposed or at_ms in {now_ms + least_s * 1000, expires_ms - buffer_s * 1000}


def test_pauses_double_within_a_bound() -> None:
    assert retry_pauses_ms(100, 10_000) == (100, 200, 400, 800, 1600, 3200)
    assert retry_pauses_ms(1, 0) == ()


CLIENT = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": f'{LOGIN_MODULE} required clientId="svc" clientSecret="{SECRET}";',
    URL_KEY: "https://provider.example/token",
    ALLOWED: "https://provider.example/token",
}
ID_KEY = "sasl.oauthbearer.client.credentials.client.id"


def test_the_settings_of_a_client_are_kafkas() -> None:
    found = ClientSettings.from_properties("h:1", CLIENT | {ID_KEY: "newer"})
    assert found.sasl is not None
    assert found.sasl.oauth is not None
    assert (found.sasl.oauth.client_id, found.sasl.oauth.client_secret) == ("newer", SECRET)
    assert found.sasl.oauth.refresh == RefreshRules(0.8, 0.05, 60, 300)
    assert SECRET not in repr(found)
    assert (found.principal, found.who) == (None, "whom the tokens of `newer` name")


@pytest.mark.behaviour("B327")
@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({URL_KEY: ""}, f"`{URL_KEY}` is not set"),
        ({ALLOWED: ""}, f"which `{ALLOWED}` does not allow"),
        ({"sasl.jaas.config": f"{LOGIN_MODULE} required;"}, f"`{ID_KEY}` is not set"),
        (
            {
                "sasl.jaas.config": f'{LOGIN_MODULE} required clientId="a" clientSecret="b" '
                'extension_auth="x";'
            },
            "Extension name auth is invalid",
        ),
        ({"sasl.login.callback.handler.class": "a.B"}, "is `a.B`, which cannot be used: loading it failed"),
        ({"sasl.login.class": "a.B"}, "there is no login to replace here"),
        ({"sasl.oauthbearer.jwt.retriever.class": "a.B"}, "is `a.B`, kustos knows only"),
        ({"sasl.login.refresh.window.factor": "0.4"}, "use a number from 0.5 to 1.0"),
        ({"sasl.login.refresh.window.jitter": "nan"}, "use a number from 0.0 to 0.25"),
        ({"sasl.login.refresh.buffer.seconds": "3601"}, "use a whole number from 0 to 3600"),
        ({"sasl.login.connect.timeout.ms": "0"}, "use a whole number from 1"),
    ],
)
def test_a_wrong_setting_of_a_client_is_named(keys: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        ClientSettings.from_properties("h:1", CLIENT | keys)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


ISSUER_CLAIMS = {"iss": "kafka-admin", "sub": "kafka-admin", "aud": "https://login.example.com/token"}
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def assertion_keys(url: str, **more: str) -> dict[str, str]:
    return {
        URL_KEY: url,
        ALLOWED: url,
        ALLOWED_FILES: ",".join(str(Path(path).absolute()) for name, path in more.items() if "file" in name),
        **{
            f"sasl.oauthbearer.assertion.{name.replace('_', '.')}": value
            for name, value in more.items()
            if value
        },
    }


def key_file(folder: Path, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, passphrase: str = "") -> str:
    kind = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    path = folder / "assertion.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, kind))
    return str(path)


@pytest.mark.parametrize(
    ("key", "algorithm", "passphrase"), [(RSA, "", ""), (RSA, "rs256", "open-it"), (EC, "ES256", "")]
)
async def test_an_assertion_that_we_sign_takes_the_place_of_a_secret(
    provider: Provider,
    tmp_path: Path,
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey,
    algorithm: str,
    passphrase: str,
) -> None:
    template = tmp_path / "template.json"
    template.write_text('{"header": {"kid": "k1"}, "payload": {"tenant": 7, "exp": 1}}')
    keys = assertion_keys(
        provider.url,
        private_key_file=key_file(tmp_path, key, passphrase),
        private_key_passphrase=passphrase,
        algorithm=algorithm,
        template_file=str(template),
        claim_jti_include="true",
        claim_exp_seconds="120",
        **{f"claim_{name}": value for name, value in ISSUER_CLAIMS.items()},
    )
    given = OAuthClientSettings.from_properties(
        keys | {"sasl.oauthbearer.client.credentials.client.id": "svc"}, {}
    )
    assert passphrase not in repr(given) or not passphrase
    await TokenSource(given).token()
    ((_, _, headers, body),) = provider.requests
    assert "authorization" not in headers
    sent = dict(parse_qsl(body.decode()))
    jwt = sent.pop("client_assertion")
    assert sent == {
        "grant_type": "client_credentials",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_id": "svc",
    }
    signed = jwt.rpartition(".")[0]
    header, claims = (json.loads(urlsafe_b64decode(part + "==")) for part in signed.split("."))
    assert header == {"alg": algorithm.upper() or "RS256", "typ": "JWT", "kid": "k1"}
    assert claims.pop("jti")
    issued_s = claims.pop("iat")
    assert abs(issued_s - time.time()) < 60
    assert claims == ISSUER_CLAIMS | {"tenant": 7, "exp": issued_s + 120, "nbf": issued_s - 60}
    known = parse_jwks(json.dumps({"keys": [public_jwk(key)]}).encode())
    assert is_signed_by(known.keys[0], jwt, header["alg"])


def public_jwk(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    kind = RSAKey if isinstance(key, rsa.RSAPrivateKey) else ECKey
    return dict(kind.import_key(pem, {"kid": "k1"}).as_dict())


async def test_an_assertion_of_a_file_is_the_grant_of_a_jwt_bearer(
    provider: Provider, tmp_path: Path
) -> None:
    file = tmp_path / "assertion.jwt"
    given = compact({"sub": "svc"})
    file.write_text(f"{given}\n")
    retriever = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
    keys = assertion_keys(provider.url, file=str(file)) | {
        "sasl.oauthbearer.jwt.retriever.class": retriever,
        "sasl.oauthbearer.scope": "kafka",
    }
    source = TokenSource(OAuthClientSettings.from_properties(keys, {}))
    await source.token()
    ((_, _, headers, body),) = provider.requests
    assert "authorization" not in headers
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert dict(parse_qsl(body.decode())) == {"grant_type": grant, "assertion": given, "scope": "kafka"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"private_key_file": "absent.pem"}, "cannot read `.*/absent.pem`: no such file"),
        ({"private_key_passphrase": "wrong"}, "has no private key in PEM that .* opens"),
        ({"algorithm": "ES256"}, "does not sign with ES256"),
        ({"template_file": __file__}, "is not JSON"),
        ({"file": __file__}, "holds no signed JWT"),
    ],
)
async def test_an_assertion_that_cannot_be_made_is_told_without_its_secrets(
    provider: Provider, tmp_path: Path, changed: dict[str, str], expected: str
) -> None:
    given = {"private_key_file": key_file(tmp_path, RSA), "claim_iss": "x"} | changed
    keys = assertion_keys(provider.url, **given)
    found = OAuthClientSettings.from_properties(keys, {})
    with pytest.raises(SettingsError, match=expected):
        found.require_usable()
    with pytest.raises(AuthenticationFailedError, match=expected):
        await TokenSource(found).token()
    assert provider.requests == []


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"claim_iss": "x"}, "`sasl.oauthbearer.assertion.private.key.file` is not set"),
        (
            {"claim_iss": "x", "private_key_file": "k", "algorithm": "none"},
            "is `none`, use `RS256` or `ES256`",
        ),
        ({"claim_iss": "x", "private_key_file": "k", "claim_jti_include": "yes"}, "use `true` or `false`"),
        ({"claim_iss": " ", "private_key_file": "k"}, "`sasl.oauthbearer.assertion.claim.iss` has no value"),
        ({"claim_iss": "x", "private_key_file": "k", "claim_exp_seconds": "x"}, "use a whole number from 0"),
    ],
)
def test_a_wrong_setting_of_an_assertion_is_named(keys: dict[str, str], expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        OAuthClientSettings.from_properties(assertion_keys("https://x/", **keys), {})


RETRIEVER = "org.apache.kafka.common.security.oauthbearer.{}JwtRetriever"


@pytest.mark.parametrize(
    ("url", "retriever", "expected"),
    [
        ("https://x/", "File", "needs a `file` URL"),
        ("file:///x", "JwtBearer", "needs an `https` or `http` URL"),
        ("file:///x", "ClientCredentials", "needs an `https` or `http` URL"),
    ],
)
def test_a_url_that_its_retriever_cannot_use_is_refused(url: str, retriever: str, expected: str) -> None:
    keys = assertion_keys(url) | {"sasl.oauthbearer.jwt.retriever.class": RETRIEVER.format(retriever)}
    with pytest.raises(SettingsError, match=expected):
        OAuthClientSettings.from_properties(keys, OPTIONS)


@pytest.mark.parametrize("name", ["file", "private_key_file", "template_file"])
def test_a_file_that_is_not_allowed_is_not_read(tmp_path: Path, name: str) -> None:
    given = {"private_key_file": key_file(tmp_path, RSA), "claim_iss": "x", name: str(tmp_path / "other")}
    keys = assertion_keys("https://x/", **given)
    keys[ALLOWED_FILES] = f"/x, {tmp_path / 'assertion.pem'}"
    with pytest.raises(SettingsError, match=f"`{tmp_path}/other`, which `{ALLOWED_FILES}` does not allow"):
        OAuthClientSettings.from_properties(keys, {})


async def test_a_new_key_signs_the_next_assertion(provider: Provider, tmp_path: Path) -> None:
    keys = assertion_keys(provider.url, private_key_file=key_file(tmp_path, RSA), claim_iss="x")
    found = OAuthClientSettings.from_properties(keys, {})
    for key in (RSA, rsa.generate_private_key(65537, 2048)):
        key_file(tmp_path, key)
        await TokenSource(found).token()
        *_, body = provider.requests[-1]
        jwt = dict(parse_qsl(body.decode()))["client_assertion"]
        known = parse_jwks(json.dumps({"keys": [public_jwk(key)]}).encode())
        assert is_signed_by(known.keys[0], jwt, "RS256")


async def test_a_redirect_is_not_followed(provider: Provider) -> None:
    with Provider() as other:
        provider.status, provider.headers = 307, {"Location": other.url}
        with pytest.raises(AuthenticationFailedError, match="HTTP status 307"):
            await TokenSource(settings(provider.url)).token()
        assert (len(provider.requests), other.requests) == (1, [])
