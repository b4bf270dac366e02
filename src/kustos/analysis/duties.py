"""Rules of separated duties: who may do one thing must not be able to do another. YAML in, values out.

    version: 1
    duties:
      - id: four-eyes
        who_can: WRITE topics under payments.
        must_not: READ or WRITE topic approvals
        but: User:auditor and User:admin-*
        reason: payers must not approve payments

`who_can` and `must_not` are sentences of policy files without their principals and hosts; `but` names exempt
principals. One operation on one name of each side is enough to break a duty. Super users break all duties
and only count with `super_users: true`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import yaml

from kustos.acl import EVERY_PRINCIPAL, AclBinding, AclOperation, PatternType, ResourcePattern, ResourceType
from kustos.analysis.access import who_can
from kustos.analysis.host_sets import ANYWHERE
from kustos.analysis.kernel import ACLS_ALONE, AnalysisError, Rules
from kustos.analysis.name_sets import Site
from kustos.analysis.policy import PolicyPrincipals
from kustos.analysis.regions import Region
from kustos.analysis.sentence_file import SentenceFile

DUTIES_VERSION: Final = 1
DUTIES_MAX: Final = 1_000
"""Duties of one file: each analyses the whole set of ACLs twice."""

REGIONS_MAX: Final = 100_000
"""Regions of one side; more would be unreadable."""

_KEYS: Final = ("id", "who_can", "must_not", "but", "reason", "super_users")
_NEEDED_KEYS: Final = ("who_can", "must_not")
EVERYONE: Final = PolicyPrincipals((), is_everyone_but=True)
NO_PRINCIPAL: Final = PolicyPrincipals(())


class DutySide(NamedTuple):
    """One of the two things that must stay apart: any of these operations on any of these names."""

    operations: tuple[AclOperation, ...]
    resource_type: ResourceType
    sites: tuple[Site, ...]
    sentence: str

    def matches(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Return whether this access belongs to the side."""
        return (
            resource_type is self.resource_type
            and operation in self.operations
            and any(site.covers(name) for site in self.sites)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """A declared rule: principals that can do `who_can` must not be able to do `must_not`, unless exempt."""

    duty_id: str
    who_can: DutySide
    must_not: DutySide
    exempt: PolicyPrincipals = NO_PRINCIPAL
    reason: str | None = None
    counts_super_users: bool = False

    def text(self) -> str:
        """Return the rule in words."""
        return f"principals that may {self.who_can.sentence} must not {self.must_not.sentence}"


@dataclass(frozen=True, slots=True)
class Breach:
    """A principal that the ACLs allow both; `User:*` is every other principal, except `without`."""

    duty: Duty
    principal: str
    who_can: Region
    must_not: Region
    without: tuple[str, ...] = ()


def parse_duties(text: str, file: str = "duties") -> tuple[Duty, ...]:
    """Return the duties of a file's text; raise `PolicyError` with the line, the value and the rule."""
    reader = SentenceFile(text, file)
    found: dict[str, Duty] = {}
    for number, node in enumerate(reader.entries(DUTIES_VERSION, "duties", DUTIES_MAX), start=1):
        duty = _duty(reader, node, number)
        if duty.duty_id in found:
            raise reader.wrong(node, duty.duty_id, "another duty has this id")
        found[duty.duty_id] = duty
    return tuple(found.values())


def _duty(reader: SentenceFile, node: yaml.Node, number: int) -> Duty:
    fields = reader.mapping(node, _KEYS)
    for key in _NEEDED_KEYS:
        if key not in fields:
            raise reader.wrong(node, key, "is missing")
    exempt = NO_PRINCIPAL
    if "but" in fields:
        exempt = reader.sentence(fields["but"], f"{reader.text(fields['but'])} DESCRIBE cluster").principals
    return Duty(
        duty_id=reader.text(fields["id"]) if "id" in fields else f"duty {number}",
        who_can=_side(reader, fields["who_can"]),
        must_not=_side(reader, fields["must_not"]),
        exempt=exempt,
        reason=reader.text(fields["reason"]) if "reason" in fields else None,
        counts_super_users=reader.flag(fields.get("super_users")),
    )


def _side(reader: SentenceFile, node: yaml.Node) -> DutySide:
    text = reader.text(node)
    sentence = reader.sentence(node, f"everyone {text}")
    if sentence.principals != EVERYONE or sentence.hosts != ANYWHERE:
        raise reader.wrong(node, text, "a side of a duty names neither principals nor hosts")
    return DutySide(sentence.operations, sentence.resource_type, sentence.sites, text)


def breaches(
    bindings: Sequence[AclBinding], duties: Iterable[Duty], rules: Rules = ACLS_ALONE
) -> Iterator[Breach]:
    """Yield the duties that the ACLs let principals break: exact, for each principal named and all others.

    Raises `AnalysisError` for a side of more than REGIONS_MAX regions.
    """
    named = {binding.entry.principal for binding in bindings} | rules.super_users
    named.discard(EVERY_PRINCIPAL)
    for duty in duties:
        one, other = (_able(bindings, side, rules) for side in (duty.who_can, duty.must_not))
        # principals that only `but` names may still have what everyone has
        for principal in sorted(named | {one.text for one in duty.exempt.patterns if not one.is_prefix}):
            is_let_off = principal in rules.super_users and not duty.counts_super_users
            if principal in duty.exempt or is_let_off:
                continue
            does = next((region for region in one if principal in region.principals), None)
            does_too = next((region for region in other if principal in region.principals), None)
            if does is not None and does_too is not None:
                yield Breach(duty, principal, does, does_too)
        if not duty.exempt.is_everyone_but:
            yield from _by_everyone(duty, one, other)


def _by_everyone(duty: Duty, one: list[Region], other: list[Region]) -> Iterator[Breach]:
    does = next((region for region in one if region.principals.is_everyone_but), None)
    does_too = next((region for region in other if region.principals.is_everyone_but), None)
    if does is not None and does_too is not None:
        without = sorted({*does.principals.names, *does_too.principals.names})
        yield Breach(duty, EVERY_PRINCIPAL, does, does_too, tuple(without))


def _able(bindings: Sequence[AclBinding], side: DutySide, rules: Rules) -> list[Region]:
    regions: list[Region] = []
    for site in side.sites:
        pattern_type = PatternType.LITERAL if site.is_literal else PatternType.PREFIXED
        pattern = ResourcePattern(side.resource_type, site.name, pattern_type)
        for operation in side.operations:
            found = who_can(bindings, operation, pattern, rules, regions_max=REGIONS_MAX)
            if found.is_cut:
                raise AnalysisError(
                    f"more than {REGIONS_MAX} kinds of grants allow `{side.sentence}`, name fewer resources"
                )
            regions += [grant.region for grant in found.grants]
    return regions
