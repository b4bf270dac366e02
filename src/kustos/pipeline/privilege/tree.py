"""Names as a tree of prefixes, and in it the cheapest ACLs: exactly, for one host term.

Prefixes of names either contain each other or share no name, so the cheapest choice below a prefix depends
only on the operations already allowed above it. With those as the state the tree is solved from the leaves
up: `cheapest(node, covered)` tries every set of operations to put on the node. Operations are solved together
because READ, WRITE, DELETE and ALTER imply DESCRIBE, ALTER_CONFIGS implies DESCRIBE_CONFIGS, and ALL implies
everything. States are few: only operations needed below a node count, and a principal needs few.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kustos.acl import SUPPORTED_OPERATIONS, WILDCARD, ResourceType
from kustos.authorizer.index import ALLOWS, EVERY_ALLOW
from kustos.pipeline.privilege.options import PREFIXABLE, PrivilegeOptions, cutter
from kustos.pipeline.privilege.values import ALL_BIT, CLOSURES, KnownNames, answering, bits_of, closure

_EPSILON: Final = 1e-9
_USED_SHIFT: Final = EVERY_ALLOW.bit_length()
_NO_ALL: Final = 1 << 2 * _USED_SHIFT
"""The key of a leaf: the operations needed, those used (shifted), and whether ALL is forbidden."""


class Placement(NamedTuple):
    """A planned ACL: a name or a prefix, one operation's bit, and the cost."""

    name: str
    is_prefix: bool
    bit: int
    cost: float

    def matches(self, name: str) -> bool:
        """Return whether the ACL's pattern matches a name."""
        if self.is_prefix:
            return name.startswith(self.name)
        return self.name == name or (self.name == WILDCARD and name[:1] != WILDCARD)


Beyond = Callable[[str, bool], int]
"""For a name or a prefix: the operations that must not be granted on all of its names."""


def nothing_beyond(_name: str, _is_prefix: bool) -> int:
    """Return 0: everything may be granted."""
    return 0


