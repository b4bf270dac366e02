"""Assertions: JWTs that authenticate kustos to a provider instead of a secret (RFC 7523, KIP-1139, KIP-1258).

Another program writes the assertion to a file, or kustos signs one for each request with a private key.
Source: `AssertionSupplierFactory` and `AssertionUtils` of Kafka 4.3.1.
"""

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kustos.client.errors import SettingsError
from kustos.client.oauth.http import EndpointError, read_small_file
from kustos.runtime import Entropy
from kustos.settings import Setting, whole_number

_PREFIX: Final = "sasl.oauthbearer.assertion."
FILE_KEY: Final = _PREFIX + "file"
PRIVATE_KEY_KEY: Final = _PREFIX + "private.key.file"
PASSPHRASE_KEY: Final = _PREFIX + "private.key.passphrase"
ALGORITHM_KEY: Final = _PREFIX + "algorithm"
TEMPLATE_KEY: Final = _PREFIX + "template.file"
ISSUER_KEY: Final = _PREFIX + "claim.iss"
JWT_ID_KEY: Final = _PREFIX + "claim.jti.include"

_CLAIMS: Final = {"aud": _PREFIX + "claim.aud", "iss": ISSUER_KEY, "sub": _PREFIX + "claim.sub"}
_ALGORITHMS: Final = ("RS256", "ES256")
_JWT: Final = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_ES256_PART_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class AssertionSettings:
    """The source of an assertion: `file` contains it, else the private key signs it."""

    file: Path | None = None
    private_key: Path | None = None
    passphrase: str = field(default="", repr=False)
    algorithm: str = "RS256"
    claims: tuple[tuple[str, str], ...] = ()
    template: Path | None = None
    life_s: int = Setting(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        whole_number(0, 86_400),
        300,
        "Upstream",
        "How long an assertion that the node signs is valid.",
        since="0.2.0",
    ).field()
    earlier_s: int = Setting(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        whole_number(0, 3600),
        60,
        "Upstream",
        "How long before its time it is valid, for the provider's clock.",
        since="0.2.0",
    ).field()
    has_id: bool = False

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], times: Mapping[str, Any]) -> "AssertionSettings":
        """Return the settings of these keys; raise `SettingsError` naming the wrong key.

        `times`: the values of the declared fields.
        """

        def text(key: str) -> str:
            return properties.get(key, "").strip()

        if text(FILE_KEY):
            return cls(file=Path(text(FILE_KEY)))
        if not text(PRIVATE_KEY_KEY):
            raise SettingsError(
                f"`{PRIVATE_KEY_KEY}` is not set, nor is `{FILE_KEY}`: an assertion is signed by the one, or "
                "is in the other"
            )
        algorithm = text(ALGORITHM_KEY).upper() or "RS256"
        if algorithm not in _ALGORITHMS:
            raise SettingsError(f"`{ALGORITHM_KEY}` is `{algorithm}`, use one of {', '.join(_ALGORITHMS)}")
        return cls(
            None,
            Path(text(PRIVATE_KEY_KEY)),
            text(PASSPHRASE_KEY),
            algorithm,
            tuple((claim, text(key)) for claim, key in _CLAIMS.items() if text(key)),
            Path(text(TEMPLATE_KEY)) if text(TEMPLATE_KEY) else None,
            has_id=text(JWT_ID_KEY).lower() == "true",
            **times,
        )

    def create(self, now_s: int, entropy: Entropy) -> str:
        """Return an assertion; raise `EndpointError`, whose text contains no part of it. This function
        blocks."""
        if self.file is not None:
            text = read_small_file(self.file).decode("ascii", "replace").strip()
            if _JWT.fullmatch(text) is None:
                # the content of a wrong file must not be sent to the provider
                raise EndpointError(f"`{self.file}` holds no JWT", may_pass=False)
            return text
        template = self._template()
        header = {**template.get("header", {}), "alg": self.algorithm, "typ": "JWT"}
        claims = dict(self.claims) | template.get("payload", {})
        claims |= {"iat": now_s, "exp": now_s + self.life_s, "nbf": now_s - self.earlier_s}
        claims |= {"jti": str(entropy.uuid())} if self.has_id else {}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
        return f"{signed}.{_base64(self._signature(signed.encode()))}"

    def _template(self) -> dict[str, dict[str, Any]]:
        if self.template is None:
            return {}
        try:
            found = json.loads(read_small_file(self.template))
        except (ValueError, RecursionError):
            raise EndpointError(f"`{self.template}` is not JSON", may_pass=False) from None
        if not isinstance(found, dict) or not all(isinstance(part, dict) for part in found.values()):
            raise EndpointError(
                f"`{self.template}` is not a JSON object with `header` and `payload`", may_pass=False
            )
        return found

    def _signature(self, data: bytes) -> bytes:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path = self.private_key or Path()
        try:
            key = load_pem_private_key(read_small_file(path), self.passphrase.encode() or None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise EndpointError(
                f"`{path}` has no private key in PEM that `{PASSPHRASE_KEY}` opens", may_pass=False
            ) from None
        if isinstance(key, rsa.RSAPrivateKey) and self.algorithm == "RS256":
            return key.sign(data, padding.PKCS1v15(), SHA256())
        if (
            isinstance(key, ec.EllipticCurvePrivateKey)
            and isinstance(key.curve, ec.SECP256R1)
            and self.algorithm == "ES256"
        ):
            parts = decode_dss_signature(key.sign(data, ec.ECDSA(SHA256())))
            return b"".join(part.to_bytes(_ES256_PART_BYTES) for part in parts)
        raise EndpointError(f"the key of `{path}` does not sign with {self.algorithm}", may_pass=False)


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
