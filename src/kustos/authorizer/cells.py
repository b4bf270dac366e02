"""The entries of one principal on one resource pattern, compiled to bits.

A cell's mask answers "is there an entry that ..." for every operation at once, in the 29 bits that
Python handles fastest:

    bits  0-13   ALLOW of READ ... and ALL, with what the operation implies (READ implies DESCRIBE, ...)
    bits 14-27   DENY, which implies nothing
    bit  28      some entry names a host: the other bits hold for somebody, `at(host)` says for whom

Source: `StandardAuthorizerData.findResult` of Kafka 4.4.0.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, Self

from kustos.acl import WILDCARD, AclBinding, AclOperation, AclPermissionType, PatternType, host_matches
from kustos.authorizer.spi import AuthorizationResult, Decision, Rule, RuleKind

_OPERATIONS: Final[list[AclOperation]] = [
    operation for operation in AclOperation if operation not in {AclOperation.UNKNOWN, AclOperation.ANY}
]
_DENY_SHIFT: Final = len(_OPERATIONS)
EVERY_ALLOW: Final = (1 << _DENY_SHIFT) - 1
HOSTED: Final = 1 << 2 * _DENY_SHIFT

ALLOWS: Final[dict[AclOperation, int]] = {
    operation: 1 << position for position, operation in enumerate(_OPERATIONS)
}
"""Which bit of a mask says that an operation is allowed; an operation without one cannot be asked about."""

DENIES: Final[dict[AclOperation, int]] = {operation: bit << _DENY_SHIFT for operation, bit in ALLOWS.items()}
"""Which bit of a mask says that an operation is denied."""

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
"""What an ALLOW of the operation also allows; a DENY implies nothing."""

HOST_VIEWS_MAX: Final = 256
"""Per-host views that one cell keeps; more distinct client hosts start the memory anew."""


def written_mask(operation: AclOperation) -> int:
    """Return the ALLOW bits of an entry's operation alone: ALL is every one, an unknown one none."""
    return EVERY_ALLOW if operation is AclOperation.ALL else ALLOWS.get(operation, 0)


def _allow_mask(operation: AclOperation) -> int:
    implied = IMPLIED_OPERATIONS.get(operation)
    return written_mask(operation) | (0 if implied is None else ALLOWS[implied])


_ALLOW_MASKS: Final = {operation: _allow_mask(operation) for operation in AclOperation}
_DENY_MASKS: Final = {operation: written_mask(operation) << _DENY_SHIFT for operation in AclOperation}


def binding_mask(binding: AclBinding) -> int:
    """Return the bits of one binding.

    As in Kafka whatever is no ALLOW denies. Stricter than Kafka: a pattern type that nobody knows
    grants nothing (Kafka reads it as PREFIXED).
    """
    entry = binding.entry
    hosted = 0 if entry.host == WILDCARD else HOSTED
    if entry.permission_type is not AclPermissionType.ALLOW:
        return hosted | _DENY_MASKS[entry.operation]
    if binding.pattern.pattern_type is PatternType.UNKNOWN:
        return hosted
    return hosted | _ALLOW_MASKS[entry.operation]


EntryOrder = tuple[int, str, str, int]


def entry_order(binding: AclBinding) -> EntryOrder:
    """Return where `StandardAcl.compareTo` puts a binding among those of its pattern.

    Java sorts text by UTF-16 code unit and Python by code point; that differs only between texts that
    both leave ASCII, and of two that match one question at most one does.
    """
    entry = binding.entry
    return entry.operation, entry.principal, entry.host, entry.permission_type


def decision_of(binding: AclBinding) -> Decision:
    """Return the decision that a matching binding makes."""
    allows = binding.entry.permission_type is AclPermissionType.ALLOW
    result = AuthorizationResult.ALLOWED if allows else AuthorizationResult.DENIED
    return Decision(result, Rule(RuleKind.MATCHING_ACL, binding))


def bindings_at(bindings: tuple[AclBinding, ...], host: str) -> tuple[AclBinding, ...]:
    """Return those bindings that speak of a client host."""
    return tuple([binding for binding in bindings if host_matches(binding.entry.host, host)])