@dataclass(slots=True)
class PrefixNode:
    """A prefix, or the wildcard. `names` are those directly below, `leaves` counts them by their keys."""

    name: str
    is_prefix: bool = True
    children: "list[PrefixNode]" = field(default_factory=list)
    names: list[tuple[str, int]] = field(default_factory=list)
    leaves: dict[int, int] = field(default_factory=dict)
    denied: int = 0
    used: dict[int, int] = field(default_factory=dict)
    active: int = 0
    placeable: int = 0
    costs: dict[int, float] = field(default_factory=dict)
    memo: dict[int, tuple[float, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Demand:
    """The needs and denials on one type, from the hosts of one term.

    `needs` are operations by name, without implied ones; each can be granted literally. `used` is all that is
    used on these and other names, with implied ones. `closed` are operations that must not be granted on
    any name, since a question for any resource was denied. `beyond` is for prefixes and the wildcard; for
    single names `denied` is complete.
    """

    resource_type: ResourceType
    needs: Mapping[str, int]
    used: Mapping[str, int]
    denied: Mapping[str, int]
    closed: int
    beyond: Beyond
    known: KnownNames
    options: PrivilegeOptions

    def supported(self) -> int:
        """Return the operations that the type supports."""
        return sum(ALLOWS[operation] for operation in SUPPORTED_OPERATIONS.get(self.resource_type, ()))


def cheapest_acls(demand: Demand) -> list[Placement]:
    """Return the ACLs that allow all needs and nothing denied at the least cost, by name."""
    found: list[Placement] = []
    for root in _trees(demand):
        _Solver(demand).collect(root, found)
    return sorted(found)


def possible_acls(demand: Demand) -> list[Placement]:
    """Return every ACL that is earned and allows nothing denied: on names, prefixes and the wildcard."""
    found: list[Placement] = []
    solver = _Solver(demand)
    nodes = _trees(demand)
    while nodes:
        node = nodes.pop()
        nodes += node.children
        found += [
            Placement(node.name, node.is_prefix, bit, node.costs[bit]) for bit in bits_of(node.placeable)
        ]
        for name, key in node.names:
            against = demand.denied.get(name, 0)
            literals = [(bit, 1.0) for bit in bits_of(key & EVERY_ALLOW)] + solver.literals(key)
            found += [
                Placement(name, False, bit, cost)
                for bit, cost in dict(literals).items()
                if not (CLOSURES[bit] & against or answering(bit) & demand.closed)
            ]
    return found


def _trees(demand: Demand) -> "list[PrefixNode]":
    """Return a tree of the names that the wildcard matches, and one of those it does not."""
    # LITERAL `*` does not match longer names that begin with an asterisk (Kafka 4.4.0)
    starred = [name for name in demand.used if name[:1] == WILDCARD and name != WILDCARD]
    if not starred:
        return [_tree(demand, demand.used, is_wildcard=True)]
    plain = dict.fromkeys(demand.used)
    for name in starred:
        del plain[name]
    return [_tree(demand, plain, is_wildcard=True), _tree(demand, starred, is_wildcard=False)]


def _tree(demand: Demand, names: Collection[str], *, is_wildcard: bool) -> PrefixNode:
    options, denied = demand.options, demand.denied
    cuts = cutter(options) if demand.resource_type in PREFIXABLE else cutter_of_nothing
    root = PrefixNode(WILDCARD, is_prefix=False)
    chains = [cuts(name) for name in names]
    counts = Counter([prefix for chain in chains for prefix in chain])
    least = options.prefix_members_min
    nodes: dict[str, PrefixNode] = {}
    allows_all = options.all_operations_min is not None and demand.resource_type is not ResourceType.CLUSTER
    for name, chain in zip(names, chains, strict=True):
        parent = root
        kept = [prefix for prefix in chain if counts[prefix] >= least]
        for position, prefix in enumerate(kept):
            if position + 1 < len(kept) and counts[kept[position + 1]] == counts[prefix]:
                continue  # the longer one has the same names and grants no more
            node = nodes.get(prefix)
            if node is None:
                node = nodes[prefix] = PrefixNode(prefix)
                parent.children.append(node)
            parent = node
        key = demand.needs.get(name, 0) | demand.used[name] << _USED_SHIFT
        if not allows_all or demand.closed or denied.get(name):
            key |= _NO_ALL
        parent.names.append((name, key))
        parent.leaves[key] = parent.leaves.get(key, 0) + 1
    for name, mask in denied.items():
        if name[:1] != WILDCARD or name == WILDCARD:
            root.denied |= mask
        if nodes:
            for prefix in cuts(name):
                if prefix in nodes:
                    nodes[prefix].denied |= mask
    _finish(demand, root, may_be_granted=is_wildcard)
    return root


def cutter_of_nothing(_name: str) -> list[str]:
    """Return no prefixes."""
    return []


def _finish(demand: Demand, node: PrefixNode, *, may_be_granted: bool = True) -> Counter[int]:
    """Sum up the keys below a node and find the operations it may get; return the counts of the keys."""
    total = Counter(node.leaves)
    for child in node.children:
        total.update(_finish(demand, child))
    for key, count in total.items():
        node.active |= key & EVERY_ALLOW
        for bit in bits_of(key >> _USED_SHIFT & EVERY_ALLOW):
            node.used[bit] = node.used.get(bit, 0) + count
    options = demand.options
    if not options.has_prefixes or not may_be_granted:
        return total
    beginning = node.name if node.is_prefix else ""
    known = max(total.total(), demand.known.get((demand.resource_type, beginning), 0))
    members_min = _members_min(demand, node, known)
    if max(node.used.values(), default=0) < members_min:
        return total
    forbidden = node.denied | demand.beyond(node.name, node.is_prefix)
    for bit in bits_of(node.active):
        is_closed = answering(bit) & demand.closed
        if node.used[bit] >= members_min and not (CLOSURES[bit] & forbidden or is_closed):
            node.placeable |= bit
            wasted = known - node.used[bit] + options.future_name_count
            node.costs[bit] = 1 + options.over_grant_weight * wasted
    if not forbidden and _earns_all(demand, node, members_min):
        node.placeable |= ALL_BIT
        operations = bits_of(demand.supported())
        wasted = sum(known - node.used.get(bit, 0) + options.future_name_count for bit in operations)
        node.costs[ALL_BIT] = 1 + options.over_grant_weight * wasted
    return total


def _members_min(demand: Demand, node: PrefixNode, known: int) -> float:
    options = demand.options
    if node.is_prefix:
        return options.prefix_members_min
    if options.wildcard_share is None or demand.resource_type not in PREFIXABLE:
        return float("inf")
    return max(options.wildcard_members_min, options.wildcard_share * known)


def _earns_all(demand: Demand, node: PrefixNode, members_min: float) -> bool:
    least = demand.options.all_operations_min
    if least is None or demand.closed or demand.resource_type is ResourceType.CLUSTER:
        return False
    return sum(count >= members_min for count in node.used.values()) >= least


class _Solver:
    """The dynamic programme over one tree."""

    def __init__(self, demand: Demand) -> None:
        self._demand = demand
        self._leaf_costs: dict[int, float] = {}

    def cheapest(self, node: PrefixNode, covered: int) -> tuple[float, int]:
        """Return the least cost at and below a node, and the operations to put on it, given those above."""
        covered &= node.active
        cached = node.memo.get(covered)
        if cached is not None:
            return cached
        best, choice = self._below(node, covered), 0
        if node.placeable & ALL_BIT and node.costs[ALL_BIT] < best - _EPSILON:
            best, choice = node.costs[ALL_BIT], ALL_BIT
        candidates = node.placeable & ~covered & ~ALL_BIT
        subset = candidates
        while subset:
            cost = sum([node.costs[bit] for bit in bits_of(subset)])
            if cost < best - _EPSILON:
                cost += self._below(node, covered | closure(subset))
                if cost < best - _EPSILON:
                    best, choice = cost, subset
            subset = (subset - 1) & candidates
        node.memo[covered] = best, choice
        return best, choice

    def _below(self, node: PrefixNode, covered: int) -> float:
        cost = 0.0
        for key, count in node.leaves.items():
            cost += count * self._leaf_cost(key & ~covered)
        for child in node.children:
            cost += self.cheapest(child, covered)[0]
        return cost

    def _leaf_cost(self, key: int) -> float:
        cost = self._leaf_costs.get(key)
        if cost is None:
            cost = self._leaf_costs[key] = sum([cost for _, cost in self.literals(key)])
        return cost

    def literals(self, key: int) -> list[tuple[int, float]]:
        """Return the operations to grant literally on a name with this key, each with its cost."""
        needed = key & EVERY_ALLOW
        options = self._demand.options
        if not key & _NO_ALL and options.all_operations_min is not None:
            used = key >> _USED_SHIFT & EVERY_ALLOW
            wasted = (self._demand.supported() & ~used).bit_count()
            # even an infinite weight allows ALL if no operation is unused
            cost = 1 + (options.over_grant_weight * wasted if wasted else 0)
            if used.bit_count() >= options.all_operations_min and cost < needed.bit_count():
                return [(ALL_BIT, cost)]
        return [(bit, 1.0) for bit in bits_of(needed)]

    def collect(self, node: PrefixNode, found: list[Placement], covered: int = 0) -> None:
        """Add the ACLs on a node and below it."""
        _, choice = self.cheapest(node, covered)
        found.extend([Placement(node.name, node.is_prefix, bit, node.costs[bit]) for bit in bits_of(choice)])
        covered |= closure(choice)
        for name, key in node.names:
            if key & EVERY_ALLOW & ~covered:
                found.extend(
                    [Placement(name, False, bit, cost) for bit, cost in self.literals(key & ~covered)]
                )
        for child in node.children:
            self.collect(child, found, covered)
