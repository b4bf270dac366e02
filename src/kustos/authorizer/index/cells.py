"""The entries of one principal on one resource pattern, compiled to bits.

The mask of a cell says for every operation whether an entry allows or denies it, in 29 bits, the size that
Python handles fastest:

    bits  0-13   ALLOW of READ ... and ALL, with what the operation implies (READ implies DESCRIBE, ...)
    bits 14-27   DENY, which implies nothing
    bit  28      some entry names a host: the other bits hold for some host; use `at(host)` for one host

Source: `StandardAuthorizerData.findResult` of Kafka 4.4.0.
"""

from bisect import bisect_left
from typing import Final

from kustos.acl import WILDCARD, AclBinding, AclOperation, AclPermissionType, PatternType
from kustos.authorizer.index.host_views import HostViews
from kustos.authorizer.spi.values import AuthorizationResult, Decision, DuplicateAclError, Rule, RuleKind

_OPERATIONS: Final[list[AclOperation]] = [
    operation for operation in AclOperation if operation not in {AclOperation.UNKNOWN, AclOperation.ANY}
]
DENY_SHIFT: Final = len(_OPERATIONS)
"""The shift of the DENY bits above the ALLOW bits."""

EVERY_ALLOW: Final = (1 << DENY_SHIFT) - 1
HOSTED: Final = 1 << 2 * DENY_SHIFT

ALLOWS: Final[dict[AclOperation, int]] = {
    operation: 1 << position for position, operation in enumerate(_OPERATIONS)
}
"""Operation → its ALLOW bit in a mask; an operation without one cannot be checked."""

DENIES: Final[dict[AclOperation, int]] = {operation: bit << DENY_SHIFT for operation, bit in ALLOWS.items()}
"""Operation → its DENY bit in a mask."""

DECIDES: Final[dict[AclOperation, int]] = {
    operation: ALLOWS[operation] | DENIES[operation] for operation in _OPERATIONS
}

IMPLIED_OPERATIONS: Final[dict[AclOperation, AclOperation]] = {
    AclOperation.READ: AclOperation.DESCRIBE,
    AclOperation.WRITE: AclOperation.DESCRIBE,
    AclOperation.DELETE: AclOperation.DESCRIBE,
    AclOperation.ALTER: AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}
"""The operation that an ALLOW also allows; a DENY implies nothing."""

EXACT_MASK_BINDINGS_MAX: Final = 64
"""A cell with more bindings keeps its mask when a binding is removed: such a cell names hosts, and each view
has its own mask."""


def written_mask(operation: AclOperation) -> int:
    """Return the ALLOW bits of an entry's operation without implied ones: all bits for ALL, none for an
    unknown operation."""
    return EVERY_ALLOW if operation is AclOperation.ALL else ALLOWS.get(operation, 0)


def _allow_mask(operation: AclOperation) -> int:
    implied = IMPLIED_OPERATIONS.get(operation)
    return written_mask(operation) | (0 if implied is None else ALLOWS[implied])


_ALLOW_MASKS: Final = {operation: _allow_mask(operation) for operation in AclOperation}
_DENY_MASKS: Final = {operation: written_mask(operation) << DENY_SHIFT for operation in AclOperation}


def binding_mask(binding: AclBinding) -> int:
    """Return the bits of one binding.

    As in Kafka, any permission but ALLOW denies. Unlike in Kafka, which reads an unknown pattern type as
    PREFIXED, such a type grants nothing.
    """
    entry = binding.entry
    mask = (_ALLOW_MASKS if entry.permission_type is AclPermissionType.ALLOW else _DENY_MASKS)[
        entry.operation
    ]
    if binding.pattern.pattern_type is PatternType.UNKNOWN and mask <= EVERY_ALLOW:
        mask = 0
    # cells without hosts share one object, which stays in the processor's cache
    return mask if entry.host == WILDCARD else mask | HOSTED


EntryOrder = tuple[int, str, str, int]


def entry_order(binding: AclBinding) -> EntryOrder:
    """Return the sort key of a binding within its pattern, as in `StandardAcl.compareTo`.

    Java sorts text by UTF-16 code unit and Python by code point; the order differs only between two non-ASCII
    texts, and at most one of two bindings that match one question has such a text.
    """
    entry = binding.entry
    return entry.operation, entry.principal, entry.host, entry.permission_type


def _order_in_cell(binding: AclBinding) -> tuple[int, str, int, int]:
    # the same order for one principal; PREFIXED and unknown pattern types share a cell
    entry = binding.entry
    return entry.operation, entry.host, entry.permission_type, binding.pattern.pattern_type


def decision_of(binding: AclBinding) -> Decision:
    """Return the decision of a matching binding."""
    allows = binding.entry.permission_type is AclPermissionType.ALLOW
    result = AuthorizationResult.ALLOWED if allows else AuthorizationResult.DENIED
    return Decision(result, Rule(RuleKind.MATCHING_ACL, binding))


