"""The two broker settings that affect decisions in addition to the ACLs, and where they come from.

They come from the source of the ACLs: a running kustos node shows them to principals that may describe its
configs; a metadata log holds those changed while the node ran. The node's properties file (`--config`)
supplies the rest, and options override everything. Kafka's brokers name `super.users` but hide its value.
An unknown setting has Kafka's default in every answer, and the answer says so.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kustos.cli.failures import usage_error
from kustos.cli.output import OutputFormat, print_notice

if TYPE_CHECKING:
    from kustos.analysis import Rules
    from kustos.client.admin import AdminClient

SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
AUTHORIZER: Final = "authorizer.class.name"
MODE: Final = "kustos.authorization.mode"
NAMES: Final = (SUPER_USERS, ALLOW_EVERYONE)

ANY_BROKER: Final = "0"
"""The broker id to query: a kustos node answers for itself under any id, and Kafka's brokers show these
settings under none."""

OPTIONS: Final = "the options"


@dataclass(frozen=True, slots=True)
class LearntSetting:
    """The text of a setting, and its source."""

    text: str
    by: str


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The known settings, by name; `unknown` says where or why the others are unknown."""

    known: Mapping[str, LearntSetting] = field(default_factory=dict)
    unknown: str = ""

    @classmethod
    def of(cls, texts: Mapping[str, str], by: str, unknown: str = "") -> "BrokerSettings":
        """Return the settings from one source."""
        return cls({name: LearntSetting(texts[name], by) for name in NAMES if name in texts}, unknown)

    def over(self, other: "BrokerSettings") -> "BrokerSettings":
        """Return these settings, completed from another source."""
        return BrokerSettings({**other.known, **self.known}, self.unknown or other.unknown)

    @property
    def missing(self) -> list[str]:
        """The settings that no source gave."""
        return [name for name in NAMES if name not in self.known]

    def rules(self) -> "Rules":
        """Return the rules, Kafka's defaults for missing settings. Raises a usage error for a bad value."""
        from kustos.analysis import Rules
        from kustos.authorizer import parse_super_users

        return Rules(
            super_users=parse_super_users(self._text(SUPER_USERS)),
            allow_everyone_if_no_acl_found=_boolean(self._text(ALLOW_EVERYONE)),
        )

    def _text(self, name: str) -> str:
        setting = self.known.get(name)
        return "" if setting is None else setting.text

    def note(self) -> str | None:
        """Return the line that names the unknown settings, None if all are known."""
        missing = self.missing
        if not missing:
            return None
        defaults = {SUPER_USERS: "none", ALLOW_EVERYONE: "false"}
        values = " and ".join(defaults[name] for name in missing)
        options = "--super-users or --config" if SUPER_USERS in missing else "--config"
        verb = "is" if len(missing) == 1 else "are"
        return f"{' and '.join(missing)} {verb} unknown {self.unknown}; assuming {values} (set {options})"

    def to_json(self) -> dict[str, Any]:
        """Return each setting with its value, whether it is `known`, and its source or why it has none."""
        rules = self.rules()
        values: dict[str, Any] = {
            SUPER_USERS: sorted(rules.super_users),
            ALLOW_EVERYONE: rules.allow_everyone_if_no_acl_found,
        }
        return {
            name: {
                "value": value,
                "known": name in self.known,
                "from": self.known[name].by if name in self.known else f"unknown {self.unknown}",
            }
            for name, value in values.items()
        }


@dataclass(frozen=True, slots=True)
class SettingOptions:
    """The two settings from the options, None if not given; `config` is a node's properties file."""

    super_users: str | None = None
    allow_everyone: bool | None = None
    config: Path | None = None

    @property
    def has_both(self) -> bool:
        """Whether the options give both settings, so that no other source is needed."""
        return self.super_users is not None and self.allow_everyone is not None

    def complete(self, source: BrokerSettings) -> BrokerSettings:
        """Return the settings in force: from these options, else the source of the ACLs, else the file."""
        texts = {} if self.super_users is None else {SUPER_USERS: self.super_users}
        if self.allow_everyone is not None:
            texts[ALLOW_EVERYONE] = str(self.allow_everyone).lower()
        known = BrokerSettings.of(texts, OPTIONS).over(source)
        if self.config is None:
            return known
        of_file = _of_file(self.config)
        # prefer the file's reason: the user named that file
        return replace(known.over(of_file), unknown=of_file.unknown or known.unknown)


