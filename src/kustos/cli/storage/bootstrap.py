"""What `storage format` puts in at the start: features, users and ACLs, from their text forms."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    AclValueError,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.cli.failures import CommandError, usage_error
from kustos.cli.passwords import read_password
from kustos.metadata.features import (
    DEFAULT_LEVEL,
    METADATA_VERSION_FEATURE,
    METADATA_VERSION_NAMES,
    metadata_version_level,
)
from kustos.metadata.format import ScramUser
from kustos.metadata.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism, scram_credential
from kustos.runtime import SystemEntropy, random_text

MAX_ACL_FILE_BYTES: Final = 64 * 1024 * 1024
"""Some 300,000 ACLs; the bootstrap is built in memory."""

_SCRAM: Final = re.compile(r"\s*(?P<mechanism>[A-Za-z0-9-]+)\s*=\s*\[(?P<fields>.*)\]\s*", re.DOTALL)
_FIELD: Final = re.compile(r'\s*([a-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*?))\s*(?:,|$)')
_SCRAM_FIELDS: Final = frozenset({"name", "iterations", "password-file", "password-env"})
_ACL_FIELDS: Final = frozenset(
    {
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    }
)


def metadata_level(features: Sequence[str], release_version: str | None) -> int:
    """Return the level of metadata.version that the arguments ask for, the default without any."""
    asked = [] if release_version is None else [release_version]
    for text in features:
        name, equals, level = text.partition("=")
        if name.strip() != METADATA_VERSION_FEATURE or not equals:
            raise usage_error(f"`--feature {text}` is not known, only `{METADATA_VERSION_FEATURE}=LEVEL` is")
        asked.append(level.strip())
    if not asked:
        return DEFAULT_LEVEL
    if len(asked) > 1:
        raise usage_error("give metadata.version once, by `--feature` or by `--release-version`")
    text = asked[0]
    found = int(text) if text.isascii() and text.isdigit() else metadata_version_level(text)
    if found not in METADATA_VERSION_NAMES:
        names = list(METADATA_VERSION_NAMES.values())
        raise usage_error(f"`{text}` is no metadata.version, use one from {names[0]} to {names[-1]}")
    return found


def scram_users(texts: Sequence[str]) -> list[ScramUser]:
    """Return the users of `--add-scram`; passwords come from a file, the environment or a prompt."""
    users = [_scram_user(text) for text in texts]
    keys = [(user.name, user.mechanism) for user in users]
    if len(set(keys)) < len(keys):
        raise usage_error("`--add-scram` names a user twice with the same mechanism")
    return users


def _scram_user(text: str) -> ScramUser:
    match = _SCRAM.fullmatch(text)
    if match is None:
        # the text is not shown: it may hold a password after all
        raise usage_error("an `--add-scram` is not written as `SCRAM-SHA-256=[name=alice]`")
    mechanism = ScramMechanism.from_name(match["mechanism"].upper())
    if mechanism is None:
        raise usage_error(f"`{match['mechanism']}` is no SCRAM mechanism, use SCRAM-SHA-256 or SCRAM-SHA-512")
    fields = _scram_fields(match["fields"])
    name = fields.get("name", "")
    if not name:
        raise usage_error("an `--add-scram` has no `name=`")
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
    salt = random_text(SystemEntropy()).encode()
    return ScramUser(name, mechanism, scram_credential(mechanism, password, salt, iterations))


def _scram_fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _FIELD.match(text, position)
        if match is None:
            raise usage_error("an `--add-scram` is not written as `name=value` pairs with commas between")
        name, quoted, bare = match.groups()
        if name in {"password", "saltedpassword", "salt"}:
            raise usage_error(
                f"`{name}=` is not taken as an argument, which every process of the machine could read; "
                "use `password-file=`, `password-env=`, or leave it out to be asked"
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


def read_acls(path: Path) -> list[AclBinding]:
    """Return the ACLs of a file: JSON lines, or one document `{"acls": [...]}`; each once, in order."""
    try:
        if path.stat().st_size > MAX_ACL_FILE_BYTES:
            raise usage_error(f"the ACL file `{path}` is larger than {MAX_ACL_FILE_BYTES} bytes")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "it is unreadable").lower()
        raise usage_error(f"cannot read the ACL file `{path}`: {reason}") from error
    except UnicodeDecodeError:
        raise usage_error(f"the ACL file `{path}` is not UTF-8 text") from None
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, dict) and isinstance(whole.get("acls"), list):
        numbered = [(f"ACL {number}", item) for number, item in enumerate(whole["acls"], start=1)]
    else:
        numbered = _json_lines(path, text)
    return list(dict.fromkeys(_binding(path, where, item) for where, item in numbered))


def _json_lines(path: Path, text: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                found.append((f"line {number}", json.loads(line)))
            except ValueError:
                raise usage_error(f"line {number} of the ACL file `{path}` is not JSON") from None
    return found


def _binding(path: Path, where: str, item: Any) -> AclBinding:
    try:
        return binding_of_document(item)
    except (AclValueError, CommandError) as error:
        raise usage_error(f"{where} of the ACL file `{path}`: {error}") from None


def binding_of_document(item: Any) -> AclBinding:
    """Return the binding of an object as `acls list -o json` prints it; raise a usage error."""
    if not isinstance(item, dict) or any(not isinstance(value, str) for value in item.values()):
        raise usage_error("an ACL is an object whose values are texts")
    missing, extra = _ACL_FIELDS - item.keys(), item.keys() - _ACL_FIELDS
    if missing or extra:
        wrong = f"lacks `{min(missing)}`" if missing else f"has the unknown field `{min(extra)}`"
        raise usage_error(f"an ACL {wrong}")
    KafkaPrincipal.parse(item["principal"])
    enums = {
        "resource_type": ResourceType.from_text(item["resource_type"]),
        "pattern_type": PatternType.from_text(item["pattern_type"]),
        "operation": AclOperation.from_text(item["operation"]),
        "permission_type": AclPermissionType.from_text(item["permission_type"]),
    }
    for name, value in enums.items():
        if value == 0:
            raise usage_error(f"`{item[name]}` is no {name.replace('_', ' ')}")
    return AclBinding(
        ResourcePattern(
            ResourceType(enums["resource_type"]), item["resource_name"], PatternType(enums["pattern_type"])
        ),
        AccessControlEntry(
            item["principal"],
            item["host"],
            AclOperation(enums["operation"]),
            AclPermissionType(enums["permission_type"]),
        ),
    )
