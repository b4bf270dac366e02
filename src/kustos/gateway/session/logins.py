"""Derives the outcome of a login from the SASL machine's effects, before they take effect."""

from typing import Final, NamedTuple, Protocol

from kustos.acl import KafkaPrincipal
from kustos.auth import Authenticated, Close, Fail, ProofRefused, SaslEffect, SaslServerMachine
from kustos.authorizer import SecurityEvent, SecurityEventType, SecurityResult
from kustos.authorizer.audit import cut

LOG_IS_FULL: Final = "the audit log is full, so no login is accepted"


class Refused(Protocol):
    """A failure with a reason."""

    @property
    def reason(self) -> str:
        """The reason, in one sentence."""


class Login(NamedTuple):
    """The outcome of a login: a `principal`, or the reason of its `failure`."""

    listener_name: str
    security_protocol: str
    host: str
    mechanism: str
    claimed_name: str | None
    is_reauthentication: bool
    principal: KafkaPrincipal | None = None
    failure: str | None = None

    def event(self, time_ms: int) -> SecurityEvent:
        """Return the login as an event at this time."""
        failed = self.failure is not None
        types = SecurityEventType
        return SecurityEvent(
            event_type=types.REAUTHENTICATION if self.is_reauthentication else types.LOGIN,
            result=SecurityResult.FAILURE if failed else SecurityResult.SUCCESS,
            time_ms=time_ms,
            first_time_ms=time_ms,
            listener_name=self.listener_name,
            security_protocol=self.security_protocol,
            host=self.host,
            principal=None if failed else self.principal,
            mechanism=self.mechanism or None,
            failure=None if self.failure is None else cut(self.failure),
            claimed_name=None if self.claimed_name is None else cut(self.claimed_name),
            detail=None if self.principal is None else cut(", ".join(self.principal.group_texts)) or None,
        )


def live_login(
    machine: SaslServerMachine,
    principal: KafkaPrincipal,
    listener_name: str,
    security_protocol: str,
    host: str,
) -> Login:
    """Return the login that a session is based on."""
    return Login(
        listener_name=listener_name,
        security_protocol=security_protocol,
        host=host,
        mechanism=machine.mechanism,
        claimed_name=None,
        is_reauthentication=False,
        principal=principal,
    )


_FAILURES: Final = (ProofRefused, Fail, Close)

CERTIFICATE_LOGIN: Final = "SSL"
"""The label of a login by certificate, next to the names of SASL mechanisms."""


def certificate_login(
    listener_name: str, security_protocol: str, host: str, outcome: KafkaPrincipal | Refused
) -> Login:
    """Return the login by certificate: a principal, or a refusal."""
    return Login(
        listener_name=listener_name,
        security_protocol=security_protocol,
        host=host,
        mechanism="",
        claimed_name=None,
        is_reauthentication=False,
        principal=outcome if isinstance(outcome, KafkaPrincipal) else None,
        failure=None if isinstance(outcome, KafkaPrincipal) else outcome.reason,
    )


def login_among(
    effects: tuple[SaslEffect, ...],
    machine: SaslServerMachine,
    listener_name: str,
    security_protocol: str,
    host: str,
) -> Login | None:
    """Return the login that these effects of a machine complete, None if there is none."""
    for effect in effects:
        principal: KafkaPrincipal | None = None
        failure: str | None = None
        is_reauthentication = machine.is_reauthenticating
        if isinstance(effect, Authenticated):
            principal, is_reauthentication = effect.principal, effect.is_reauthentication
        elif isinstance(effect, _FAILURES):
            if isinstance(effect, Fail) and effect.was_announced:
                # the login has ended before
                return None
            failure = effect.reason
        else:
            continue
        return Login(
            listener_name=listener_name,
            security_protocol=security_protocol,
            host=host,
            mechanism=machine.mechanism,
            claimed_name=machine.claimed_name,
            is_reauthentication=is_reauthentication,
            principal=principal,
            failure=failure,
        )
    return None
