"""Calls functions of OpenSSL that Python's `ssl` does not expose.

- OpenSSL takes the first certificate with the issuer's name as the issuer (openssl/openssl issue 16304). A
  rotated authority has several certificates with one name, and a certificate without `authorityKeyIdentifier`
  does not say which key signed it. With these callbacks, a certificate is an issuer only if its key verifies
  the signature, as in Java; otherwise OpenSSL continues with the next one of that name. If a peer sends
  several matching issuers, only one that leads to the trust store counts. Revocation lists are also selected
  by signature. OpenSSL still builds and verifies the chain: it gets fewer candidates, and no check is
  skipped.
- A TLS 1.2 server caches each session for two hours, including the client's certificates, and resumes it
  without verifying them again. This module turns the cache off.

`ssl` does not expose the address of a context's `SSL_CTX`. OpenSSL passes it to a callback that is registered
for new contexts (`CRYPTO_get_ex_new_index(3)`), so this module does not depend on the layout of Python's
objects. A Python with a static OpenSSL may hide the functions; see `is_reachable`.
"""

import _ssl
import ctypes
import ssl
import threading
from collections.abc import Callable
from ctypes import c_int, c_long, c_void_p
from typing import Final

SIGNATURES_MAX: Final = 32
"""The maximum number of signatures that one search for issuers verifies: three candidates for each
certificate of the longest chain. Ten certificates with one key have millions of paths between them."""

CHEAP_KEY_BYTES: Final = 400
"""Public keys (DER) from this size on count as several signatures, in proportion to the square of their size,
like their cost: RSA with 4096 bits counts as two, with 16384 bits (5 ms each) as 26."""

SENT_MAX: Final = 10
"""The maximum number of certificates that a peer may send, as in Java (`jdk.tls.maxCertificateChainLength`):
a search through the hundreds that OpenSSL accepts would block the event loop."""

_EX_INDEX_SSL_CTX, _EX_INDEX_X509_STORE_CTX = 1, 5
"""`CRYPTO_EX_INDEX_*` (`crypto.h`)."""

_IS_POSSIBLE: Final = 0
"""`X509_V_OK`: name, key identifier, kind of key and usage fit."""

_SET_SESSION_CACHE_MODE, _SESSION_CACHE_OFF = 44, 0
"""`SSL_CTRL_SET_SESS_CACHE_MODE`, `SSL_SESS_CACHE_OFF` (`ssl.h`)."""

_SIGNATURES: Final = {
    "CRYPTO_get_ex_new_index": (c_int, c_int, c_long, c_void_p, c_void_p, c_void_p, c_void_p),
    "ERR_pop_to_mark": (c_int,),
    "ERR_set_mark": (c_int,),
    "OPENSSL_sk_delete": (c_void_p, c_void_p, c_int),
    "OPENSSL_sk_num": (c_int, c_void_p),
    "OPENSSL_sk_value": (c_void_p, c_void_p, c_int),
    "SSL_CTX_ctrl": (c_long, c_void_p, c_int, c_long, c_void_p),
    "SSL_CTX_get_cert_store": (c_void_p, c_void_p),
    "X509_CRL_free": (None, c_void_p),
    "X509_CRL_verify": (c_int, c_void_p, c_void_p),
    "X509_STORE_CTX_get0_chain": (c_void_p, c_void_p),
    "X509_STORE_CTX_get0_untrusted": (c_void_p, c_void_p),
    "X509_STORE_CTX_get1_crls": (c_void_p, c_void_p, c_void_p),
    "X509_STORE_CTX_get1_issuer": (c_int, c_void_p, c_void_p, c_void_p),
    "X509_STORE_CTX_get_error_depth": (c_int, c_void_p),
    "X509_STORE_CTX_get_ex_data": (c_void_p, c_void_p, c_int),
    "X509_STORE_CTX_set_ex_data": (c_int, c_void_p, c_int, c_void_p),
    "X509_STORE_set_check_issued": (None, c_void_p, c_void_p),
    "X509_STORE_set_lookup_crls": (None, c_void_p, c_void_p),
    "X509_check_issued": (c_int, c_void_p, c_void_p),
    "X509_free": (None, c_void_p),
    "X509_get0_pubkey": (c_void_p, c_void_p),
    "X509_get_X509_PUBKEY": (c_void_p, c_void_p),
    "X509_verify": (c_int, c_void_p, c_void_p),
    "i2d_X509_PUBKEY": (c_int, c_void_p, c_void_p),
}
"""The result and the arguments of each function. OpenSSL 1.1.1 and 3 have all of them."""

_CREATED: Final = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_int, c_long, c_void_p)
"""`CRYPTO_EX_new`: takes the new object first."""

_IS_ISSUER: Final = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
"""`X509_STORE_CTX_check_issued_fn`: takes the search, a certificate, and a candidate for its issuer."""

_CRLS_OF: Final = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p)
"""`X509_STORE_CTX_lookup_crls_fn`: takes the search and the issuer's name."""


