"""Assertions: JWTs that authenticate kustos to a provider instead of a secret (RFC 7523, KIP-1139, KIP-1258).

Another program writes the assertion to a file, or kustos signs one for each request with a private key.
Source: `AssertionSupplierFactory` and `AssertionUtils` of Kafka 4.4.0.
"""

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kustos.auth.jwt import TokenError, TokenParts
from kustos.client.errors import SettingsError
from kustos.client.oauth.http import (
    ALLOWED_FILES_KEY,
    EndpointError,
    allowed_items,
    checked_file,
    read_small_file,
)
from kustos.runtime import Entropy
from kustos.settings import BOOLEAN, Kind, Setting, one_of, whole_number

_PREFIX: Final = "sasl.oauthbearer.assertion."
FILE_KEY: Final = _PREFIX + "file"
PRIVATE_KEY_KEY: Final = _PREFIX + "private.key.file"
PASSPHRASE_KEY: Final = _PREFIX + "private.key.passphrase"
TEMPLATE_KEY: Final = _PREFIX + "template.file"
ISSUER_KEY: Final = _PREFIX + "claim.iss"

_CLAIMS: Final = {"aud": _PREFIX + "claim.aud", "iss": ISSUER_KEY, "sub": _PREFIX + "claim.sub"}
_PARTS: Final = ("header", "payload")
_ES256_PART_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class AssertionSettings:
    """The source of an assertion: `file` contains it, else the private key signs it."""

    file: Path | None = None
    private_key: Path | None = None
    passphrase: str = field(default="", repr=False)
    claims: tuple[tuple[str, str], ...] = ()
    template: Path | None = None
    algorithm: str = Setting(
        _PREFIX + "algorithm",
        Kind("string", "`RS256` or `ES256`", lambda text: one_of("RS256", "ES256").read(text.upper())),
        "RS256",
        "Upstream",
        "How the node signs an assertion.",
        since="0.2.0",
    ).field()
    life_s: int = Setting(
        _PREFIX + "claim.exp.seconds",
        whole_number(0, 86_400),
        300,
        "Upstream",
        "How long an assertion that the node signs is valid.",
        since="0.2.0",
    ).field()
    earlier_s: int = Setting(
        _PREFIX + "claim.nbf.seconds",
        whole_number(0, 3600),
        60,
        "Upstream",
        "How long before its time it is valid, for the provider's clock.",
        since="0.2.0",
    ).field()
    has_id: bool = Setting(
        _PREFIX + "claim.jti.include",
        BOOLEAN,
        False,
        "Upstream",
        "Whether it has a random `jti`; some providers require one.",
        since="0.2.0",
    ).field()

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], declared: Mapping[str, Any]
    ) -> "AssertionSettings":
        """Return the settings of these keys; raise `SettingsError` naming the wrong key.

        `declared`: the values of the declared fields.
        """
        allowed = allowed_items(properties.get(ALLOWED_FILES_KEY, ""))
        if file := properties.get(FILE_KEY, "").strip():
            return cls(file=checked_file(file, FILE_KEY, allowed), **declared)
        if not properties.get(PRIVATE_KEY_KEY, "").strip():
            raise SettingsError(
                f"`{PRIVATE_KEY_KEY}` is not set, nor is `{FILE_KEY}`: an assertion is signed by the one, or "
                "is in the other"
            )
        given = {
            key: properties[key].strip()
            for key in (PRIVATE_KEY_KEY, PASSPHRASE_KEY, TEMPLATE_KEY, *_CLAIMS.values())
            if key in properties
        }
        for key, text in given.items():
            if not text:
                raise SettingsError(f"`{key}` has no value, give it one or leave it out")
        template = given.get(TEMPLATE_KEY)
        return cls(
            None,
            checked_file(given[PRIVATE_KEY_KEY], PRIVATE_KEY_KEY, allowed),
            given.get(PASSPHRASE_KEY, ""),
            tuple((claim, given[key]) for claim, key in _CLAIMS.items() if key in given),
            None if template is None else checked_file(template, TEMPLATE_KEY, allowed),
            **declared,
        )

    def create(self, now_s: int, entropy: Entropy) -> str:
        """Return an assertion; raise `EndpointError`, whose text contains no part of it. This function
        blocks.

        It reads the files each time, so a new key needs no restart.
        """
        if self.file is not None:
            text = _content(self.file).decode("ascii", "replace").strip()
            try:
                is_signed = TokenParts.parse(text).has_signature
            except TokenError:
                is_signed = False
            if not is_signed:
                # the content of a wrong file must not be sent to the provider
                raise EndpointError(f"`{self.file}` holds no signed JWT", may_pass=False)
            return text
        header, payload = self._template()
        header |= {"alg": self.algorithm, "typ": "JWT"}
        claims = dict(self.claims) | payload
        claims |= {"iat": now_s, "exp": now_s + self.life_s, "nbf": now_s - self.earlier_s}
        claims |= {"jti": str(entropy.uuid())} if self.has_id else {}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
        return f"{signed}.{_base64(self._signature(signed.encode()))}"

    def _template(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return more members of the header, and more claims."""
        if self.template is None:
            return {}, {}
        try:
            found = json.loads(_content(self.template))
            # NaN, or a number that is too large, which is not JSON
            json.dumps(found, allow_nan=False)
        except (ValueError, RecursionError):
            raise EndpointError(f"`{self.template}` is not JSON", may_pass=False) from None
        is_object = isinstance(found, dict)
        # as in Kafka, a null is like a missing member
        parts = [{} if found.get(name) is None else found[name] for name in _PARTS] if is_object else []
        if not is_object or not all(isinstance(part, dict) for part in parts):
            raise EndpointError(
                f"`{self.template}` is not a JSON object with the objects `header` and `payload`",
                may_pass=False,
            )
        return parts[0], parts[1]

    def _signature(self, data: bytes) -> bytes:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path = self.private_key or Path()
        try:
            key = load_pem_private_key(_content(path), self.passphrase.encode() or None)
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


def _content(path: Path) -> bytes:
    try:
        return read_small_file(path)
    except EndpointError as error:
        # Kafka's client, too, repeats a request, but not the reading of a file
        raise EndpointError(str(error), may_pass=False) from None


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
