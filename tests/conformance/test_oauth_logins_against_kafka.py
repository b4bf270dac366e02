"""Logins with a provider's tokens: settings and answers that Kafka's own client accepts, and its requests."""

import asyncio
import json
import random
import subprocess
import time
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kustos.client import AuthenticationFailedError, CannotConnectError, ClientSettings, SettingsError
from kustos.client.oauth import LOGIN_HANDLER, LOGIN_MODULE, TokenSource
from testkit.bearer_tokens import compact
from testkit.http_provider import Provider
from testkit.kafka.compiled import java_program
from testkit.kafka.tools import write_properties
from tests.conformance.oauth_probe import encoded

SEED = 1258
COUNT = 400
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed"
PACKAGE = "org.apache.kafka.common.security.oauthbearer."
OAUTH = "sasl.oauthbearer."
ASSERTION = OAUTH + "assertion."
HEADERS = ("authorization", "content-type", "accept", "cache-control")
FILES: dict[str, str] = {
    "header.json": '{"header": {"kid": "k1", "alg": "none"}}',
    "payload.json": '{"payload": {"tenant": 7, "iss": "of-the-template", "exp": 1, "deep": {"a": [1.5]}}}',
    "other.json": '{"comment": "x", "header": null, "payload": null}',
    "list.json": "[]",
    "text.json": '{"payload": "x"}',
    "broken.json": '{"payload": ',
    "broken.jwt": "www.example.com",
    "empty.jwt": "",
    "broken.pem": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
}
"""Besides these: `rsa.pem`, `ec.pem`, `good.jwt`, `folder`, `forbidden.pem`."""

CHOICES: dict[str, tuple[float, tuple[str, ...], tuple[str, ...]]] = {
    OAUTH + "client.credentials.client.id": (0.6, ("svc", " svc "), ("",)),
    OAUTH + "client.credentials.client.secret": (0.6, ("s3cret", " s:/+%&ä "), ("",)),
    OAUTH + "scope": (0.4, ("read", "read write", "a%20b", "a+b&resource=c", " "), ()),
    OAUTH + "header.urlencode": (0.2, ("true", "TRUE", "false"), ("yes",)),
    OAUTH + "jwt.retriever.class": (
        0.5,
        (
            PACKAGE + "DefaultJwtRetriever",
            PACKAGE + "ClientCredentialsJwtRetriever",
            PACKAGE + "JwtBearerJwtRetriever",
        ),
        ("a.B",),
    ),
    OAUTH + "jwt.validator.class": (
        0.1,
        (PACKAGE + "DefaultJwtValidator", PACKAGE + "ClientJwtValidator"),
        ("a.B",),
    ),
    ASSERTION + "file": (0.2, ("good.jwt", ""), ("broken.jwt", "empty.jwt", "missing.jwt", "rsa.pem")),
    ASSERTION + "private.key.file": (
        0.8,
        ("rsa.pem",),
        ("ec.pem", "broken.pem", "missing.pem", "forbidden.pem", "folder", ""),
    ),
    ASSERTION + "private.key.passphrase": (0.05, (), ("wrong", "")),
    ASSERTION + "algorithm": (0.2, ("RS256", "rs256"), ("ES256", "HS256")),
    ASSERTION + "claim.iss": (0.5, ("issuer", " issuer "), ("",)),
    ASSERTION + "claim.sub": (0.3, ("subject",), ("",)),
    ASSERTION + "claim.aud": (0.3, ("audience",), ("",)),
    ASSERTION + "claim.exp.seconds": (0.2, ("90", "0", "86400"), ("86401", "-1", "x")),
    ASSERTION + "claim.nbf.seconds": (0.2, ("5", "0", "3600"), ("3601", "x")),
    ASSERTION + "claim.jti.include": (0.3, ("true", "false"), ("yes",)),
    ASSERTION + "template.file": (
        0.3,
        ("header.json", "payload.json", "other.json"),
        ("list.json", "text.json", "broken.json", "missing.json", ""),
    ),
}
"""Key → how often it is given, usual values, and rare ones; a value of a `file` key names a file."""

