"""Values kept elsewhere: `${env:NAME}`, `${file:/path}` and `${file:/path:key}`.

The syntax comes from Kafka's `ConfigProvider`s (KIP-297), without `config.providers`. References are resolved
once, so a secret is never parsed for further references. Errors name the variable or the file, never its
content.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.client import SettingsError, read_properties

MAX_SECRET_FILE_BYTES: Final = 64 * 1024
"""The maximum size: passwords, keys and JAAS texts are far smaller, so a larger file is a mistake."""

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z][A-Za-z0-9_.-]*):([^}:]*)(?::([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class References:
    """Resolves references in values, from this environment and the file system."""

    environment: Mapping[str, str]

    def resolve(self, value: str) -> str:
        """Return the value with every reference replaced; raise `SettingsError` if one cannot be resolved."""
        return _REFERENCE.sub(self._replacement, value)

    def _replacement(self, match: re.Match[str]) -> str:
        provider, place, key = match.groups()
        if provider == "env" and key is None:
            return self._from_environment(place)
        if provider == "file" and "\0" in place:
            raise SettingsError("a file name contains a NUL character")
        if provider == "file":
            return _from_file(Path(place)) if key is None else _from_properties(Path(place), key)
        raise SettingsError(
            f"`${{{provider}:...}}` is not a reference, write `${{env:NAME}}`, `${{file:/path}}` or "
            "`${file:/path:key}`"
        )

    def _from_environment(self, name: str) -> str:
        value = self.environment.get(name)
        if value is None:
            raise SettingsError(f"the environment variable `{name}` is not set, set it for this process")
        return value


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_FILE_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "it is unreadable").lower()
        raise SettingsError(f"cannot read the file `{path}`: {reason}") from None
    if len(content) > MAX_SECRET_FILE_BYTES:
        raise SettingsError(f"the file `{path}` is larger than {MAX_SECRET_FILE_BYTES} bytes")
    try:
        # editors and `echo` end a file with a line feed, which is not part of a password
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise SettingsError(f"the file `{path}` is not UTF-8 text") from None


def _from_properties(path: Path, key: str) -> str:
    value = read_properties(path).get(key)
    if value is None:
        raise SettingsError(f"the file `{path}` has no key `{key}`")
    return value
