"""The requests by which we get a token with an assertion, and those of Kafka's own client."""

import asyncio
import json
import subprocess
import time
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kustos.client import ClientSettings
from kustos.client.oauth import LOGIN_HANDLER, LOGIN_MODULE, OAuthClientSettings, TokenSource
from testkit.bearer_tokens import compact
from testkit.http_provider import Provider
from testkit.kafka.java import command
from testkit.kafka.tools import TOOL_TIMEOUT_S, write_properties
from testkit.ports import LOOPBACK, free_port

JVM = "org.apache.kafka.sasl.oauthbearer.allowed"
CLAIMS = {"claim.iss": "kafka-admin", "claim.sub": "kafka-admin", "claim.aud": "https://login.example.com"}
CASES: dict[str, dict[str, str]] = {
    "KIP-1258, signed": {
        **{f"sasl.oauthbearer.assertion.{name}": value for name, value in CLAIMS.items()},
        "sasl.oauthbearer.assertion.private.key.file": "{folder}/key.pem",
        "sasl.oauthbearer.assertion.template.file": "{folder}/template.json",
        "sasl.oauthbearer.client.credentials.client.id": "kafka-admin",
    },
    "KIP-1258, of a file": {
        "sasl.oauthbearer.assertion.file": "{folder}/assertion.jwt",
        "sasl.oauthbearer.scope": "read write",
    },
    "KIP-1139, of a file": {
        "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer."
        "JwtBearerJwtRetriever",
        "sasl.oauthbearer.assertion.file": "{folder}/assertion.jwt",
    },
    "KIP-1139, signed": {
        "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer."
        "JwtBearerJwtRetriever",
        "sasl.oauthbearer.assertion.claim.exp.seconds": "90",
        "sasl.oauthbearer.assertion.private.key.file": "{folder}/key.pem",
        "sasl.oauthbearer.scope": "read",
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key.pem").write_bytes(pem)
    (tmp_path / "template.json").write_text('{"header": {"kid": "k1"}, "payload": {"tenant": 7, "iat": 1}}')
    (tmp_path / "assertion.jwt").write_text(token())
    return tmp_path


def token() -> str:
    now_s = int(time.time())
    return compact({"sub": "kafka-admin", "scope": "x", "iat": now_s, "exp": now_s + 3600})


def decoded(assertion: str) -> list[dict[str, Any]]:
    """Header and claims of an assertion; of its times only what follows from the settings."""
    header, claims = (json.loads(urlsafe_b64decode(part + "==")) for part in assertion.split(".")[:2])
    if "nbf" in claims:
        issued_s = claims.pop("iat")
        claims |= {"exp": claims["exp"] - issued_s, "nbf": claims["nbf"] - issued_s}
    return [header, claims]


def request_of(provider: Provider) -> tuple[dict[str, str], dict[str, Any]]:
    """The headers that matter and the fields of the only request, assertions decoded."""
    ((_, _, headers, body),) = provider.requests
    provider.requests.clear()
    fields: dict[str, Any] = dict(parse_qsl(body.decode(), strict_parsing=True))
    for name in {"assertion", "client_assertion"} & fields.keys():
        fields[name] = decoded(fields[name])
    shown = {name: headers.get(name, "") for name in ("authorization", "content-type", "accept")}
    return shown, fields


async def got(settings: OAuthClientSettings) -> None:
    await TokenSource(settings).token()


@pytest.mark.parametrize("case", CASES)
def test_the_request_for_a_token_is_that_of_kafkas_client(case: str, folder: Path) -> None:
    with Provider() as provider:
        provider.body = json.dumps({"access_token": token(), "token_type": "Bearer"}).encode()
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{LOGIN_MODULE} required;",
            "sasl.login.callback.handler.class": LOGIN_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": provider.url,
            "default.api.timeout.ms": "500",
            "request.timeout.ms": "500",
            **{key: value.format(folder=folder) for key, value in CASES[case].items()},
        }
        file = folder / "client.properties"
        write_properties(file, properties)
        may = {f"{JVM}.urls": provider.url, f"{JVM}.files": ",".join(map(str, folder.iterdir()))}
        allowed = [f"-D{key}={value}" for key, value in may.items()]
        nowhere = f"{LOOPBACK}:{free_port()}"
        arguments = ("--bootstrap-server", nowhere, "--command-config", str(file), "--list")
        tool = command("org.apache.kafka.tools.AclCommand", *arguments, options=allowed)
        done = subprocess.run(tool, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
        assert provider.requests, done.stdout + done.stderr
        theirs = request_of(provider)
        settings = ClientSettings.from_properties(nowhere, properties | may)
        assert settings.sasl is not None
        assert settings.sasl.oauth is not None
        asyncio.run(got(settings.sasl.oauth))
        assert request_of(provider) == theirs
