"""What a migration found in another system, and the plan that makes a target hold it. No IO.

Nothing is removed: what only the target has stays, and is counted. After a plan is applied, the next plan is
empty, so a migration is idempotent.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from kustos.acl import AclBinding, AclPermissionType
from kustos.analysis.lint import acl_text
from kustos.cli.acls.arguments import sorted_bindings
from kustos.metadata import ScramCredential
from kustos.metadata.control import ApiError, ScramCopy, copy_error, new_acl_error
from kustos.metadata.image import ScramKey
from kustos.metadata.records import DelegationTokenRecord


@dataclass(frozen=True, slots=True)
class MigrationRefusal:
    """An item that should be migrated but cannot: it would change its meaning, or cannot be parsed."""

    where: str
    what: str
    reason: str
    is_user: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Items that this command does not migrate; `count` of them."""

    where: str
    what: str
    count: int


@dataclass(frozen=True, slots=True)
class NewPassword:
    """A user who needs a new password, since the keys of the old one cannot be read or cannot be sent."""

    user: str
    mechanism: int
    iterations: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationSource:
    """Everything found. `acls` maps each ACL to its location; `closed` are users without their keys."""

    name: str
    acls: Mapping[AclBinding, str]
    credentials: Mapping[ScramKey, ScramCredential] = field(default_factory=dict, repr=False)
    closed: tuple[NewPassword, ...] = ()
    tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)
    refused: tuple[MigrationRefusal, ...] = ()
    left: tuple[LeftOut, ...] = ()


CANNOT_SEND = "Kafka's API takes passwords, not the keys that were made of them"
DIFFERS = "another password is set for it there, which stays without `--replace-users`"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """The target before the migration. `credentials` is None if keys can be neither read nor set."""

    name: str
    metadata_version: int
    acls: Set[AclBinding]
    iterations: Mapping[ScramKey, int]
    credentials: Mapping[ScramKey, ScramCredential] | None = field(default=None, repr=False)
    tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """What to create, in this order, and why the rest is not created."""

    source: str
    target: str
    acls: tuple[AclBinding, ...] = ()
    acls_present: int = 0
    acls_only_there: int = 0
    credentials: tuple[ScramCopy, ...] = ()
    credentials_present: int = 0
    tokens: tuple[DelegationTokenRecord, ...] = ()
    tokens_present: int = 0
    new_passwords: tuple[NewPassword, ...] = ()
    refused: tuple[MigrationRefusal, ...] = ()
    left: tuple[LeftOut, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to create."""
        return not (self.acls or self.credentials or self.tokens)

    @property
    def is_complete(self) -> bool:
        """Whether the target holds everything it should once the plan is applied."""
        return not (self.refused or self.new_passwords)


def make_plan(
    source: MigrationSource, target: TargetState, *, now_ms: int, replace_users: bool = False
) -> MigrationPlan:
    """Return the plan for the current state of a target.

    The target keeps a credential that differs from the source's unless `replace_users`: it may be the
    newer one. Denials come first, users last, so that no intermediate step opens anything.
    """
    plan = MigrationPlan(source=source.name, target=target.name, refused=source.refused, left=source.left)
    plan = _with_acls(plan, source, target)
    plan = _with_credentials(plan, source, target, replace_users=replace_users)
    return _with_tokens(plan, source, target, now_ms)


def _with_acls(plan: MigrationPlan, source: MigrationSource, target: TargetState) -> MigrationPlan:
    make: list[AclBinding] = []
    refused: list[MigrationRefusal] = []
    for binding, where in source.acls.items():
        if binding in target.acls:
            continue
        error = new_acl_error(binding, target.metadata_version)
        if error is None:
            make.append(binding)
        else:
            refused.append(MigrationRefusal(where, acl_text(binding), _refused_by_kafka(error)))
    return replace(
        plan,
        acls=tuple(sorted(sorted_bindings(make), key=_is_no_denial)),
        acls_present=len(source.acls) - len(make) - len(refused),
        acls_only_there=sum(binding not in source.acls for binding in target.acls),
        refused=(*plan.refused, *refused),
    )


def _is_no_denial(binding: AclBinding) -> bool:
    return binding.entry.permission_type is not AclPermissionType.DENY


def _refused_by_kafka(error: ApiError) -> str:
    return f"Kafka refuses it: {error.message or error.code.name}"


def _with_credentials(
    plan: MigrationPlan, source: MigrationSource, target: TargetState, *, replace_users: bool
) -> MigrationPlan:
    fates = [
        _fate(ScramCopy(user, mechanism, credential), target, replace_users=replace_users)
        for (user, mechanism), credential in sorted(source.credentials.items(), key=lambda item: item[0])
    ]
    closed = source.closed
    if target.credentials is None:
        # a file with keys would not help here
        closed = tuple(replace(user, reason=CANNOT_SEND) for user in closed)
    fates += [None if (user.user, user.mechanism) in target.iterations else user for user in closed]
    return replace(
        plan,
        credentials=tuple(fate for fate in fates if isinstance(fate, ScramCopy)),
        credentials_present=fates.count(None),
        new_passwords=tuple(fate for fate in fates if isinstance(fate, NewPassword)),
    )


def _fate(copy: ScramCopy, target: TargetState, *, replace_users: bool) -> ScramCopy | NewPassword | None:
    """Return the credential to set, or why it cannot be set, or None if it is already there."""
    key = (copy.user, copy.mechanism)
    if target.credentials is None:
        return None if key in target.iterations else _new_password(copy, CANNOT_SEND)
    kept = target.credentials.get(key)
    if kept == copy.credential:
        return None
    error = copy_error(copy, target.metadata_version)
    if error is not None:
        return _new_password(copy, _refused_by_kafka(error))
    return copy if kept is None or replace_users else _new_password(copy, DIFFERS)


def _new_password(copy: ScramCopy, reason: str) -> NewPassword:
    return NewPassword(copy.user, copy.mechanism, copy.credential.iterations, reason)


def _with_tokens(
    plan: MigrationPlan, source: MigrationSource, target: TargetState, now_ms: int
) -> MigrationPlan:
    missing = [token for token_id, token in source.tokens.items() if token_id not in target.tokens]
    alive = [token for token in missing if token.expiration_timestamp_ms > now_ms]
    left = [
        LeftOut("the source", "delegation tokens that have expired", len(missing) - len(alive)),
        LeftOut("the source", "delegation tokens, which no API takes", len(alive)),
    ]
    takes = target.credentials is not None
    return replace(
        plan,
        tokens=tuple(alive) if takes else (),
        tokens_present=len(source.tokens) - len(missing),
        left=(*plan.left, *(each for each in left[: 1 if takes else 2] if each.count)),
    )
