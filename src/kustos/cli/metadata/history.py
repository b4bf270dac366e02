"""`kustos metadata history`."""

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kustos.cli.acl_options import PatternTypeName
from kustos.cli.options import (
    Cluster,
    DelegationToken,
    Group,
    IgnoreTornTail,
    Output,
    Topic,
    TransactionalId,
    UserPrincipal,
)
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from uuid import UUID

    from kustos.acl import AclBinding, AclBindingFilter
    from kustos.cli.output import Columns
    from kustos.metadata.inspection import AdminEvent, RequestedBy, Requesters, Timeline

EXAMPLES = """
kustos metadata history /var/lib/kustos/metadata --topic payments
kustos metadata history /var/lib/kustos/metadata \\
    --principal User:alice --audit /var/lib/kustos/audit
kustos metadata history /var/lib/kafka/metadata --topic payments -o json
"""

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a metadata log.")]
Principal = Annotated[
    list[str] | None,
    typer.Option("--principal", metavar="TYPE:NAME", help="Only the ACLs of this principal."),
]
MatchOption = Annotated[
    PatternTypeName,
    typer.Option("--resource-pattern-type", help="How names match, as in `kustos acls list`."),
]
Audit = Annotated[
    list[Path] | None,
    typer.Option(
        "--audit",
        metavar="PATH",
        help="Audit files of kustos (JSON lines), or their directory: they name the requesters.",
    ),
]


