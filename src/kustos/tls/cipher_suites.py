"""Cipher suites: maps the names of Java and the RFCs (`ssl.cipher.suites`) to the names of OpenSSL.

Python's `ssl` can select suites of TLS 1.2, but before Python 3.15 not of TLS 1.3 (RFC 8446 has five, OpenSSL
offers three). So a list must name all three or none of them; without them, TLS 1.3 is off. Any other list is
refused, because it could not be applied completely.
"""

import ssl
from collections.abc import Iterable
from functools import cache
from typing import Final

from kustos.tls.values import CipherSuites, TlsError

TLS13_SUITES: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
"""The suites that OpenSSL offers in TLS 1.3."""

SUITES_MAX: Final = 128
"""More than OpenSSL has."""

ALL_OF_OPENSSL: Final = "ALL:@SECLEVEL=0"
"""All suites with a name; OpenSSL's security level still limits the negotiated ones."""


def cipher_suites(names: Iterable[str]) -> CipherSuites:
    """Return these suites, by their names in Java; raise `TlsError` for an unknown one."""
    named = tuple(names)
    if len(named) > SUITES_MAX:
        raise TlsError(f"`ssl.cipher.suites` names {len(named)} suites, at most {SUITES_MAX} are read")
    in_tls13 = [name for name in named if name in TLS13_SUITES]
    if in_tls13 and len(set(in_tls13)) < len(TLS13_SUITES):
        raise TlsError(
            f"`ssl.cipher.suites` names {len(set(in_tls13))} of the suites of TLS 1.3, among which Python "
            f"cannot choose; name all of {', '.join(TLS13_SUITES)}, or none of them and use TLSv1.2"
        )
    older = [_openssl_name(name) for name in named if name not in TLS13_SUITES]
    return CipherSuites(tuple(older), bool(in_tls13))


def _openssl_name(name: str) -> str:
    """Return `ECDHE-RSA-AES128-GCM-SHA256` for `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`."""
    exchange, separator, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_128_", "AES128_").replace("AES_256_", "AES256_").replace("_CBC", "")
    if cipher.startswith("CHACHA20"):
        cipher = cipher.removesuffix("_SHA256")
    parts = [*([] if exchange == "RSA" else exchange.split("_")), *cipher.split("_")]
    made = "-".join(parts)
    if not separator or made not in _known():
        raise TlsError(
            f"`ssl.cipher.suites` has `{name}`, which this OpenSSL does not know; write names as "
            "`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`"
        )
    return made


@cache
def _known() -> frozenset[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers(ALL_OF_OPENSSL)
    return frozenset(cipher["name"] for cipher in context.get_ciphers())
