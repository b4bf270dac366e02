"""Initial features and users of `storage format`, from their text forms."""

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kustos.cli.failures import usage_error
from kustos.cli.passwords import read_password, require_user_name
from kustos.metadata import (
    DEFAULT_LEVEL,
    MAX_ITERATIONS,
    METADATA_VERSION_FEATURE,
    METADATA_VERSION_NAMES,
    MIN_ITERATIONS,
    ScramMechanism,
    metadata_version_level,
    scram_credential,
)
from kustos.metadata.directory import InitialScramUser
from kustos.runtime import SystemEntropy, random_text

_SCRAM: Final = re.compile(r"\s*(?P<mechanism>[A-Za-z0-9-]+)\s*=\s*\[(?P<fields>.*)\]\s*", re.DOTALL)
_FIELD: Final = re.compile(r'\s*([a-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*?))\s*(?:,|$)')
_SCRAM_FIELDS: Final = frozenset({"name", "iterations", "salt", "password-file", "password-env"})


def metadata_level(features: Sequence[str], release_version: str | None) -> int:
    """Return the requested level of metadata.version, by default the default level."""
    levels = [] if release_version is None else [release_version]
    for text in features:
        name, equals, level = text.partition("=")
        if name.strip() != METADATA_VERSION_FEATURE or not equals:
            raise usage_error(f"`--feature {text}` is not known, only `{METADATA_VERSION_FEATURE}=LEVEL` is")
        levels.append(level.strip())
    if not levels:
        return DEFAULT_LEVEL
    if len(levels) > 1:
        raise usage_error("give metadata.version once, by `--feature` or by `--release-version`")
    text = levels[0]
    found = int(text) if text.isascii() and text.isdigit() else metadata_version_level(text)
    if found not in METADATA_VERSION_NAMES:
        names = list(METADATA_VERSION_NAMES.values())
        raise usage_error(f"`{text}` is not a metadata.version, use one from {names[0]} to {names[-1]}")
    return found


def scram_users(texts: Sequence[str]) -> list[InitialScramUser]:
    """Return the users of `--add-scram`; passwords come from a file, the environment or a prompt."""
    users = [_scram_user(text) for text in texts]
    keys = [(user.name, user.mechanism) for user in users]
    if len(set(keys)) < len(keys):
        raise usage_error("`--add-scram` names a user twice with the same mechanism")
    return users


def _scram_user(text: str) -> InitialScramUser:
    match = _SCRAM.fullmatch(text)
    if match is None:
        # do not show the text: it may hold a password after all
        raise usage_error("an `--add-scram` is not written as `SCRAM-SHA-256=[name=alice]`")
    mechanism = ScramMechanism.from_name(match["mechanism"].upper())
    if mechanism is None:
        raise usage_error(
            f"`{match['mechanism']}` is not a SCRAM mechanism, use SCRAM-SHA-256 or SCRAM-SHA-512"
        )
    fields = _scram_fields(match["fields"])
    name = fields.get("name", "")
    if not name:
        raise usage_error("an `--add-scram` has no `name=`")
    require_user_name(name)
    iterations_text = fields.get("iterations", str(MIN_ITERATIONS))
    iterations = int(iterations_text) if re.fullmatch(r"[0-9]{1,6}", iterations_text) else 0
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise usage_error(
            f"`iterations={iterations_text}` of user `{name}` is outside {MIN_ITERATIONS}..{MAX_ITERATIONS}"
        )
    file = fields.get("password-file")
    password = read_password(
        f"password of `{name}`", Path(file) if file else None, fields.get("password-env")
    )
    salt = _salt(fields["salt"]) if "salt" in fields else random_text(SystemEntropy()).encode()
    return InitialScramUser(name, mechanism, scram_credential(mechanism, password, salt, iterations))


def _salt(text: str) -> bytes:
    """Return the salt of a text in Base64, which is no secret: each login shows it."""
    try:
        salt = base64.b64decode(text, validate=True)
    except ValueError:
        salt = b""
    if not salt:
        raise usage_error(f"`salt={text}` of an `--add-scram` is not Base64")
    return salt


def _scram_fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _FIELD.match(text, position)
        if match is None:
            raise usage_error("an `--add-scram` is not written as `name=value` pairs with commas between")
        name, quoted, bare = match.groups()
        if name in {"password", "saltedpassword"}:
            raise usage_error(
                f"`{name}=` is refused in an argument, which every process of the machine could read; "
                "use `password-file=`, `password-env=`, or leave it out for a prompt"
            )
        if name not in _SCRAM_FIELDS:
            raise usage_error(
                f"`{name}=` is not known in `--add-scram`, use {', '.join(sorted(_SCRAM_FIELDS))}"
            )
        if name in fields:
            raise usage_error(f"`{name}=` is given twice in an `--add-scram`")
        fields[name] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare
        position = match.end()
    return fields