RARE = 0.1
OPTIONS = {"clientId": "of-the-option", "clientSecret": " of-the-option ", "scope": "opt in"}


class KafkasClient:
    """The login of Kafka's own client, in a JVM that may use these URLs and files."""

    def __init__(self, urls: str, files: str) -> None:
        allowed = [f"-D{ALLOWED}.urls={urls}", f"-D{ALLOWED}.files={files}", "-Dlog4j2.level=OFF"]
        probe = Path(__file__).with_name("OAuthLoginProbe.java")
        self._process = subprocess.Popen(
            java_program(probe, options=allowed), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def log_in(self, file: Path) -> tuple[str, str]:
        """Return `token` and the token, or `settings` or `refused` and the reason."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(encoded(file.read_bytes()) + "\n")
        stdin.flush()
        kind, _, text = stdout.readline().strip().partition(" ")
        return kind, b64decode(text).decode()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


NO_ATTEMPT = "Exhausted all retry attempts but no attempt returned value"


class Scene:
    """A provider, files, and both clients."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder, self.provider = folder, provider
        (folder / "folder").mkdir()
        for name, text in FILES.items():
            (folder / name).write_text(text)
        (folder / "good.jwt").write_text(token() + "\n")
        keys: dict[str, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey] = {
            "rsa.pem": rsa.generate_private_key(65537, 2048),
            "ec.pem": ec.generate_private_key(ec.SECP256R1()),
        }
        keys["forbidden.pem"] = keys["rsa.pem"]
        for name, key in keys.items():
            pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            (folder / name).write_bytes(pem)
        names = {*FILES, *keys, "good.jwt", "folder", "missing.pem", "missing.json", "missing.jwt"}
        self.files = ",".join(str(folder / name) for name in sorted(names - {"forbidden.pem"}))
        self.urls = f"{provider.url},{(folder / 'good.jwt').as_uri()}"
        self.kafka = KafkasClient(self.urls, self.files)

    def outcomes(self, given: Mapping[str, str], options: Mapping[str, str]) -> list[tuple[str, Any]]:
        """Return the outcome at Kafka's client and at ours: its kind, and the request or the token."""
        shown = " ".join(f'{name}="{value}"' for name, value in options.items())
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{LOGIN_MODULE} required {shown};",
            "sasl.login.callback.handler.class": LOGIN_HANDLER,
            "sasl.login.retry.backoff.ms": "0",
            "sasl.login.retry.backoff.max.ms": "0",
            OAUTH + "token.endpoint.url": self.provider.url,
            **given,
        }
        file = self.folder / "client.properties"
        write_properties(file, properties)
        kind, text = self.kafka.log_in(file)
        while NO_ATTEMPT in text:
            # Kafka's client may try for 0 ms: the clock went on before its first attempt
            kind, text = self.kafka.log_in(file)
        theirs = self._outcome(kind, text)
        write_properties(file, properties | {f"{ALLOWED}.urls": self.urls, f"{ALLOWED}.files": self.files})
        return [theirs, self._outcome(*asyncio.run(our_login(file)))]

    def _outcome(self, kind: str, text: str) -> tuple[str, Any]:
        requests = list(self.provider.requests)
        self.provider.requests.clear()
        if kind == "token":
            return kind, (text, shown_request(*requests[0]) if requests else None)
        assert len(requests) == (kind == "refused"), (kind, text)
        return kind, None


async def our_login(file: Path) -> tuple[str, str]:
    try:
        sasl = ClientSettings.from_file("127.0.0.1:1", file).sasl
    except SettingsError as error:
        return "settings", str(error)
    assert sasl is not None
    assert sasl.oauth is not None
    try:
        sasl.oauth.require_usable()
    except SettingsError as error:
        return "settings", str(error)
    try:
        return "token", (await TokenSource(sasl.oauth).token()).value
    except (AuthenticationFailedError, CannotConnectError) as error:
        return "refused", str(error)


