"""Least privilege of all principals: the table `recommendations` of the table `audit_rollup`.

Its ACLs also as texts: YAML that `kustos acls` reads, and commands of Kafka's own tool.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kustos.acl.forms import AclAction, AclForm, binding_of_texts, kafka_acls_commands, write_acls
from kustos.pipeline.deciding import AclsInForce, ShippedAcls, ship
from kustos.pipeline.deciding.acl_set import parts_of_content
from kustos.pipeline.privilege.ceiling import Ceiling
from kustos.pipeline.privilege.group import RECOMMENDED, solved_group
from kustos.pipeline.privilege.group_rows import GROUP, GROUP_ACCESSES, grouped_rows
from kustos.pipeline.privilege.legitimate import EVERY_USE, Legitimate, distinct_accesses, known_names
from kustos.pipeline.privilege.options import DEFAULT_OPTIONS, PrivilegeOptions
from kustos.pipeline.privilege.values import RecommendedAcl
from kustos.pipeline.queries.record import RecordCoverage
from kustos.pipeline.schemas import RECOMMENDATIONS_SCHEMA
from kustos.pipeline.worker_cache import kept_in_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CEILINGS_MAX: Final = 1
"""Kept in a process: a query has one, of today's ACLs."""

_YAML_HEAD = "acls:\n"


def recommend(
    rollup: "DataFrame",
    options: PrivilegeOptions = DEFAULT_OPTIONS,
    legitimate: Legitimate = EVERY_USE,
    *,
    names: "DataFrame | None" = None,
    within: AclsInForce | None = None,
    group_accesses: int = GROUP_ACCESSES,
) -> "DataFrame":
    """Return the table `recommendations`: for each principal the cheapest ACLs for all that it needs.

    They allow nothing that was denied to it. `names` (`resource_type`, `resource_name`) are the known names
    by which over-grant is counted; without them those of the roll-up (see `known_names`). With `within`,
    today's ACLs, nothing is granted that they do not allow.
    """
    known = (
        known_names(rollup) if names is None else names.select("resource_type", "resource_name").distinct()
    )
    accesses = distinct_accesses(rollup, legitimate)
    return recommend_for(accesses, known, options, within=within, group_accesses=group_accesses)


def recommend_for(
    accesses: "DataFrame",
    names: "DataFrame",
    options: PrivilegeOptions = DEFAULT_OPTIONS,
    *,
    within: AclsInForce | None = None,
    group_accesses: int = GROUP_ACCESSES,
) -> "DataFrame":
    """Return the same for `distinct_accesses` and known names, each of them once."""

    shipped = None if within is None else ship(accesses.sparkSession, within)

    def solve(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        principal = key[0].as_py() or ""
        ceiling = None if shipped is None else _ceiling_of(shipped).of_principal(principal)
        yield solved_group(principal, batches, options, ceiling=ceiling)

    rows = grouped_rows(accesses, names, options, group_accesses=group_accesses)
    return rows.groupBy(*GROUP).applyInArrow(solve, RECOMMENDATIONS_SCHEMA)


@kept_in_worker(CEILINGS_MAX, key=lambda shipped: shipped.digest)
def _ceiling_of(shipped: ShippedAcls) -> Ceiling:
    bindings, super_users, default = parts_of_content(shipped.name, shipped.content(), shipped.digest)
    return Ceiling(bindings, super_users, allow_everyone_if_no_acl_found=default)


def recommended_acls(recommendations: "DataFrame") -> list[RecommendedAcl]:
    """Return the recommended ACLs with their reasons, in order; an action, which collects them."""
    table = recommendations.filter(f"outcome = '{RECOMMENDED}'").toArrow()
    return sorted([_acl(row) for row in table.to_pylist()], key=_order)


def _acl(row: Mapping[str, Any]) -> RecommendedAcl:
    return RecommendedAcl(
        binding=binding_of_texts(row),
        access_count=row["access_count"],
        event_count=row["event_count"],
        name_count=row["name_count"],
        known_count=row["known_count"],
        over_grant_count=row["over_grant_count"],
        host_count=row["host_count"],
        examples=tuple(row["examples"]),
        reason=row["reason"],
    )


def _order(acl: RecommendedAcl) -> tuple[Any, ...]:
    pattern, entry = acl.binding.pattern, acl.binding.entry
    resource = (pattern.resource_type, pattern.name, pattern.pattern_type)
    return (entry.principal, *resource, entry.permission_type, entry.operation, entry.host)


def recommended_yaml(acls: Iterable[RecommendedAcl], record: RecordCoverage | None = None) -> str:
    """Return a YAML text of the ACLs, each below a comment with its reason.

    It begins with what the `record` covers. `read_acls` reads it, and so does every command that takes ACLs.
    Raises `AclFormatError` for an ACL that could not be read back.
    """
    head = "".join(_record_lines(record))
    parts: list[str] = []
    for acl in acls:
        # reasons are sentences of our own with numbers in them: no recorded name gets into a comment
        item = write_acls([acl.binding], AclForm.YAML).removeprefix(_YAML_HEAD)
        parts.append(f"  # {acl.reason}\n{item}")
    return head + (_YAML_HEAD + "".join(parts) if parts else "acls: []\n")


def _record_lines(record: RecordCoverage | None) -> list[str]:
    """Return comments with what the record covers: numbers and dates, in YAML and in a shell alike."""
    return [] if record is None else [f"# the record: {record.text()}\n"]


def recommended_commands(
    acls: Iterable[RecommendedAcl],
    record: RecordCoverage | None = None,
    *,
    bootstrap_server: str = "$BOOTSTRAP_SERVER",
    command_config: str | None = None,
) -> list[str]:
    """Return a `kafka-acls.sh --add` command for each ACL, quoted for a POSIX shell.

    The first line is a comment with what the `record` covers. Raises `AclFormatError` for a name that the
    tool cannot take; the YAML can hold it.
    """
    bindings = [acl.binding for acl in acls]
    commands = kafka_acls_commands(
        bindings, AclAction.ADD, bootstrap_server=bootstrap_server, command_config=command_config
    )
    return [*map(str.rstrip, _record_lines(record)), *commands]