def shared(one: BrokerSettings, other: BrokerSettings) -> tuple[BrokerSettings, BrokerSettings]:
    """Return the settings of two sets of ACLs for one cluster: each completes the other."""
    return one.over(replace(other, unknown="")), other.over(replace(one, unknown=""))


def _of_file(path: Path) -> BrokerSettings:
    """Return the settings of a properties file, with defaults for missing keys. Raises `SettingsError`."""
    from kustos.client import SettingsError, read_properties
    from kustos.server.settings import References

    properties = read_properties(path)
    references = References(os.environ)
    texts = {}
    for name, default in ((SUPER_USERS, ""), (ALLOW_EVERYONE, "false"), (AUTHORIZER, ""), (MODE, "enforce")):
        try:
            texts[name] = references.resolve(properties.get(name, default)).strip()
        except SettingsError as error:
            raise SettingsError(f"`{path}`: `{name}`: {error}") from None
    if texts[MODE] == "off":
        return BrokerSettings(unknown=f"because {path} sets {MODE}=off, which authorizes nothing")
    other = _other_authorizer(texts[AUTHORIZER])
    if other is not None:
        return BrokerSettings(unknown=f"because {path} names {other}")
    return BrokerSettings.of(texts, str(path))


def _other_authorizer(name: str | None) -> str | None:
    """Return a description of the authorizer, None for Kafka's StandardAuthorizer, whose rules we apply."""
    from kustos.server.settings import STANDARD_AUTHORIZER_NAMES

    return f"another authorizer, `{name}`" if name and name not in STANDARD_AUTHORIZER_NAMES else None


def of_log(path: Path, texts: Mapping[str, str] | None) -> BrokerSettings:
    """Return the settings of a metadata log; `texts` is None if no kustos node takes settings from it."""
    if texts is None:
        return BrokerSettings(unknown=f"for {path}, since brokers keep them in their properties files")
    return BrokerSettings.of(
        texts, f"the log in {path}", f"for {path}, whose log holds only settings changed at run time"
    )


async def of_cluster(admin: "AdminClient", servers: str) -> BrokerSettings:
    """Return the settings of a running node; a kustos node shows them with DESCRIBE_CONFIGS."""
    from kustos.client import ClientError, KafkaError

    try:
        found = await admin.describe_broker_configs(ANY_BROKER, (*NAMES, AUTHORIZER))
    except KafkaError as error:
        if error.is_authorization_failure:
            return BrokerSettings(unknown="without the permission DESCRIBE_CONFIGS on the cluster")
        return BrokerSettings(unknown=f"because the cluster at {servers} does not show them")
    except ClientError as error:
        return BrokerSettings(unknown=f"because the cluster at {servers} did not show them ({error})")
    other = _other_authorizer(found.get(AUTHORIZER))
    if other is not None:
        return BrokerSettings(unknown=f"because the cluster at {servers} has {other}")
    texts = {name: text for name, text in found.items() if text is not None}
    cluster = f"the cluster at {servers}"
    return BrokerSettings.of(texts, cluster, f"because {cluster} does not show it")


def report_unknown(output: OutputFormat, *settings: BrokerSettings) -> None:
    """Report unknown settings on standard error, one line each; a document has them as a field."""
    if not output.is_document:
        for note in dict.fromkeys([note for each in settings if (note := each.note()) is not None]):
            print_notice("note", note)


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in {"true", "false", ""}:
        raise usage_error(f"`{ALLOW_EVERYONE}` is `{text}`, use `true` or `false`")
    return word == "true"