def history(
    directory: Directory,
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    transactional_id: TransactionalId = None,
    delegation_token: DelegationToken = None,
    user_principal: UserPrincipal = None,
    resource_pattern_type: MatchOption = PatternTypeName.MATCH,
    principal: Principal = None,
    audit: Audit = None,
    ignore_torn_tail: IgnoreTornTail = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show when ACLs were created and deleted, and by whom.

    Shows the matching ACLs at the beginning of the log, then every creation and deletion that the log still
    has, with offset and time. A name selects all ACLs that apply to it, wildcards and prefixes too. With
    --audit each change names its requester: exactly one if the audit log has the offset of the change,
    otherwise all principals with an allowed request of this kind in the moments before.
    """
    from kustos.acl import KafkaPrincipal, PatternType
    from kustos.cli.acls.arguments import ResourceArguments, filters_to_list
    from kustos.cli.terminal import progress
    from kustos.metadata.inspection import Requesters, Timeline
    from kustos.runtime import FileSystemStorage

    resources = ResourceArguments(
        topics=topic or (),
        groups=group or (),
        cluster=cluster,
        transactional_ids=transactional_id or (),
        delegation_tokens=delegation_token or (),
        user_principals=user_principal or (),
        pattern_type=PatternType.LITERAL if cluster else PatternType.from_text(resource_pattern_type.value),
    )
    principals = {str(KafkaPrincipal.parse(text.strip())) for text in principal or ()}
    filters = filters_to_list(resources)
    with progress(f"reading {directory}"):
        requesters = Requesters(_audit_events(audit)) if audit else None
        timeline = Timeline(directory, FileSystemStorage(), ignore_torn_tail=ignore_torn_tail)
        events = list(_events(timeline, filters, principals, requesters))
    _print(timeline, events, output, with_audit=requesters is not None)


def _events(
    timeline: "Timeline",
    filters: "list[AclBindingFilter]",
    principals: set[str],
    requesters: "Requesters | None",
) -> Iterator[dict[str, Any]]:
    from kustos.metadata.image import AclAdded, AclRemoved
    from kustos.metadata.inspection import RequestedBy

    def is_selected(binding: "AclBinding") -> bool:
        named = not principals or binding.entry.principal in principals
        return named and any(binding_filter.matches(binding) for binding_filter in filters)

    oldest = timeline.oldest()
    for acl_id, binding in oldest.image.acls.items():
        if is_selected(binding):
            yield _event("PRESENT", oldest.image.offset, oldest.time_ms, acl_id, binding, RequestedBy())
    for each in timeline.changes():
        change = each.change
        if not isinstance(change, AclAdded | AclRemoved):
            continue
        requested_by = requesters.of(each) if requesters is not None else RequestedBy()
        if is_selected(change.binding):
            name = "CREATED" if isinstance(change, AclAdded) else "DELETED"
            yield _event(name, each.offset, each.time_ms, change.id, change.binding, requested_by)


def _event(
    change: str,
    offset: int,
    time_ms: int,
    acl_id: "UUID",
    binding: "AclBinding",
    requested_by: "RequestedBy",
) -> dict[str, Any]:
    from kustos.acl.forms import texts_of
    from kustos.metadata.inspection import moment_text
    from kustos.wire import uuid_text

    return {
        "change": change,
        "offset": offset,
        "timestamp": moment_text(time_ms),
        "id": uuid_text(acl_id),
        **texts_of(binding),
        "requesters": [
            {
                "principal": event.principal,
                "host": event.host,
                "client_id": event.client_id,
                "timestamp": moment_text(event.time_ms),
                "acl_offset": event.acl_offset,
                "change_offset": event.change_offset,
                "match": "EXACT" if requested_by.is_exact else "ABOUT",
            }
            for event in requested_by.events
        ],
    }


_WORDS: Final = {"PRESENT": "there", "CREATED": "created", "DELETED": "deleted"}

_Event = dict[str, Any]


def event_columns(*, with_audit: bool) -> "Columns[_Event]":
    """Return the columns of events, with the requesters if audit files were read."""
    from kustos.cli.output import Column, ColumnFormats, Columns, Words

    def text(key: str, shown: ColumnFormats = ColumnFormats.EVERYWHERE) -> Column[_Event]:
        return Column(key, itemgetter(key), shown, title="permission" if key == "permission_type" else "")

    requesters: Column[_Event] = Column(
        "requesters", lambda event: Words(_requested_by(event)), title="requested by"
    )
    return Columns(
        (
            Column("timestamp", itemgetter("timestamp"), title="time"),
            Column("offset", lambda event: str(event["offset"])),
            Column("change", lambda event: _WORDS[event["change"]]),
            Column("id", itemgetter("id"), ColumnFormats.WIDE),
            Column("resource", _resource, ColumnFormats.NARROW),
            *(text(key, ColumnFormats.WIDE) for key in _RESOURCE_FIELDS),
            *(text(key) for key in ("principal", "host", "permission_type", "operation")),
            *([requesters] if with_audit else []),
        ),
        lambda event: (str(event["offset"]),),
        "the offsets of the changes, for `DIR@OFFSET`",
    )


_RESOURCE_FIELDS: Final = ("resource_type", "resource_name", "pattern_type")


def _resource(event: _Event) -> str:
    prefix = " (prefix)" if event["pattern_type"] == "PREFIXED" else ""
    return f"{event['resource_type'].lower().replace('_', ' ')} {event['resource_name']}{prefix}"


def _print(timeline: "Timeline", events: list[_Event], output: OutputFormat, *, with_audit: bool) -> None:
    from kustos.cli.output import print_rows
    from kustos.metadata.inspection import moment_text

    beginning = timeline.beginnings[0]
    reach = _reach(beginning.offset, moment_text(beginning.time_ms), is_first=beginning.is_first)
    print_rows(
        event_columns(with_audit=with_audit),
        events,
        output,
        document=lambda: {
            "since": {
                "offset": beginning.offset - 1,
                "timestamp": moment_text(beginning.time_ms),
                "first": beginning.is_first,
            },
            "changes": events,
        },
        lead=(reach,) if events else (reach, _NOTHING),
        people=lambda: _print_for_people(reach, events, with_audit=with_audit),
    )


_NOTHING: Final = "no matching ACL was there since"


def _reach(offset: int, since: str, *, is_first: bool) -> str:
    if is_first:
        return f"the log is whole since its beginning at {since}"
    return (
        f"the log reaches back to offset {offset - 1}, {since}; no file says when the ACLs that existed then "
        "were created"
    )


def _print_for_people(reach: str, events: list[_Event], *, with_audit: bool) -> None:
    from kustos.cli.output import print_paragraph

    print_paragraph(reach)
    if not events:
        print_paragraph(_NOTHING)
    for event in events:
        prefix = " (prefix)" if event["pattern_type"] == "PREFIXED" else ""
        print_paragraph(
            f"{_WORDS[event['change']]} {event['permission_type']} {event['operation']} to "
            f"{event['principal']} from {event['host']} on {event['resource_type']} "
            f"{event['resource_name']}{prefix}",
            first=f"{event['timestamp']}  offset {event['offset']}  ",
            indent="    ",
        )
        if with_audit and event["change"] != "PRESENT":
            print_paragraph(_requested_by(event), first="    ", indent="      ")


def _requested_by(event: _Event) -> str:
    requesters = event["requesters"]
    if event["change"] == "PRESENT":
        return ""
    if not requesters:
        return "the audit files name no requester"
    names = list(dict.fromkeys(f"{each['principal']} from {each['host']}" for each in requesters))
    match = requesters[0]["match"].lower()
    return ("requested by " if len(names) == 1 else "requested by one of ") + ", ".join(names) + f" ({match})"


def _audit_events(paths: list[Path]) -> "Iterator[AdminEvent]":
    from kustos.cli.failures import usage_error
    from kustos.metadata.inspection import AuditTrailError, admin_events

    for file in audit_files(paths):
        try:
            yield from admin_events(audit_lines([file]))
        except AuditTrailError as error:
            raise usage_error(f"`{file}`: {error}") from error


def audit_files(paths: list[Path]) -> Iterator[Path]:
    """Yield the audit files of JSON lines at these paths, also those being written; raise a usage error."""
    from kustos.cli.failures import usage_error

    for path in paths:
        files = sorted(path.rglob("*audit-*.jsonl")) if path.is_dir() else [path]
        if not files:
            raise usage_error(f"`{path}` holds no audit files (`audit-*.jsonl`)")
        yield from files


def audit_lines(paths: list[Path]) -> Iterator[str]:
    """Yield the lines of the audit files at these paths; raise a usage error, also for a foreign line."""
    from kustos.cli.failures import usage_error
    from kustos.runtime import reason_of

    for file in audit_files(paths):
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                for number, line in enumerate(lines, start=1):
                    if not _may_be_event(line):
                        raise usage_error(
                            f"`{file}`: line {number} is not an audit event, give files of JSON lines as a "
                            "node writes them"
                        )
                    yield line
        except OSError as error:
            raise usage_error(f"cannot read `{file}`: {reason_of(error)}") from error


def _may_be_event(line: str) -> bool:
    """Return whether a line is blank, an event, or a part of one, which a killed node may have left."""
    is_part = not line.endswith("}\n")
    return line.isspace() or (line.startswith("{") and (is_part or '"event_id"' in line))
