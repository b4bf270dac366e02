"""Errors of TLS settings and stores."""


class TlsError(ValueError):
    """A TLS setting or store cannot be used; the text names the key and the remedy, never a password."""