class _Functions:
    """The functions of the library that `ssl` uses, and the callbacks of its contexts.

    The constructor raises `AttributeError` or `OSError` if the library hides them.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(getattr(_ssl, "__file__", None))
        self.call: Final[dict[str, Callable[..., int]]] = {}
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
            self.call[name] = function
        self._created: Final = threading.local()
        # OpenSSL keeps pointers to these until the process ends
        self._on_creation: Final = _CREATED(self._note)
        self._check_issued: Final = _IS_ISSUER(self._is_issuer)
        self._lookup_crls: Final = _CRLS_OF(self._crls_of)
        index_of = self.call["CRYPTO_get_ex_new_index"]
        index_of(_EX_INDEX_SSL_CTX, 0, None, ctypes.cast(self._on_creation, c_void_p), None, None)
        self._verified: Final = index_of(_EX_INDEX_X509_STORE_CTX, 0, None, None, None, None)

    def new_context(self, protocol: int) -> ssl.SSLContext:
        vars(self._created).clear()
        context = ssl.SSLContext(protocol)
        # a missing address raises KeyError; it is never the address of another context
        address = vars(self._created).pop("address")
        self.call["SSL_CTX_ctrl"](address, _SET_SESSION_CACHE_MODE, _SESSION_CACHE_OFF, None)
        store = self.call["SSL_CTX_get_cert_store"](address)
        self.call["X509_STORE_set_check_issued"](store, self._check_issued)
        self.call["X509_STORE_set_lookup_crls"](store, self._lookup_crls)
        return context

    # OpenSSL calls these; if one raises, ctypes prints the error and returns 0, which means no issuer and no
    # list

    def _note(self, created: int, *_rest: object) -> None:
        self._created.address = created

    def _is_issuer(self, search: int, certificate: int, candidate: int) -> int:
        sent = self._sent(search)
        is_sent = candidate in sent
        cost = self._cost(candidate) if is_sent else 1
        if len(sent) > SENT_MAX or not self._has_issued(search, candidate, certificate, cost):
            return 0
        if not is_sent:
            # the candidate is trusted; OpenSSL holds the lock of the store, so this callback must not search
            # the store
            return 1
        rivals = [each for each in sent if each != candidate and self._may_issue(each, certificate)]
        return int(not rivals or self._leads_to_trust(search, candidate, sent - {candidate}))

    def _leads_to_trust(self, search: int, certificate: int, sent: frozenset[int]) -> bool:
        """Return whether a certificate has a trusted issuer, directly or through certificates of the peer.

        OpenSSL does not backtrack to a certificate with the same key under another authority.
        """
        issuer = c_void_p()
        if self.call["X509_STORE_CTX_get1_issuer"](ctypes.byref(issuer), search, certificate) == 1:
            self.call["X509_free"](issuer)
            return True
        return any(
            self._has_issued(search, each, certificate, self._cost(each))
            and self._leads_to_trust(search, each, sent - {each})
            for each in sent
        )

    def _has_issued(self, search: int, candidate: int, certificate: int, cost: int) -> bool:
        if not self._may_issue(candidate, certificate):
            return False
        verified = (self.call["X509_STORE_CTX_get_ex_data"](search, self._verified) or 0) + cost
        if verified > SIGNATURES_MAX:
            return False
        self.call["X509_STORE_CTX_set_ex_data"](search, self._verified, verified)
        return self._is_signed("X509_verify", certificate, candidate)

    def _cost(self, sent: int) -> int:
        """Return the cost of one signature by this key, in signatures; the peer chose the key."""
        size_bytes = self.call["i2d_X509_PUBKEY"](self.call["X509_get_X509_PUBKEY"](sent), None)
        return 1 + (size_bytes // CHEAP_KEY_BYTES) ** 2

    def _may_issue(self, candidate: int, certificate: int) -> bool:
        return self.call["X509_check_issued"](candidate, certificate) == _IS_POSSIBLE

    def _sent(self, search: int) -> frozenset[int]:
        """Return the certificates of the peer, up to one more than it may send."""
        stack = self.call["X509_STORE_CTX_get0_untrusted"](search)
        count = min(self.call["OPENSSL_sk_num"](stack), SENT_MAX + 1)
        return frozenset(self.call["OPENSSL_sk_value"](stack, index) for index in range(count))

    def _crls_of(self, search: int, name: int) -> int:
        lists = self.call["X509_STORE_CTX_get1_crls"](search, name)
        chain = self.call["X509_STORE_CTX_get0_chain"](search)
        depth = self.call["X509_STORE_CTX_get_error_depth"](search)
        above = min(depth + 1, self.call["OPENSSL_sk_num"](chain) - 1)
        issuer = self.call["OPENSSL_sk_value"](chain, above)
        for index in reversed(range(self.call["OPENSSL_sk_num"](lists))):
            if not self._is_signed("X509_CRL_verify", self.call["OPENSSL_sk_value"](lists, index), issuer):
                self.call["X509_CRL_free"](self.call["OPENSSL_sk_delete"](lists, index))
        return lists

    def _is_signed(self, verify: str, signed: int, issuer: int) -> bool:
        # an error left in the thread's queue would make Python's next call fail
        self.call["ERR_set_mark"]()
        try:
            return self.call[verify](signed, self.call["X509_get0_pubkey"](issuer)) == 1
        finally:
            self.call["ERR_pop_to_mark"]()


def _loaded() -> _Functions | None:
    try:
        return _Functions()
    except (AttributeError, OSError):
        return None


_FUNCTIONS: Final = _loaded()
"""One object per process, created by one thread: OpenSSL never unregisters callbacks."""


def is_reachable() -> bool:
    """Return whether OpenSSL's functions are accessible; a static OpenSSL may hide them."""
    return _FUNCTIONS is not None


def new_context(protocol: int) -> ssl.SSLContext:
    """Return a new context that finds issuers by signature and caches no sessions.

    If the functions are hidden, return Python's unmodified context.
    """
    return ssl.SSLContext(protocol) if _FUNCTIONS is None else _FUNCTIONS.new_context(protocol)
