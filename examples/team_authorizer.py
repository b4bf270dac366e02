"""An authorizer of your own: topics and groups belong to teams, and a file says who is in which team.

A topic or group `payments.orders` belongs to the team `payments`, whose members may do everything with it;
everybody may describe every topic. The file is JSON: `{"payments": ["User:alice", "User:bob"]}`.

    authorizer.class.name=team_authorizer.TeamAuthorizer
    teams.file=/etc/kustos/teams.json
"""

import json
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from pathlib import Path

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import (
    AclCreateResult,
    AclDeleteResult,
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    Authorizer,
    AuthorizerServerInfo,
    Endpoint,
    KafkaApiError,
    parse_super_users,
)
from kustos.wire import ErrorCode

TEAMS_FILE = "teams.file"
OWNED = (ResourceType.TOPIC, ResourceType.GROUP)
REFUSED = KafkaApiError(ErrorCode.policy_violation, "teams are kept in a file, not in ACLs")

Teams = Mapping[str, frozenset[str]]


def read_teams(path: str) -> Teams:
    """Return the members of each team; raise ValueError or OSError if the file is invalid."""
    teams = json.loads(Path(path).read_text(encoding="utf-8"))
    members = {team: frozenset(principals) for team, principals in teams.items()}
    for principal in frozenset[str]().union(*members.values()):
        KafkaPrincipal.parse(principal)
    return members


class TeamAuthorizer(Authorizer):
    """Decides by team. Answers come from memory; the file is read at the start and at SIGHUP."""

    def __init__(self) -> None:
        self._teams: Teams = {}
        self._super_users: frozenset[str] = frozenset()

    def configure(self, configs: Mapping[str, str]) -> None:
        """Read the file; what is wrong with it keeps the node from starting."""
        if TEAMS_FILE not in configs:
            raise ValueError(f"`{TEAMS_FILE}` is not set, name the file of the teams")
        self._super_users = parse_super_users(configs.get("super.users", ""))
        self._teams = read_teams(configs[TEAMS_FILE])

    def start(self, _server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        """Nothing is left to wait for."""
        return {}

    def authorize(
        self, context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> list[AuthorizationResult]:
        """Return one result for each action, in their order."""
        return [
            AuthorizationResult.ALLOWED
            if self._allows(str(context.principal), action)
            else AuthorizationResult.DENIED
            for action in actions
        ]

    def _allows(self, principal: str, action: Action) -> bool:
        if principal in self._super_users:
            return True
        if action.resource_type is ResourceType.TOPIC and action.operation is AclOperation.DESCRIBE:
            return True
        team, dot, _ = action.resource_name.partition(".")
        owned = action.resource_type in OWNED and bool(dot)
        return owned and principal in self._teams.get(team, ())

    def acls(self, acl_filter: AclBindingFilter) -> Iterator[AclBinding]:
        """Return the teams as ACLs: for `kafka-acls --list`, and for questions by resource type."""
        for binding in self._bindings():
            if acl_filter.matches(binding):
                yield binding

    def _bindings(self) -> Iterator[AclBinding]:
        allow = AclPermissionType.ALLOW
        every_topic = ResourcePattern(ResourceType.TOPIC, WILDCARD)
        yield AclBinding(
            every_topic, AccessControlEntry(EVERY_PRINCIPAL, WILDCARD, AclOperation.DESCRIBE, allow)
        )
        for team, members in self._teams.items():
            for kind in OWNED:
                pattern = ResourcePattern(kind, f"{team}.", PatternType.PREFIXED)
                for member in sorted(members):
                    yield AclBinding(pattern, AccessControlEntry(member, WILDCARD, AclOperation.ALL, allow))

    @property
    def acl_count(self) -> int:
        """How many ACLs the teams amount to."""
        return sum(1 for _ in self._bindings())

    async def create_acls(
        self, _context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Refuse every one; an authorizer with a store would await it here."""
        return [AclCreateResult(REFUSED) for _ in bindings]

    async def delete_acls(
        self, _context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        """Refuse every one."""
        return [AclDeleteResult(exception=REFUSED) for _ in filters]

    def reconfigurable_configs(self) -> frozenset[str]:
        """Return the settings that SIGHUP may change."""
        return frozenset({TEAMS_FILE, "super.users"})

    def validate_reconfiguration(self, configs: Mapping[str, str]) -> None:
        """Raise if the new file is invalid; the old teams then stay."""
        parse_super_users(configs.get("super.users", ""))
        read_teams(configs[TEAMS_FILE])

    def reconfigure(self, configs: Mapping[str, str]) -> None:
        """Put the new settings in force."""
        self.configure(configs)

    def close(self) -> None:
        """There is nothing to release."""
