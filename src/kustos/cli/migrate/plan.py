"""What has to be done so that a target holds what a source does. No IO.

Nothing is taken away: what only the target has stays, and is counted. The plan of what was carried out
is empty, so whoever asks twice changes nothing twice.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from kustos.acl import AclBinding, AclPermissionType
from kustos.analysis.lint.findings import acl_text
from kustos.cli.acls.mapping import sorted_bindings
from kustos.cli.migrate.source import Left, NewPassword, Refusal, Source
from kustos.metadata.control import ScramCopy, copy_error, new_acl_error
from kustos.metadata.control.results import ApiError
from kustos.metadata.image import ScramKey
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.scram import ScramCredential

CANNOT_SEND = "Kafka's API takes passwords, not the keys that were made of them"
DIFFERS = "another password is set for it there, which stays without `--replace-users`"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """What a target holds before. `credentials` is None where keys can be neither seen nor set."""

    name: str
    metadata_version: int
    acls: Set[AclBinding]
    iterations: Mapping[ScramKey, int]
    credentials: Mapping[ScramKey, ScramCredential] | None = field(default=None, repr=False)
    tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to make, in the order in which it is made, and why the rest is not made."""

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
    refused: tuple[Refusal, ...] = ()
    left: tuple[Left, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to make."""
        return not (self.acls or self.credentials or self.tokens)

    @property
    def is_complete(self) -> bool:
        """Whether the target holds all that should go there once this is carried out."""
        return not (self.refused or self.new_passwords)


def make_plan(source: Source, target: TargetState, *, now_ms: int, replace_users: bool = False) -> Plan:
    """Return the plan for a target as it is now.

    A credential that differs from the target's stays as it is there unless `replace_users`: that one may
    be the newer. Denials come first, users last, so that what is made step by step never opens anything.
    """
    plan = Plan(source=source.name, target=target.name, refused=source.refused, left=source.left)
    plan = _with_acls(plan, source, target)
    plan = _with_credentials(plan, source, target, replace_users=replace_users)
    return _with_tokens(plan, source, target, now_ms)


def _with_acls(plan: Plan, source: Source, target: TargetState) -> Plan:
    make: list[AclBinding] = []
    refused: list[Refusal] = []
    for binding, where in source.acls.items():
        if binding in target.acls:
            continue
        error = new_acl_error(binding, target.metadata_version)
        if error is None:
            make.append(binding)
        else:
            refused.append(Refusal(where, acl_text(binding), _refused_by_kafka(error)))
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


def _with_credentials(plan: Plan, source: Source, target: TargetState, *, replace_users: bool) -> Plan:
    fates = [
        _fate(ScramCopy(user, mechanism, credential), target, replace_users=replace_users)
        for (user, mechanism), credential in sorted(source.credentials.items(), key=lambda item: item[0])
    ]
    closed = source.closed
    if target.credentials is None:
        # no file of keys would help here
        closed = tuple(replace(user, reason=CANNOT_SEND) for user in closed)
    fates += [None if (user.user, user.mechanism) in target.iterations else user for user in closed]
    return replace(
        plan,
        credentials=tuple(fate for fate in fates if isinstance(fate, ScramCopy)),
        credentials_present=fates.count(None),
        new_passwords=tuple(fate for fate in fates if isinstance(fate, NewPassword)),
    )


def _fate(copy: ScramCopy, target: TargetState, *, replace_users: bool) -> ScramCopy | NewPassword | None:
    """Return the credential to set, or why it cannot be set, or None if it is there."""
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


def _with_tokens(plan: Plan, source: Source, target: TargetState, now_ms: int) -> Plan:
    missing = [token for token_id, token in source.tokens.items() if token_id not in target.tokens]
    alive = [token for token in missing if token.expiration_timestamp_ms > now_ms]
    left = [
        Left("the source", "delegation tokens that have expired", len(missing) - len(alive)),
        Left("the source", "delegation tokens, which no API takes", len(alive)),
    ]
    takes = target.credentials is not None
    return replace(
        plan,
        tokens=tuple(alive) if takes else (),
        tokens_present=len(source.tokens) - len(missing),
        left=(*plan.left, *(each for each in left[: 1 if takes else 2] if each.count)),
    )
