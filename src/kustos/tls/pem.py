"""PEM texts (RFC 7468), read as Kafka reads them: CRLF, blank lines, text around the blocks, one long line.

The blocks become DER, for `cryptography` to read.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Final

from kustos.tls.errors import TlsError

BLOCKS_MAX: Final = 4_096
"""The trust store of a system has 150 certificates."""

CERTIFICATE: Final = "CERTIFICATE"
REVOCATIONS: Final = "X509 CRL"
ENCRYPTED_KEY: Final = "ENCRYPTED PRIVATE KEY"
KEYS: Final = frozenset({"PRIVATE KEY", ENCRYPTED_KEY, "RSA PRIVATE KEY", "EC PRIVATE KEY"})

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----([^-]*(?:-(?!----)[^-]*)*)-----END \1-----")


@dataclass(frozen=True, slots=True)
class PemBlock:
    """One block: its label, and its content as DER."""

    label: str
    der: bytes = field(repr=False)


def pem_blocks(text: str) -> list[PemBlock]:
    """Return the blocks of a text in order; raise `TlsError` for a damaged one."""
    blocks: list[PemBlock] = []
    for match in _BLOCK.finditer(text):
        if len(blocks) == BLOCKS_MAX:
            raise TlsError(f"it has more than {BLOCKS_MAX} blocks of PEM")
        label, body = match.groups()
        if ":" in body:
            raise TlsError(
                "its private key is encrypted in OpenSSL's old way, convert it with `openssl pkcs8 -topk8`"
            )
        try:
            der = base64.b64decode("".join(body.split()), validate=True)
        except (binascii.Error, ValueError):
            raise TlsError(f"a block `{label}` is no base64") from None
        blocks.append(PemBlock(label, der))
    return blocks
