"""Shadow decisions: evaluates ACLs that are not enforced, in addition to the enforced decision.

Two kinds of ACLs are evaluated without being enforced: the ACLs of the node on a listener in mode `shadow`,
and a candidate that will replace them. Shadow decisions are only recorded. A missing answer is a separate
outcome and never counts as agreement.
"""

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final, NamedTuple

from kustos.acl import AclBinding
from kustos.authorizer.spi.values import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    AuthorizerError,
    Decision,
    Rule,
    RuleKind,
)
from kustos.authorizer.standard import StandardAuthorizer

PASSED: Final = Decision(AuthorizationResult.ALLOWED, Rule(RuleKind.SHADOW_MODE))
"""The decision for a request that passes although the ACLs deny it."""

ERROR: Final = "ERROR"

ID_CHARACTERS: Final = 12
"""The number of characters of a set's digest in events: enough to distinguish the sets of one operator."""


class ShadowDecision(NamedTuple):
    """The decision of ACLs that are not enforced; if `decision` is None, `failure` is the reason."""

    decision: Decision | None
    failure: str = ""
    acls_id: str | None = None
    """The id of the set of ACLs, if there may be several."""

    @property
    def result(self) -> str:
        """ALLOWED, DENIED or ERROR."""
        return ERROR if self.decision is None else self.decision.result.value

    @property
    def rule(self) -> str:
        """The text of the rule, as in Kafka's audit log."""
        return f"Error({self.failure})" if self.decision is None else str(self.decision.rule)


class SharedRules(NamedTuple):
    """The rules besides the ACLs, which are the same for the ACLs in force and for a candidate."""

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False


class CandidateAcls:
    """A set of ACLs that is evaluated in addition to the one in force. `rules` returns the current shared
    rules.

    `id` identifies the set: equal sets have equal ids. Raises `AclFaultError` for ACLs that cannot be loaded.
    It is not thread-safe after the first decision.
    """

    def __init__(self, bindings: Iterable[AclBinding], rules: Callable[[], SharedRules]) -> None:
        distinct = tuple(dict.fromkeys(bindings))
        texts = sorted(each.audit_text() for each in distinct)
        self.id: Final = sha256("\n".join(texts).encode(errors="surrogatepass")).hexdigest()[:ID_CHARACTERS]
        self.acl_count: Final = len(distinct)
        # counts covered resources from the start, so that a later change of the default costs nothing
        self._authorizer: Final = StandardAuthorizer.of(distinct, allow_everyone_if_no_acl_found=True)
        self._rules: Final = rules
        self._applied: SharedRules | None = None

    def difference(
        self,
        context: AuthorizableRequestContext,
        action: Action,
        name: str | None,
        is_allowed: bool,
    ) -> ShadowDecision | None:
        """Return the decision on an action if it differs from the enforced one or is missing, else None.

        `name` None: the action is on any resource of the type. `is_allowed`: the decision in force.
        """
        try:
            decision = self._decide(context, action, name)
        except AuthorizerError as error:
            return ShadowDecision(None, type(error).__name__, self.id)
        if decision.allowed == is_allowed:
            return None
        return ShadowDecision(decision, acls_id=self.id)

    def _decide(self, context: AuthorizableRequestContext, action: Action, name: str | None) -> Decision:
        rules = self._rules()
        if rules != self._applied:
            self._authorizer.reconfigure(**rules._asdict())
            self._applied = rules
        if name is None:
            return self._authorizer.authorize_by_resource_type(
                context, action.operation, action.resource_type
            )
        return self._authorizer.authorize(context, (action,))[0]