def shown_request(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Any:
    """What of a request says who asks for which token; of the times, what follows from the settings."""
    pairs = parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True)
    fields: dict[str, Any] = dict(pairs)
    assert len(fields) == len(pairs)
    for name in {"assertion", "client_assertion"} & fields.keys():
        header, claims = (json.loads(urlsafe_b64decode(part + "==")) for part in fields[name].split(".")[:2])
        if "nbf" in claims:
            issued_s = claims.pop("iat")
            assert abs(issued_s - time.time()) < 60
            claims |= {"exp": claims["exp"] - issued_s, "nbf": claims["nbf"] - issued_s}
            claims |= {"jti": len(claims["jti"])} if "jti" in claims else {}
        # Kafka's client writes the algorithm as its setting does, RFC 7515 in upper case
        fields[name] = [header | {"alg": header["alg"].upper()}, claims]
    return method, path, {name: headers.get(name) for name in HEADERS}, fields


def token(number: int = 0) -> str:
    now_s = int(time.time())
    return compact({"sub": "svc", "n": number, "iat": now_s, "exp": now_s + 3600})


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Provider() as provider:
        provider.body = json.dumps({"access_token": token()}).encode()
        made = Scene(tmp_path_factory.mktemp("oauth"), provider)
        yield made
        made.kafka.close()


def drawn(chance: random.Random, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    given: dict[str, str] = {}
    for key, (often, usual, rare) in CHOICES.items():
        if chance.random() < often:
            value = chance.choice(rare if rare and (not usual or chance.random() < RARE) else usual)
            given[key] = str(folder / value) if value and key.endswith("file") else value
    if given.get(ASSERTION + "algorithm") == "ES256" and chance.random() < 1 - RARE:
        given[ASSERTION + "private.key.file"] = str(folder / "ec.pem")
    return given, {name: value for name, value in OPTIONS.items() if chance.random() < 0.3}


@pytest.mark.behaviour("B327", "B332")
def test_drawn_settings_ask_as_kafkas_client_does(scene: Scene) -> None:
    chance = random.Random(SEED)
    seen: dict[str, int] = {}
    for _ in range(COUNT):
        given, options = drawn(chance, scene.folder)
        theirs, ours = scene.outcomes(given, options)
        assert ours == theirs, (given, options)
        seen[ours[0]] = seen.get(ours[0], 0) + 1
    assert min(seen["token"], seen["settings"]) > COUNT / 5


def test_a_login_with_a_secret_or_an_assertion_takes_the_same_answers(scene: Scene) -> None:
    good, other = token(), token(number=1)
    bodies: list[Any] = [
        {"access_token": good}, {"access_token": f" {good}\n"}, {"id_token": good},
        {"access_token": good, "id_token": other}, {"access_token": " ", "id_token": good},
        {"access_token": 7, "id_token": good}, {"access_token": None, "id_token": good},
        {"access_token": 7}, {"access_token": "a.b"}, {"access_token": "a.b.c"}, {"token": good}, {}, [],
        "x", "",
    ]  # fmt: skip
    usual = scene.provider.body
    secret = {OAUTH + "client.credentials.client.id": "svc", OAUTH + "client.credentials.client.secret": "s"}
    assertion = {ASSERTION + "file": str(scene.folder / "good.jwt")}
    seen = set()
    try:
        for status, body in [(200, body) for body in bodies] + [
            (201, bodies[0]),
            (202, bodies[0]),
            (400, {}),
        ]:
            scene.provider.status, scene.provider.body = status, json.dumps(body).encode() if body else b""
            for given in (secret, assertion):
                theirs, ours = scene.outcomes(given, {})
                assert ours == theirs, (status, body, given)
                seen.add(ours[0])
    finally:
        scene.provider.status, scene.provider.body = 200, usual
    assert seen == {"token", "refused"}
