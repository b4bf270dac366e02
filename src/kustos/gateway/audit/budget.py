"""Gives each principal an hourly allowance of bytes in the audit log.

Theory of operation. Each principal has an account, a token bucket of bytes that refills with time. The
accounts are in the order of their last use, so eviction takes constant time: an account that was not used for
the time in which an empty bucket fills is full, and so equal to a new account. If no account may be evicted,
further principals share one account.

Repeated requests are recorded thousands of times a second. They take from a lease, a part of the bucket:
this costs one subtraction and does not read the clock. A principal can write at most one lease more than its
bucket holds at once, because a lease counts against the bucket only when it is used. An evicted account keeps
its lease.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from kustos.acl import KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext
from kustos.authorizer.audit import AUDITED_NAME_CHARACTERS_MAX
from kustos.protocol import Decided

HOUR_S: Final = 3600.0

BURST_SHARE: Final = 0.1
"""The share of the hourly budget that a principal can use at once: a flood must not fill the queue of the
log, for which all clients wait in mode `block`. By default about 13,000 events; 65,536 may wait."""

LEASE_SHARE: Final = 1 / 60
"""The share of the hourly budget in a lease."""

EVENT_BYTES: Final = 800
"""The approximate size of an event as JSON without its name and client id, which clients choose."""

LOGGED_NAME_CHARACTERS_MAX: Final = AUDITED_NAME_CHARACTERS_MAX + 128
"""The length of a truncated name, including the original length and digest in it."""

ESCAPED_BYTES: Final = 6
"""The most bytes of a character in JSON: an escape such as `\\u2028` has six; UTF-8 needs at most four."""

PRINCIPALS_MAX: Final = 10_000
"""Principals that have their own account, about 3 MB. All others share one account."""

PrincipalKey = tuple[str, str]


def written_bytes(text: str) -> int:
    """Return the approximate upper bound of a text's size in a line, in bytes."""
    return len(text) if text.isascii() and text.isprintable() else ESCAPED_BYTES * len(text)


def request_bytes(context: AuthorizableRequestContext) -> int:
    """Return the size of a request's event in bytes, without its resource name."""
    return EVENT_BYTES + written_bytes(context.client_id or "")


def name_bytes(item: Decided) -> int:
    """Return the size of a decision's resource name in bytes, as it is logged."""
    return written_bytes(item.action.resource_name[:LOGGED_NAME_CHARACTERS_MAX])


def key_of(principal: KafkaPrincipal) -> PrincipalKey:
    """Return the key of a principal's account."""
    return principal.principal_type, principal.name


class Account:
    """The bytes that a principal may write now."""

    __slots__ = ("at_s", "lease_bytes", "room_bytes")

    def __init__(self, room_bytes: float, at_s: float) -> None:
        self.room_bytes = room_bytes
        self.lease_bytes = 0.0
        self.at_s = at_s

    def take(self, cost_bytes: int) -> bool:
        """Take the bytes of an event from the account; return False if the account has too few."""
        if cost_bytes > self.room_bytes:
            return False
        self.room_bytes -= cost_bytes
        return True

    def lend(self, lease_bytes: float) -> None:
        """Reserve a part of the account for repeated requests."""
        self.lease_bytes = min(self.room_bytes, lease_bytes)
        self.room_bytes -= self.lease_bytes


class AuditBudget:
    """The accounts of all principals. Each event costs constant time.

    `burst_share` is the share of the hourly bytes that a principal can use at once. `monotonic_ms` is the
    clock by which accounts refill.
    """

    def __init__(
        self, bytes_per_hour: int, monotonic_ms: Callable[[], int], burst_share: float = BURST_SHARE
    ) -> None:
        self.bytes_per_hour = bytes_per_hour
        """May change at any time."""
        self._burst_share: Final = burst_share
        self._monotonic_ms: Final = monotonic_ms
        # an OrderedDict: finding the first key of a dict takes longer the more keys before it were removed
        self._accounts: Final[OrderedDict[PrincipalKey, Account]] = OrderedDict()
        self._shared: Final = Account(self._burst_bytes, monotonic_ms() / 1000)

    @property
    def _burst_bytes(self) -> float:
        return self.bytes_per_hour * self._burst_share

    def account(self, principal: KafkaPrincipal) -> Account:
        """Return the refilled account of a principal; its lease has returned to the account."""
        now_s = self._monotonic_ms() / 1000
        key = key_of(principal)
        account = self._accounts.get(key)
        if account is None:
            account = self._opened(key, now_s)
        else:
            self._accounts.move_to_end(key)
        grown_bytes = (now_s - account.at_s) / HOUR_S * self.bytes_per_hour
        account.room_bytes = min(account.room_bytes + account.lease_bytes + grown_bytes, self._burst_bytes)
        account.lease_bytes = 0.0
        account.at_s = now_s
        return account

    def _opened(self, key: PrincipalKey, now_s: float) -> Account:
        if len(self._accounts) >= PRINCIPALS_MAX:
            oldest = self._accounts[next(iter(self._accounts))]
            if now_s - oldest.at_s < HOUR_S * self._burst_share:
                return self._shared
            self._accounts.popitem(last=False)
        account = self._accounts[key] = Account(self._burst_bytes, now_s)
        return account

    def lend(self, account: Account) -> None:
        """Lend a part of an account to the principal's repeated requests."""
        account.lend(self.bytes_per_hour * LEASE_SHARE)

    def lent(self, principal: KafkaPrincipal) -> Account:
        """Return the refilled account of a principal, with a new lease."""
        account = self.account(principal)
        self.lend(account)
        return account

    def admit_one(self, principal: KafkaPrincipal) -> bool:
        """Take one event from the principal's budget; return False if the caller must count it instead."""
        return self.account(principal).take(EVENT_BYTES + len(principal.name))
