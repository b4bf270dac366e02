"""The same question as a mixed integer programme, solved by HiGHS: all candidates, all needs, no cleverness.

Candidates and what they cost are written down here once more, as plainly as possible.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass

import highspy

from kustos.acl import SUPPORTED_OPERATIONS, AclOperation, ResourceType, host_matches
from kustos.authorizer.index.cells import IMPLIED_OPERATIONS
from kustos.pipeline.privilege import HostChoice, PrivilegeOptions, Problem, RecommendedAcl

FAMILIES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
PROBED = "hardcode"

Questions = Set[tuple[str, AclOperation, str]]


@dataclass(frozen=True)
class Candidate:
    resource_type: ResourceType
    kind: str
    name: str
    operation: AclOperation
    host: str

    def matches(self, name: str) -> bool:
        if self.kind == "prefix":
            return name.startswith(self.name)
        if self.name == "*":
            return name == "*" or not name.startswith("*")
        return name == self.name

    def allows(self, host: str, operation: AclOperation, name: str) -> bool:
        return (
            host_matches(self.host, host)
            and self.matches(name)
            and (
                self.operation in (operation, AclOperation.ALL)
                or IMPLIED_OPERATIONS.get(self.operation) is operation
            )
        )

    def answers(self, host: str, operation: AclOperation, excepted: Questions = frozenset()) -> bool:
        """Return whether it allows a question for any resource: Kafka authorizes one name first, by name."""
        is_denied = self.kind == "literal" and (host, operation, self.name) in excepted
        by_type = self.operation in (operation, AclOperation.ALL) and not is_denied
        by_name = self.allows(host, operation, PROBED) and (host, operation, PROBED) not in excepted
        return host_matches(self.host, host) and (by_type or by_name)


class World:
    """A problem on one type, with the rules of what is earned."""

    def __init__(self, problem: Problem, options: PrivilegeOptions) -> None:
        (resource_type,) = {u.resource_type for u in problem.uses} | {
            d.resource_type for d in problem.denials
        }
        self.type, self.options, self.known = resource_type, options, problem.known
        uses = [use for use in problem.uses if use.resource_type is resource_type]
        denials = [denial for denial in problem.denials if denial.resource_type is resource_type]
        self.needs = {(u.host, u.operation, u.name) for u in uses if u.name and u.name != "*"}
        self.probes = {(u.host, u.operation) for u in uses if u.name is None}
        implied = {(h, IMPLIED_OPERATIONS[o], n) for h, o, n in self.needs if o in IMPLIED_OPERATIONS}
        self.refused = {(d.host, d.operation, d.name) for d in denials if d.name is not None}
        self.excepted = self.refused & implied
        self.refused -= implied
        needed = {(h, o) for h, o, _ in self.needs}
        needed |= {(h, o) for h, o, n in implied - self.excepted if n == PROBED}
        self.closed = {(d.host, d.operation) for d in denials if d.name is None} - needed

    def used(self, candidate: Candidate, operation: AclOperation) -> int:
        """Return on how many of the candidate's names its hosts used an operation."""
        return len(
            {
                name
                for host, used, name in self.needs
                if host_matches(candidate.host, host)
                and candidate.matches(name)
                and operation in (used, IMPLIED_OPERATIONS.get(used))
            }
        )

    def names(self, candidate: Candidate) -> int:
        beginning = candidate.name if candidate.kind == "prefix" else ""
        matched = {n for h, _, n in self.needs if candidate.matches(n) and host_matches(candidate.host, h)}
        return max(self.known.get((self.type, beginning), 0), len(matched))

    def cost(self, candidate: Candidate) -> float | None:
        """Return what a candidate costs, None if it is not earned."""
        options = self.options
        operations: Iterable[AclOperation] = (candidate.operation,)
        if candidate.operation is AclOperation.ALL:
            operations = SUPPORTED_OPERATIONS[self.type]
        if candidate.kind == "literal":
            wasted = float(sum(not self.used(candidate, operation) for operation in operations))
            members_min = 1.0
        else:
            known = self.names(candidate)
            future = options.future_name_count
            wasted = sum(known - self.used(candidate, operation) + future for operation in operations)
            members_min = float(options.prefix_members_min)
            if candidate.kind == "wildcard":
                if options.wildcard_share is None:
                    return None
                members_min = max(options.wildcard_members_min, options.wildcard_share * known)
        every = [o for o in AclOperation if o.value > 2]
        if candidate.operation is AclOperation.ALL:
            least = options.all_operations_min
            if least is None or self.type is ResourceType.CLUSTER:
                return None
            if sum(self.used(candidate, o) >= members_min for o in every) < least:
                return None
        elif candidate.kind != "literal" and self.used(candidate, candidate.operation) < members_min:
            return None
        if wasted == 0 or (candidate.kind == "literal" and candidate.operation is not AclOperation.ALL):
            return 1.0
        return 1 + options.over_grant_weight * wasted

    def candidates(self) -> dict[Candidate, float]:
        hosts = {host for host, _, _ in self.needs} | {host for host, _ in self.probes}
        terms = set(hosts)
        if self.options.hosts is HostChoice.ANY or len(hosts) > self.options.hosts_max:
            terms.add("*")
        operations = {operation for _, operation, _ in self.needs} | {o for _, o in self.probes}
        named = {name for _, _, name in self.needs}
        shapes = {("literal", name) for name in named}
        if self.probes:
            shapes.add(("literal", "kafka-cluster" if self.type is ResourceType.CLUSTER else PROBED))
        if self.type in FAMILIES and self.options.over_grant_weight != float("inf"):
            shapes |= {("prefix", prefix) for name in named for prefix in self.prefixes(name)}
            shapes.add(("wildcard", "*"))
        found: dict[Candidate, float] = {}
        for kind, name in shapes:
            for operation in operations | {AclOperation.ALL}:
                for host in terms:
                    candidate = Candidate(self.type, kind, name, operation, host)
                    cost = self.cost(candidate)
                    if cost is not None and cost < float("inf") and self.harmless(candidate):
                        found[candidate] = cost
        return found

    def prefixes(self, name: str) -> list[str]:
        ends = [i + 1 for i, character in enumerate(name) if character in self.options.separators][:8]
        return [name[:end] for end in ends if end >= self.options.prefix_length_min]

    def harmless(self, candidate: Candidate) -> bool:
        return not any(candidate.allows(h, o, n) for h, o, n in self.refused) and not any(
            candidate.answers(h, o) for h, o in self.closed
        )

    def least_cost(self) -> float:
        """Return the least cost of candidates that serve every need and answer every probe."""
        candidates = self.candidates()
        if not candidates:
            return 0.0
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        chosen = [(each, solver.addBinary(obj=cost)) for each, cost in candidates.items()]
        for host, operation, name in sorted(self.needs):
            solver.addConstr(sum(x for each, x in chosen if each.allows(host, operation, name)) >= 1)
        for host, operation in sorted(self.probes):
            able = [x for each, x in chosen if each.answers(host, operation, self.excepted)]
            if able:
                solver.addConstr(sum(able) >= 1)
        solver.minimize()
        assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return float(solver.getObjectiveValue())

    def cost_of(self, acls: Iterable[RecommendedAcl]) -> float:
        """Return what ACLs cost by the same rules, refusing any that is none of the candidates."""
        candidates = self.candidates()
        total = 0.0
        for acl in acls:
            pattern, entry = acl.binding.pattern, acl.binding.entry
            if pattern.resource_type is not self.type or entry.permission_type.name != "ALLOW":
                continue
            kind = "prefix" if pattern.pattern_type.name == "PREFIXED" else "literal"
            if pattern.name == "*" and kind == "literal":
                kind = "wildcard"
            total += candidates[Candidate(self.type, kind, pattern.name, entry.operation, entry.host)]
        return total
