"""Questions for any resource of a type (`authorizeByResourceType`, KIP-679), which have no name.

Kafka decides them by ACLs for the same operation or ALL, without implied operations, unless it may do it on
the name `hardcode`, which it authorizes first as any other. The principal's other needs allow most of them.
For the rest this adds one literal ACL on a name that the principal already uses.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from kustos.pipeline.privilege.placements import HostedPlacement, Index, pruned
from kustos.pipeline.privilege.tree import Placement
from kustos.pipeline.privilege.type_plan import TypePlan, probe_name
from kustos.pipeline.privilege.values import CLOSURES, Use, answering, bits_of, closure

_NAMES_TRIED_MAX: Final = 1_000
"""Names tried for an ACL without conflict; Kafka's own name for such questions follows."""


def answer_probes(plan: TypePlan, uses: Iterable[Use]) -> None:
    """Add to a solved plan the ACLs that its allowed questions for any resource still need.

    Nothing is added for a question if every possible name was denied.
    """
    if not plan.probed:
        return
    counts: Counter[str] = Counter()
    for use in uses:
        if use.name is not None:
            counts[use.name] += use.event_count
    names = [name for name, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    questions = [(host, bit) for host in sorted(plan.probed) for bit in bits_of(plan.probed[host])]
    placed = len(plan.placements)
    for host, bit in questions:
        if not any(plan.answers(acl, host, bit) for acl in plan.placements):
            added = _added(plan, names[:_NAMES_TRIED_MAX], host, bit)
            plan.placements += [] if added is None else [added]
    if len(plan.placements) > placed:
        plan.placements = pruned(plan.placements, _servers(plan, questions))


def _servers(plan: TypePlan, questions: list[tuple[str, int]]) -> Iterator[list[int]]:
    """Yield, for each need and question, the ACLs that serve it: a new ACL may make another superfluous."""
    index = Index(plan.placements, plan.options)
    for host, names in plan.needs.items():
        for name, mask in names.items():
            for bit in bits_of(mask):
                yield list(index.serving(host, name, bit))
    for host, bit in questions:
        yield [number for number, acl in enumerate(plan.placements) if plan.answers(acl, host, bit)]


def _added(plan: TypePlan, names: list[str], host: str, bit: int) -> HostedPlacement | None:
    fallback = probe_name(plan.resource_type)
    for is_used_already in (True, False):
        for term in (plan.terms.get(host, host), host):
            denied, closed, _ = plan.denied_at(term)
            for name in () if answering(bit) & closed else (*names, fallback):
                added = HostedPlacement(Placement(name, False, bit, 1), term)
                is_free = not CLOSURES[bit] & denied.get(name, 0) and plan.answers(added, host, bit)
                if is_free and (_is_used(plan, name, bit) or not is_used_already):
                    return added
    return None


def _is_used(plan: TypePlan, name: str, bit: int) -> bool:
    return any(closure(needs.get(name, 0)) & bit for needs in plan.needs.values())
