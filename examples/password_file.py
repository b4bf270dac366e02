"""A callback handler of your own: the passwords of PLAIN are in a file, as hashes, and may change.

Each line is `user:salt:hash`, salt and hash in hexadecimal; the hash is scrypt's with n=16384, r=8, p=1.

    listener.name.clients.plain.sasl.server.callback.handler.class=password_file.PasswordFile
    passwords.file=/etc/kustos/passwords

`python password_file.py alice` asks for a password and prints the line of a user.
"""

import getpass
import hashlib
import hmac
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from kustos.auth import PlainServerCallbackHandler

SALT_BYTES = 16
NO_USER = (bytes(SALT_BYTES), bytes(64))
"""What a password is compared with for an unknown user, so that the answer takes as long."""


def hash_of(password: str, salt: bytes) -> bytes:
    """Return the hash of a password; it takes some 50 ms and 16 MiB, which slows a thief of the file."""
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)


class PasswordFile(PlainServerCallbackHandler):
    """Reads the file again for each login: a user removed from it can no longer log in."""

    def configure(self, configs: Mapping[str, str], mechanism: str, options: Mapping[str, str]) -> None:
        """Find the file; what is raised keeps the node from starting."""
        self._file = Path(configs["passwords.file"])
        self._users()

    def authenticate(self, username: str, password: str) -> bool:
        """Return whether this is the user's password; it runs in a thread, so it may read files."""
        salt, expected = self._users().get(username, NO_USER)
        return hmac.compare_digest(hash_of(password, salt), expected)

    def _users(self) -> dict[str, tuple[bytes, bytes]]:
        lines = (line.split(":") for line in self._file.read_text(encoding="utf-8").splitlines())
        return {user: (bytes.fromhex(salt), bytes.fromhex(hashed)) for user, salt, hashed in lines}


if __name__ == "__main__":
    own_salt = os.urandom(SALT_BYTES)
    print(f"{sys.argv[1]}:{own_salt.hex()}:{hash_of(getpass.getpass(), own_salt).hex()}")
