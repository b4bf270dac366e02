"""Steps of a world: changes of the ACLs with questions in between, as values and as lines of text.

The lines (tabs between the fields) travel to the oracle and keep a counter-example in the corpus; the
README beside this file has their legend.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)


@dataclass(frozen=True, slots=True)
class Start:
    """Begin with an empty authorizer."""

    super_users: str
    default_allow: bool
    ready: bool = True


@dataclass(frozen=True, slots=True)
class Configure:
    """Other super users and another default; the ACLs stay."""

    super_users: str
    default_allow: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """The ACLs of a world that did not start ready are all there."""


@dataclass(frozen=True, slots=True)
class Add:
    """Add an ACL, which later steps name by its number."""

    number: int
    binding: AclBinding


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the ACL of this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Replace all ACLs."""

    acls: tuple[Add, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """A change that cannot be made and must leave everything as it was."""

    change: Add | Remove


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask whether an operation is authorized."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None
    """None asks for any resource of the type."""


@dataclass(frozen=True, slots=True)
class Acls:
    """Is the filter valid, and which ACLs does it find?"""

    filter: AclBindingFilter


@dataclass(frozen=True, slots=True)
class New:
    """May this ACL be made? The resource type, pattern type and so on as texts: some have no binding."""

    level: int
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cidr:
    """Is the client's address in the range?"""

    host: str
    pattern: str


Change = Start | Configure | Ready | Add | Remove | Snapshot
Question = Fault | Ask | Acls | New | Cidr
"""What has one answer each."""

Step = Change | Question


@lru_cache(65_536)
def principal_of(text: str) -> KafkaPrincipal:
    """Return who asks: `type|name`, which lets a type hold a colon, or Kafka's own `type:name`."""
    principal_type, bar, name = text.partition("|")
    return KafkaPrincipal(principal_type, name) if bar else KafkaPrincipal.parse(text)


def to_lines(steps: Iterable[Step]) -> Iterator[str]:
    """Write steps as the oracle and the corpus have them."""
    for step in steps:
        yield from _lines(step)


def _lines(step: Step) -> Iterator[str]:
    match step:
        case Start(super_users, default_allow, ready):
            line = f"start\t{super_users}\t{_flag(default_allow)}"
            yield line if ready else f"{line}\tunready"
        case Configure(super_users, default_allow):
            yield f"configure\t{super_users}\t{_flag(default_allow)}"
        case Ready():
            yield "ready"
        case Add():
            yield f"add\t{_acl_fields(step)}"
        case Remove(number):
            yield f"remove\t{number}"
        case Snapshot(acls):
            yield f"snapshot\t{len(acls)}"
            yield from (f"acl\t{_acl_fields(acl)}" for acl in acls)
        case Fault(change):
            [line] = _lines(change)
            yield f"fault\t{line}"
        case Ask(principal, host, operation, resource_type, None):
            yield f"any\t{principal}\t{host}\t{operation}\t{resource_type}"
        case Ask(principal, host, operation, resource_type, name):
            yield f"ask\t{principal}\t{host}\t{operation}\t{resource_type}\t{name}"
        case Acls(asked):
            yield f"acls\t{_filter_fields(asked)}"
        case New(level, fields):
            yield "\t".join(("new", str(level), *fields))
        case Cidr(host, pattern):
            yield f"cidr\t{host}\t{pattern}"


def _flag(value: bool) -> str:
    return str(value).lower()


def _acl_fields(acl: Add) -> str:
    pattern, entry = acl.binding.pattern, acl.binding.entry
    fields = (acl.number, pattern.resource_type, pattern.name, pattern.pattern_type)
    more = (entry.principal, entry.host, entry.operation, entry.permission_type)
    return "\t".join(str(value) for value in (*fields, *more))


def _filter_fields(asked: AclBindingFilter) -> str:
    pattern, entry = asked.pattern_filter, asked.entry_filter
    of_pattern = (pattern.resource_type, _nullable(pattern.name), pattern.pattern_type)
    of_entry = (_nullable(entry.principal), _nullable(entry.host), entry.operation, entry.permission_type)
    return "\t".join(str(value) for value in (*of_pattern, *of_entry))


def _nullable(text: str | None) -> str:
    return "-" if text is None else f"={text}"


def from_lines(lines: Iterable[str]) -> Iterator[Step]:
    """Read steps back; empty lines and those that begin with `#` say nothing."""
    rest = iter([line for line in lines if line and not line.startswith("#")])
    for line in rest:
        verb, *fields = line.split("\t")
        if verb == "snapshot":
            yield Snapshot(tuple(_acl_from(next(rest).split("\t")[1:]) for _ in range(int(fields[0]))))
        else:
            yield _step_from(verb, fields)


def _step_from(verb: str, fields: list[str]) -> Step:
    match verb:
        case "start":
            return Start(fields[0], fields[1] == "true", ready=len(fields) == 2)
        case "configure":
            return Configure(fields[0], fields[1] == "true")
        case "ready":
            return Ready()
        case "add":
            return _acl_from(fields)
        case "remove":
            return Remove(int(fields[0]))
        case "fault":
            change = _step_from(fields[0], fields[1:])
            if isinstance(change, Add | Remove):
                return Fault(change)
        case "any" | "ask":
            name = fields[4] if verb == "ask" else None
            return Ask(fields[0], fields[1], AclOperation[fields[2]], ResourceType[fields[3]], name)
        case "acls":
            return _filter_from(fields)
        case "new":
            return New(int(fields[0]), tuple(fields[1:]))
        case "cidr":
            return Cidr(*fields)
    raise ValueError(f"unknown step `{verb}` {fields}")


def _acl_from(fields: list[str]) -> Add:
    number, *rest = fields
    return Add(int(number), binding_of(rest))


def binding_of(fields: Iterable[str]) -> AclBinding:
    """Return the binding of these texts; raise `AclValueError` if there can be none."""
    kind, name, pattern_type, principal, host, operation, permission = fields
    pattern = ResourcePattern(ResourceType[kind], name, PatternType[pattern_type])
    entry = AccessControlEntry(principal, host, AclOperation[operation], AclPermissionType[permission])
    return AclBinding(pattern, entry)


def _filter_from(fields: list[str]) -> Acls:
    kind, name, pattern_type, principal, host, operation, permission = fields
    texts = [None if text == "-" else text[1:] for text in (name, principal, host)]
    pattern = ResourcePatternFilter(ResourceType[kind], texts[0], PatternType[pattern_type])
    operation_asked, permission_asked = AclOperation[operation], AclPermissionType[permission]
    return Acls(
        AclBindingFilter(
            pattern, AccessControlEntryFilter(texts[1], texts[2], operation_asked, permission_asked)
        )
    )
