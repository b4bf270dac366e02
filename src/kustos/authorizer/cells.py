"""The entries of one principal on one resource pattern, compiled to bits.

A cell's mask answers "is there an entry that ..." for all sixteen operations at once:

    bits  0-15   ALLOW, with what the operation implies (READ implies DESCRIBE, ...)
    bits 16-31   DENY, which implies nothing
    bits 32-47   ALLOW as written, which is all that `authorizeByResourceType` looks at
    bit  48      some entry names a host: the other bits hold for somebody, `at(host)` says for whom

Source: `StandardAuthorizerData.findResult` and `Authorizer.authorizeByResourceType` of Kafka 4.4.0.
"""

from collections.abc import Iterator
from typing import Final, Self

from kustos.acl import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    host_matches,
)
from kustos.authorizer.spi import AuthorizationResult, Decision, Rule, RuleKind

ALLOWED_BIT: Final = 1
DENIED_BIT: Final = 1 << 16
WRITTEN_BIT: Final = 1 << 32
HOSTED_BIT: Final = 1 << 48
DECIDING_BITS: Final = ALLOWED_BIT | DENIED_BIT
_EVERY_OPERATION: Final = 0xFFFF

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


def _written_bits(operation: AclOperation) -> int:
    return _EVERY_OPERATION if operation is AclOperation.ALL else 1 << operation


def _allow_mask(operation: AclOperation) -> int:
    written = _written_bits(operation)
    implied = IMPLIED_OPERATIONS.get(operation)
    return written * WRITTEN_BIT | written | (0 if implied is None else 1 << implied)


_ALLOW_MASKS: Final = {operation: _allow_mask(operation) for operation in AclOperation}
_DENY_MASKS: Final = {operation: _written_bits(operation) * DENIED_BIT for operation in AclOperation}


def binding_mask(binding: AclBinding) -> int:
    """Return the bits of one binding.

    As in Kafka whatever is no ALLOW denies. Stricter than Kafka: a pattern type that nobody knows
    grants nothing (Kafka reads it as PREFIXED).
    """
    entry = binding.entry
    hosted = 0 if entry.host == WILDCARD else HOSTED_BIT
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


class Cell:
    """What one principal may do on one pattern.

    `bindings` are in Kafka's order, which decides whom the audit line names: the first that denies,
    else the last that allows. `denying` and `allowing` ask for a cell whose mask has that bit and has
    no HOSTED bit.
    """

    __slots__ = ("_decisions", "_sole", "_views", "bindings", "mask")

    def __init__(self, *bindings: AclBinding) -> None:
        self.bindings = bindings
        self._sole: Decision | None = None
        self._decisions: dict[int, Decision] | None = None
        self._views: dict[str, Cell | None] | None = None
        self.mask = self.written_mask()

    def written_mask(self) -> int:
        """Return the bits of this cell's own bindings."""
        mask = 0
        for binding in self.bindings:
            mask |= binding_mask(binding)
        return mask

    def with_binding(self, binding: AclBinding) -> None:
        """Take in a binding."""
        self.bindings = tuple(sorted((*self.bindings, binding), key=entry_order))
        self.forget()

    def without_binding(self, binding: AclBinding) -> None:
        """Give up a binding."""
        self.bindings = tuple([other for other in self.bindings if other != binding])
        self.forget()

    def forget(self) -> None:
        """Compile anew after a change."""
        self.mask = self.written_mask()
        self._sole = self._decisions = self._views = None

    def denying(self, operation: AclOperation) -> Decision:
        """Return the decision of the first binding that denies the operation."""
        return self._decided(operation, DENIED_BIT << operation)

    def allowing(self, operation: AclOperation) -> Decision:
        """Return the decision of the last binding that allows the operation."""
        return self._decided(operation + 16, ALLOWED_BIT << operation)

    def _decided(self, key: int, wanted: int) -> Decision:
        if self._sole is not None:
            return self._sole
        if self._decisions is None:
            if len(self.bindings) == 1 and self.mask & wanted:
                self._sole = decision_of(self.bindings[0])
                return self._sole
            self._decisions = {}
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decisions[key] = decision_of(self._deciding(wanted))
        return decision

    def _deciding(self, wanted: int) -> AclBinding:
        matching = [binding for binding in self.bindings if binding_mask(binding) & wanted]
        return matching[-1] if wanted < DENIED_BIT else matching[0]

    def at(self, host: str) -> "Cell | None":
        """Return what is left of this cell for a client host, None if nothing."""
        if not self.mask & HOSTED_BIT:
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
        cell = Cell(*bindings)
        cell.mask &= ~HOSTED_BIT
        return cell


def bindings_at(bindings: tuple[AclBinding, ...], host: str) -> tuple[AclBinding, ...]:
    """Return those bindings that speak of a client host."""
    return tuple([binding for binding in bindings if host_matches(binding.entry.host, host)])


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

    def forget(self) -> None:
        """Compile anew after a change of this cell; its longer prefixes need `inherit` after it."""
        super().forget()
        self.own_mask = self.mask
        self.inherit()

    def inherit(self) -> None:
        """Take in the bits of the shorter prefixes, which must have done so before."""
        self.mask = self.own_mask if self.parent is None else self.own_mask | self.parent.mask
        self._sole = self._decisions = self._views = None

    def chain(self) -> Iterator["PrefixCell"]:
        """Yield this cell and those of all shorter prefixes, longest first (Kafka's order)."""
        cell: PrefixCell | None = self
        while cell is not None:
            yield cell
            cell = cell.parent

    def _decided(self, key: int, wanted: int) -> Decision:
        decisions = self._decisions
        if decisions is None:
            decisions = self._decisions = {}
        decision = decisions.get(key)
        if decision is None:
            cells = [cell for cell in self.chain() if cell.own_mask & wanted]
            cell = cells[-1] if wanted < DENIED_BIT else cells[0]
            decision = decisions[key] = decision_of(cell._deciding(wanted))
        return decision

    def _view(self, host: str) -> "PrefixCell | None":
        view: PrefixCell | None = None
        # shortest first and no recursion: names, so chains too, can be thousands of characters long
        for cell in reversed(list(self.chain())):
            bindings = bindings_at(cell.bindings, host)
            if bindings:
                longer = PrefixCell(cell.name, *bindings)
                longer.own_mask &= ~HOSTED_BIT
                longer.parent = view
                longer.inherit()
                view = longer
        return view
