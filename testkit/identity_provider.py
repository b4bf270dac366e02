"""A real OpenID provider on loopback: npm's `oidc-provider`, whose access tokens are JWTs."""

import json
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from joserfc.jwk import ECKey, RSAKey

from testkit.npm import NODE, installed
from testkit.paths import ROOT
from testkit.ports import LOOPBACK, free_port
from testkit.processes import Server

SOURCES = ROOT / "testkit" / "provider"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """What a test chooses: clients with their secrets, and what their tokens have.

    `claims` are further claims in the tokens of a client.
    """

    clients: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    audience: str = "kafka"
    lifetime_s: int = 3600
    algorithm: str = "RS256"
    public_keys: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Clients that authenticate by assertions → their public keys, as members of a key set."""


class IdentityProvider:
    """A provider, ready when `start()` returns; as a context manager it is stopped at the end."""

    def __init__(self, directory: Path, settings: ProviderSettings) -> None:
        self.directory = directory
        self.settings = settings
        self.port = free_port()
        self.key_number = 0
        self._server: Server | None = None

    @property
    def issuer(self) -> str:
        """The claim `iss` of its tokens."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def jwks_url(self) -> str:
        """Where its public keys are."""
        return f"{self.issuer}/jwks"

    @property
    def token_url(self) -> str:
        """Where its clients get tokens."""
        return f"{self.issuer}/token"

    def start(self) -> Self:
        """Start, and return when the key set is served."""
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.settings
        given = {
            "port": self.port,
            "clients": dict(settings.clients),
            "claims": {client: dict(claims) for client, claims in settings.claims.items()},
            "jwks": {"keys": [self._key()]},
            "audience": settings.audience,
            "lifetimeS": settings.lifetime_s,
            "algorithm": settings.algorithm,
            "publicKeys": {client: list(keys) for client, keys in settings.public_keys.items()},
        }
        command = [str(NODE), str(installed(SOURCES) / "provider.mjs")]
        environment = {"KUSTOS_TEST_PROVIDER": json.dumps(given)}
        self._server = Server("oidc-provider", command, self.directory / "provider.log", environment)
        self._server.wait_ready(self._answers, timeout_s=START_TIMEOUT_S)
        return self

    def stop(self) -> None:
        """Stop it; does nothing if it is not running."""
        server, self._server = self._server, None
        if server is not None and server.running:
            server.terminate(timeout_s=STOP_TIMEOUT_S)

    def rotate(self) -> None:
        """Start again at the same address, with another signing key."""
        self.stop()
        self.key_number += 1
        self.start()

    def token(self, client: str) -> str:
        """Return an access token of this client."""
        secret = self.settings.clients[client]
        credentials = b64encode(f"{client}:{secret}".encode()).decode()
        body = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": "kafka"}).encode()
        request = urllib.request.Request(self.token_url, body, {"Authorization": f"Basic {credentials}"})
        with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as answer:
            token: str = json.loads(answer.read())["access_token"]
            return token

    def grants(self) -> list[dict[str, str]]:
        """Return the grants since the start: `client`, `grant`, and the header of the assertion."""
        lines = (self.directory / "provider.log").read_text().splitlines()
        return [json.loads(line.removeprefix("granted ")) for line in lines if line.startswith("granted ")]

    def _key(self) -> dict[str, Any]:
        """Return a new private key with an id of its own."""
        options: Any = {"kid": f"{self.port}-{self.key_number}", "use": "sig"}
        if self.settings.algorithm.startswith("ES"):
            return dict(ECKey.generate_key("P-256", options).as_dict(private=True))
        return dict(RSAKey.generate_key(2048, options).as_dict(private=True))

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.jwks_url, timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
