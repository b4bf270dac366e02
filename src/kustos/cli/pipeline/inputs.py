"""Inputs of the pipeline's commands: the tables, the ACLs, and a period of days."""

import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kustos.cli.failures import usage_error

if TYPE_CHECKING:
    from kustos.cli.acl_source import AclSource
    from kustos.pipeline.configuration import AclSettings, PipelineConfiguration
    from kustos.pipeline.deciding import AclsInForce
    from kustos.pipeline.tables import Tables


def acl_set(source: "AclSource", settings: "AclSettings | None") -> "AclsInForce":
    """Return the ACLs of a source, with the broker settings of the configuration.

    Raises the errors of `AclSource.load` and `AclSetError`.
    """
    from kustos.pipeline.deciding import AclsInForce

    brokers: dict[str, Any] = {}
    if settings is not None:
        brokers["super_users"] = settings.super_users
        brokers["allow_everyone_if_no_acl_found"] = settings.allow_everyone_if_no_acl_found
    loaded = source.load()
    return AclsInForce.of(source.text or loaded.name, loaded.bindings, **brokers)


def todays_acls(configuration: "PipelineConfiguration", folder: Path) -> "AclsInForce":
    """Return the ACLs of the configuration; raise a usage error if it has none."""
    from kustos.cli.acl_source import AclSource

    acls = configuration.acls
    if acls is None:
        raise usage_error("the configuration does not say where the ACLs are: set `acls.source`")
    return acl_set(AclSource(text=acls.source, folder=folder, command_config=acls.command_config), acls)


def super_users_of(configuration: "PipelineConfiguration") -> frozenset[str]:
    """Return the super users of the configuration; raise a usage error for an invalid one."""
    from kustos.acl import AclValueError
    from kustos.authorizer import parse_super_users

    text = "" if configuration.acls is None else configuration.acls.super_users
    try:
        return parse_super_users(text)
    except AclValueError as error:
        raise usage_error(f"`acls.super_users` of the configuration: {error}") from None


def acls_then(
    configuration: "PipelineConfiguration", folder: Path, as_of: str | None, moment: datetime
) -> "AclsInForce":
    """Return today's ACLs, or those of a past moment from the configuration's metadata log."""
    if as_of is None:
        return todays_acls(configuration, folder)
    if configuration.metadata is None:
        raise usage_error("a past moment requires the metadata log: set `metadata` in the configuration")
    from kustos.cli.acl_source import AclSource

    at = moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return acl_set(AclSource(text=str(configuration.metadata), moment=at), configuration.acls)


def names_of(path: Path | None) -> frozenset[str] | None:
    """Return the names in a file, one per line; None without a file."""
    if path is None:
        return None
    from kustos.cli.text_files import read_text

    return frozenset(name for line in read_text(str(path)).splitlines() if (name := line.strip()))


def resource_choice(text: str | None) -> dict[str, str | None]:
    """Return type, name and pattern type of `TYPE[:[LITERAL:|PREFIXED:]NAME]`, None where it names none.

    Raises a usage error.
    """
    if text is None:
        return {}
    kind, colon, name = text.partition(":")
    how, second, rest = name.partition(":")
    pattern_type = how if second and how.upper() in {"LITERAL", "PREFIXED"} else None
    if pattern_type is not None:
        name = rest
    elif colon and not name:
        forms = "`TOPIC`, `TOPIC:name` or `TOPIC:PREFIXED:name`"
        raise usage_error(f"`--resource {text}` has no name, use {forms}")
    resource_type = None if kind.upper() == "ANY" else kind
    return {"resource_type": resource_type, "resource_name": name or None, "pattern_type": pattern_type}


def check_writable(*paths: Path | None) -> None:
    """Raise a usage error for a file that cannot be written, before Spark starts."""
    for path in paths:
        if path is None:
            continue
        if not path.exists() and not path.parent.is_dir():
            raise usage_error(f"cannot write `{path}`: the folder `{path.parent}` does not exist, create it")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise usage_error(f"cannot write `{path}`: permission denied, check its permissions")


def tables_of(configuration: "PipelineConfiguration") -> "Tables":
    """Return the tables of the configuration, which need not exist yet."""
    from kustos.pipeline.tables import Tables

    return Tables(configuration.tables.path)


def filled_tables(configuration: "PipelineConfiguration") -> "Tables":
    """Return the tables; raise a usage error if no run has filled them yet."""
    tables = tables_of(configuration)
    if isinstance(tables.folder, Path) and not tables.folder.is_dir():
        raise usage_error(f"there are no tables in `{tables.folder}`, create them with `kustos pipeline run`")
    return tables


def of_cluster(
    configuration: "PipelineConfiguration", cluster: str | None
) -> tuple["PipelineConfiguration", "Tables"]:
    """Return configuration and tables for questions about a cluster, by default the configured or only one.

    Raises a usage error if no run has filled the tables, and `ClusterError`.
    """
    name = configuration.cluster if cluster is None else cluster
    tables = filled_tables(configuration).of_cluster(name, configuration.cluster_ids)
    return configuration.of_cluster(tables.chosen_cluster.name), tables


def day_of(option: str, text: str | None) -> date | None:
    """Return the day of an option; raise a usage error if its text is not a day."""
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise usage_error(f"`{option} {text}` is not a day, write it like `2026-11-03`") from None


def period_of(since: str | None, until: str | None) -> tuple[date | None, date | None]:
    """Return first and last day; raise a usage error unless they are in order."""
    first, last = day_of("--since", since), day_of("--until", until)
    if first is not None and last is not None and last < first:
        raise usage_error(f"`--until {last}` is before `--since {first}`")
    return first, last


def moment_of(option: str, text: str | None) -> datetime:
    """Return the UTC time of an option, now if it is not given; a day means its end.

    Raises a usage error.
    """
    if text is None:
        return datetime.now(UTC)
    try:
        if len(text) == len("2026-11-03"):
            day = date.fromisoformat(text)
            return datetime(day.year, day.month, day.day, 23, 59, 59, 999_000, UTC)
        time = datetime.fromisoformat(text)
    except ValueError:
        message = f"`{option} {text}` is not a time, write `2026-11-03` or `2026-11-03T12:00:00Z`"
        raise usage_error(message) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