class Cell:
    """The entries of a principal for some names, queried by operation.

    `sole` is the cached decision of a cell with a single binding, if the decision does not depend on the
    host.
    """

    __slots__ = ("_decisions", "mask", "sole")

    def __init__(self, mask: int, sole: Decision | None = None) -> None:
        self.mask = mask
        self.sole = sole
        self._decisions: dict[int, Decision] | None = None

    def decide(self, bit: int) -> Decision:
        """Return the decision for a set bit of the mask, in a cell without HOSTED."""
        decisions = self._decisions
        if decisions is None:
            decisions = self._decisions = {}
        decision = decisions.get(bit)
        if decision is None:
            decision = decisions[bit] = self._decision(bit)
        return decision

    def _decision(self, bit: int) -> Decision:
        raise KeyError(bit)

    def at(self, host: str) -> "Cell":  # noqa: ARG002 (no entry here names a host)
        """Return the part of this cell that applies to a client host."""
        return self


NOTHING: Final = Cell(0)
"""The cell without entries."""


class PatternCell(Cell):
    """The entries of one principal on one pattern.

    `bindings` are in Kafka's order, which determines the ACL in the audit line: the first that denies, else
    the last that allows. Decisions are cached until the cell changes.
    """

    __slots__ = ("_bindings", "_views")

    def __init__(self, binding: AclBinding) -> None:
        self.mask = binding_mask(binding)
        self.sole: Decision | None = None
        self._decisions: dict[int, Decision] | None = None
        # most cells have only one binding: a list would take more memory than the cell
        self._bindings: AclBinding | list[AclBinding] = binding
        self._views: HostViews[Cell] | None = None

    @property
    def bindings(self) -> tuple[AclBinding, ...]:
        """The bindings, in Kafka's order."""
        held = self._bindings
        return tuple(held) if isinstance(held, list) else (held,)

    @property
    def own_mask(self) -> int:
        """The bits of the cell's own bindings."""
        return self.mask

    def bindings_at(self, host: str) -> list[AclBinding]:
        """Return the bindings that match a client host, in Kafka's order."""
        if not self.own_mask & HOSTED:
            return list(self.bindings)
        return sorted(self._hosts().matching(host), key=_order_in_cell)

    def add(self, binding: AclBinding) -> None:
        """Add a binding; raise `DuplicateAclError` if it exists."""
        held = self._bindings
        if not isinstance(held, list):
            held = [held]
        order = _order_in_cell(binding)
        position = bisect_left(held, order, key=_order_in_cell)
        if position < len(held) and _order_in_cell(held[position]) == order:
            raise DuplicateAclError(f"ACL `{binding.audit_text()}` is there already, under another id")
        held.insert(position, binding)
        self._bindings = held
        if self._views is not None:
            self._views.add(binding)
        self._grow(binding_mask(binding))
        self.forget()

    def remove(self, binding: AclBinding) -> bool:
        """Remove an existing binding; return True if it was the last one, in which case the cell is
        unchanged."""
        held = self._bindings
        if not isinstance(held, list):
            return True
        del held[bisect_left(held, _order_in_cell(binding), key=_order_in_cell)]
        if self._views is not None:
            self._views.remove(binding)
        if len(held) <= EXACT_MASK_BINDINGS_MAX:
            mask = 0
            for left in held:
                mask |= binding_mask(left)
            self._shrink(mask)
        if len(held) == 1:
            self._bindings = held[0]
        self.forget()
        return False

    def _grow(self, mask: int) -> None:
        self.mask |= mask

    def _shrink(self, mask: int) -> None:
        self.mask = mask

    def forget(self) -> None:
        """Clear all cached decisions and views."""
        self.sole = self._decisions = None
        if self._views is not None:
            self._views.forget()

    def decide(self, bit: int) -> Decision:
        """Return the decision for a set bit of the mask, in a cell without HOSTED."""
        if self.sole is None and self._is_single():
            self.sole = decision_of(self.bindings[0])
        return self.sole or super().decide(bit)

    def _is_single(self) -> bool:
        return not isinstance(self._bindings, list)

    def _decision(self, bit: int) -> Decision:
        matching = [binding for binding in self.bindings if binding_mask(binding) & bit]
        return decision_of(matching[-1] if bit <= EVERY_ALLOW else matching[0])

    def _hosts(self) -> HostViews[Cell]:
        if self._views is None:
            self._views = HostViews(self.bindings)
        return self._views

    def at(self, host: str) -> Cell:
        """Return the part of this cell that applies to a client host."""
        if not self.mask & HOSTED:
            return self
        views = self._views or self._hosts()
        view = views.known.get(host)
        return views.keep(host, self._view(host)) if view is None else view

    def _view(self, host: str) -> Cell:
        return view_of(self.bindings_at(host))


def view_of(bindings: list[AclBinding]) -> Cell:
    """Return a cell of the bindings of a pattern that match one host."""
    if not bindings:
        return NOTHING
    view = PatternCell(bindings[0])
    for binding in bindings[1:]:
        view.add(binding)
    view.mask &= ~HOSTED
    return view