class Cell:
    """What one principal may do on one pattern.

    `bindings` are in Kafka's order, which decides whom the audit line names: the first that denies,
    else the last that allows. Made decisions are kept until the cell changes; `sole` is the one that a
    cell of a single binding can make.
    """

    __slots__ = ("_decisions", "_views", "bindings", "mask", "sole")

    def __init__(self, *bindings: AclBinding) -> None:
        self.bindings = bindings
        self.sole: Decision | None = None
        self._decisions: dict[int, Decision] | None = None
        self._views: dict[str, Cell | None] | None = None
        self.mask = self.bindings_mask()

    def bindings_mask(self) -> int:
        """Return the bits of this cell's own bindings."""
        mask = 0
        for binding in self.bindings:
            mask |= binding_mask(binding)
        return mask

    def holds(self, binding: AclBinding) -> bool:
        """Return whether a binding is there."""
        return binding in self.bindings[self._position(binding) :][:1]

    def with_binding(self, binding: AclBinding) -> None:
        """Take in a binding that is not there; what it costs hardly grows with those that are."""
        position = self._position(binding)
        self.bindings = (*self.bindings[:position], binding, *self.bindings[position:])
        self._grow(binding_mask(binding))
        self.forget()

    def without_binding(self, binding: AclBinding) -> None:
        """Give up a binding that is there."""
        position = self._position(binding)
        self.bindings = self.bindings[:position] + self.bindings[position + 1 :]
        self.compile()

    def _position(self, binding: AclBinding) -> int:
        return bisect_left(self.bindings, entry_order(binding), key=entry_order)

    def _grow(self, mask: int) -> None:
        self.mask |= mask

    def compile(self) -> None:
        """Set the mask after a change of the bindings and forget what was made of the old ones."""
        self.mask = self.bindings_mask()
        self.forget()

    def forget(self) -> None:
        """Forget all made decisions and views."""
        self.sole = self._decisions = self._views = None

    def decide(self, bit: int) -> Decision:
        """Return the decision behind a bit that is set in the mask of a cell without HOSTED."""
        if self.sole is not None:
            return self.sole
        if self._decisions is None:
            if self._is_single():
                self.sole = decision_of(self.bindings[0])
                return self.sole
            self._decisions = {}
        decision = self._decisions.get(bit)
        if decision is None:
            decision = self._decisions[bit] = decision_of(self._deciding(bit))
        return decision

    def _is_single(self) -> bool:
        return len(self.bindings) == 1

    def _deciding(self, bit: int) -> AclBinding:
        matching = [binding for binding in self.bindings if binding_mask(binding) & bit]
        return matching[-1] if bit <= EVERY_ALLOW else matching[0]

    def at(self, host: str) -> "Cell | None":
        """Return what is left of this cell for a client host, None if nothing."""
        if not self.mask & HOSTED:
            return self
        views = self._views
        if views is None or len(views) >= HOST_VIEWS_MAX:
            views = self._views = {}
        if host not in views:
            views[host] = self._view(host)
        return views[host]

    def _view(self, host: str) -> "Cell | None":
        bindings = bindings_at(self.bindings, host)
        if not bindings:
            return None
        view = Cell(*bindings)
        view.mask &= ~HOSTED
        return view


class PrefixCell(Cell):
    """A cell of a PREFIXED pattern, linked to the next shorter prefix of its name.

    `mask` is the sum of its own bits and those of all shorter prefixes; `own_mask` its own alone.
    """

    __slots__ = ("name", "own_mask", "parent")

    def __init__(self, name: str, *bindings: AclBinding) -> None:
        self.name = name
        self.parent: Self | None = None
        super().__init__(*bindings)
        self.own_mask = self.mask

    def compile(self) -> None:
        """Set both masks after a change; longer prefixes must `inherit` after it."""
        self.own_mask = self.bindings_mask()
        self.inherit()

    def _grow(self, mask: int) -> None:
        self.own_mask |= mask
        self.mask |= mask

    def inherit(self) -> None:
        """Take in the bits of the shorter prefixes, which must have done so before."""
        self.mask = self.own_mask if self.parent is None else self.own_mask | self.parent.mask
        self.forget()

    def chain(self) -> Iterator["PrefixCell"]:
        """Yield this cell and those of all shorter prefixes, longest first (Kafka's order)."""
        cell: PrefixCell | None = self
        while cell is not None:
            yield cell
            cell = cell.parent

    def _is_single(self) -> bool:
        return self.parent is None and len(self.bindings) == 1

    def _deciding(self, bit: int) -> AclBinding:
        having = [cell for cell in self.chain() if cell.own_mask & bit]
        cell = having[-1] if bit <= EVERY_ALLOW else having[0]
        return Cell._deciding(cell, bit)

    def _view(self, host: str) -> "PrefixCell | None":
        view: PrefixCell | None = None
        # shortest first and no recursion: names, so chains too, can be thousands of characters long
        for cell in reversed(list(self.chain())):
            bindings = bindings_at(cell.bindings, host)
            if bindings:
                longer = PrefixCell(cell.name, *bindings)
                longer.own_mask &= ~HOSTED
                longer.parent = view
                longer.inherit()
                view = longer
        return view
