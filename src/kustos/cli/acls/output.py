"""Output of ACLs: a table by resource for people, flat objects for programs."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, TypeVar

from kustos.acl import CLUSTER_NAME, AclBinding, AclBindingFilter, ResourceType
from kustos.acl.forms import texts_of
from kustos.cli.output import Column, ColumnFormats, Columns, OutputFormat, counted, print_notice, print_rows

Row = TypeVar("Row")


def resource_text(binding: AclBinding) -> str:
    """Return a resource as people name it: `topic orders`, `topic app- (prefix)`, `cluster`."""
    pattern = binding.pattern
    kind = pattern.resource_type.name.lower().replace("_", " ")
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name == CLUSTER_NAME:
        return kind
    suffix = " (prefix)" if pattern.pattern_type.name == "PREFIXED" else ""
    return f"{kind} {pattern.name}{suffix}"


def filter_text(binding_filter: AclBindingFilter) -> str:
    """Return a filter in words, as shown in the confirmation of a removal."""
    pattern, entry = binding_filter.pattern_filter, binding_filter.entry_filter
    kind = pattern.resource_type.name.lower().replace("_", " ")
    resource = f"{pattern.pattern_type.name.lower()} {kind} `{pattern.name or '(any)'}`"
    if entry.principal is None:
        return f"every ACL of {resource}"
    return (
        f"{entry.permission_type.name} {entry.principal} {entry.operation.name} from host {entry.host} "
        f"on {resource}"
    )


def acl_columns(acl_of: Callable[[Row], AclBinding]) -> tuple[Column[Row], ...]:
    """Return the columns of a row's ACL; `wide` and `csv` have those of the CSV form of ACLs."""

    def entry(name: str) -> Callable[[Row], str]:
        return lambda row: texts_of(acl_of(row))[name]

    return (
        Column("resource", lambda row: resource_text(acl_of(row)), ColumnFormats.NARROW, groups=True),
        *(
            Column(key, entry(key), ColumnFormats.WIDE)
            for key in ("resource_type", "resource_name", "pattern_type")
        ),
        Column("principal", entry("principal")),
        Column("host", entry("host")),
        Column("permission_type", entry("permission_type"), title="permission"),
        Column("operation", entry("operation"), merges=True),
    )


def _principal(binding: AclBinding) -> tuple[str]:
    return (binding.entry.principal,)


ACLS: Final = Columns(
    acl_columns(lambda binding: binding), _principal, "the principals, as `what-can` takes them"
)


def added_text(created: int, there: int | None) -> str:
    """Return what `add` did: `created 2 ACLs, 1 was there`; `there` is None if unknown."""
    if there is None:
        return f"{counted(created, 'ACL')} now in force, some of them may have existed before"
    if not there:
        return f"created {counted(created, 'ACL')}"
    were = "was" if there == 1 else "were"
    if not created:
        return f"created none, {counted(there, 'ACL')} {were} there"
    return f"created {counted(created, 'ACL')}, {there} {were} there"


def warn_oddities(bindings: Iterable[AclBinding]) -> None:
    """Report on standard error which ACLs never do what their author meant, according to lint."""
    from kustos.analysis.lint import Severity, entry_findings

    found = [
        finding for number, binding in enumerate(bindings) for finding in entry_findings(number, binding)
    ]
    odd = [each for each in found if each.severity is not Severity.NOTE and not each.kind.is_of_breadth]
    for text in dict.fromkeys(f"{each.message}; {each.fix}" for each in odd):
        print_notice("warning", text)


def print_added(
    in_force: Sequence[AclBinding], there: Collection[AclBinding] | None, output: OutputFormat
) -> None:
    """Print the ACLs that `add` found or created, and which it created; `there` is None if unknown."""
    added = [binding for binding in in_force if binding not in (there or ())]
    existing = None if there is None else [binding for binding in in_force if binding in there]
    print_bindings(
        in_force,
        output,
        document=lambda: {"added": _texts(added), "existing": None if existing is None else _texts(existing)},
        empty="nothing was added",
        done=added_text(len(added), None if existing is None else len(existing)),
    )


def print_removed(removed: Sequence[AclBinding], output: OutputFormat) -> None:
    """Print the ACLs that `remove` removed, and their number."""
    print_bindings(
        removed,
        output,
        document=lambda: {"removed": _texts(removed)},
        empty="no ACL matched, nothing was removed",
        done=f"removed {counted(len(removed), 'ACL')}",
    )


def print_bindings(
    bindings: Sequence[AclBinding],
    output: OutputFormat = OutputFormat.TABLE,
    *,
    document: Callable[[], Any] | None = None,
    empty: str = "no ACL matches",
    done: str | None = None,
) -> None:
    """Print sorted bindings as rows.

    `document` holds them under `acls`. The last line is `done`, or the number of ACLs.
    """
    print_rows(
        ACLS,
        bindings,
        output,
        document=document or (lambda: {"acls": _texts(bindings)}),
        tail=((done or counted(len(bindings), "ACL")) if bindings else empty,),
    )


def _texts(bindings: Iterable[AclBinding]) -> list[dict[str, str]]:
    return [texts_of(binding) for binding in bindings]
