"""Privilege escalation: the rights that give other rights, as a table, and their closure.

Theory. `analysis.what_can` gives exactly what the ACLs allow a principal. Some rights give more rights:

- ALTER on the cluster writes ACLs (CreateAcls, DeleteAcls) and passwords of SCRAM users, super users too:
  it reaches everything.
- CLUSTER_ACTION on the cluster acts as a broker: it fetches any partition as a follower, and sends requests
  for any principal in an Envelope (KIP-590) if it can connect to a controller: everything.
- CREATE_TOKENS on a user creates a delegation token of that user (KIP-373), DESCRIBE_TOKENS on a user and
  DESCRIBE on a delegation token show the token's HMAC, which is its password: a login with it is `User:` and
  the owner's name, whatever the owner's type.
- ALTER_CONFIGS on the cluster changes listeners and logins of brokers (`sasl.jaas.config` among them): with
  Kafka's own PLAIN it can create users. It depends on the set-up, so it is reported but not followed.

A login by token cannot request tokens: from such a login only the other rights are followed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Any, Final, NamedTuple

from kustos.acl import EVERY_PRINCIPAL, AclBinding, AclOperation, ResourceType
from kustos.analysis.access import what_can
from kustos.analysis.kernel import ACLS_ALONE, AnalysisError, Rules
from kustos.analysis.regions import Region

IDENTITIES_MAX: Final = 10_000
"""Identities followed from one principal: a longer list is unreadable."""


@unique
class Means(StrEnum):
    """The right by which a step reaches more."""

    SUPER_USER = "SUPER_USER"
    ALTER_CLUSTER = "ALTER_CLUSTER"
    CLUSTER_ACTION = "CLUSTER_ACTION"
    CREATE_TOKENS = "CREATE_TOKENS"
    DESCRIBE_TOKENS = "DESCRIBE_TOKENS"
    DESCRIBE_TOKEN = "DESCRIBE_TOKEN"  # noqa: S105 (a word of Kafka's)
    ALTER_CONFIGS = "ALTER_CONFIGS"


WORDS: Final = {
    Means.SUPER_USER: "is a super user: may do everything, whatever the ACLs say",
    Means.ALTER_CLUSTER: "may ALTER the cluster: can give itself any right and any SCRAM user a new password",
    Means.CLUSTER_ACTION: "may CLUSTER_ACTION: can act as a broker, fetch every topic and speak for anybody",
    Means.CREATE_TOKENS: "may CREATE_TOKENS on the user: can log in as them by a delegation token",
    Means.DESCRIBE_TOKENS: "may DESCRIBE_TOKENS of the user: can log in as them by a token they have",
    Means.DESCRIBE_TOKEN: "may DESCRIBE the delegation token: can log in as its owner",
    Means.ALTER_CONFIGS: "may ALTER_CONFIGS of the cluster: can change listeners and logins of brokers",
}
"""Each as a predicate, to follow the principal's name."""

_CLUSTER: Final = (
    (AclOperation.ALTER, Means.ALTER_CLUSTER),
    (AclOperation.CLUSTER_ACTION, Means.CLUSTER_ACTION),
)


class Token(NamedTuple):
    """A delegation token that exists: its id and its owner (`Type:name`)."""

    token_id: str
    owner: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step from an identity to another; `to` is None where everything is reached."""

    identity: str
    means: Means
    to: str | None
    hosts: str

    def text(self) -> str:
        """Return the step in words."""
        target = "everything" if self.to is None else f"`{self.to}`"
        return f"`{self.identity}` {WORDS[self.means]} ({target}, from {self.hosts})"

    def to_json(self) -> dict[str, Any]:
        """Return the step as an object."""
        return {"identity": self.identity, "means": self.means.value, "to": self.to, "hosts": self.hosts}


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity that a principal can take: the steps to it, and what the ACLs allow it."""

    principal: str
    path: tuple[Step, ...]
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class BlastRadius:
    """What one compromised principal can reach: itself first, then others as they are reached.

    `everything` is the shortest way to all rights, None if there is none. `conditional` are steps that depend
    on how the brokers are set up.
    """

    principal: str
    identities: tuple[Identity, ...]
    everything: tuple[Step, ...] | None
    conditional: tuple[Step, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return it as an object of plain values."""
        return {
            "principal": self.principal,
            "everything": None if self.everything is None else [step.to_json() for step in self.everything],
            "conditional": [step.to_json() for step in self.conditional],
            "identities": [
                {
                    "principal": identity.principal,
                    "path": [step.to_json() for step in identity.path],
                    "regions": [region.to_json() for region in identity.regions],
                }
                for identity in self.identities
            ],
        }


class Escalation:
    """A set of ACLs with known principals and tokens, for many principals.

    `known` are principals that exist in addition to those in ACLs, `tokens` the delegation tokens.
    `has_tokens` False: delegation tokens are switched off.
    """

    def __init__(
        self,
        bindings: Iterable[AclBinding],
        rules: Rules = ACLS_ALONE,
        *,
        known: Iterable[str] = (),
        tokens: Iterable[Token] = (),
        has_tokens: bool = True,
    ) -> None:
        self._rules: Final = rules
        self._bindings: Final = tuple(bindings)
        self._by_principal: Final[dict[str, list[AclBinding]]] = {}
        for binding in self._bindings:
            self._by_principal.setdefault(binding.entry.principal, []).append(binding)
        named = (self._by_principal.keys() | rules.super_users | set(known)) - {EVERY_PRINCIPAL}
        self._owners: Final = sorted(named | {token.owner for token in tokens}) if has_tokens else []
        self._tokens: Final = sorted(tokens) if has_tokens else []
        self._regions: Final[dict[str, tuple[Region, ...]]] = {}

    @property
    def principals(self) -> list[str]:
        """The principals that ACLs name, and the super users."""
        return sorted((self._by_principal.keys() | self._rules.super_users) - {EVERY_PRINCIPAL})

    def regions(self, principal: str) -> tuple[Region, ...]:
        """Return exactly what the ACLs allow a principal; raise `AnalysisError` for too many regions."""
        found = self._regions.get(principal)
        if found is None:
            rules = self._rules
            own = (*self._by_principal.get(principal, ()), *self._by_principal.get(EVERY_PRINCIPAL, ()))
            # with allow-by-default all ACLs matter: they disable the default for their resources
            bindings = self._bindings if rules.allow_everyone_if_no_acl_found else own
            found = self._regions[principal] = what_can(bindings, principal, rules)
        return found

    def of(self, principal: str) -> BlastRadius:
        """Return what a principal can reach by the fewest steps; raise `AnalysisError` for too many."""
        identities: list[Identity] = []
        conditional: list[Step] = []
        queue = [Identity(principal, (), self.regions(principal))]
        seen = {principal}
        everything: tuple[Step, ...] | None = None
        while queue:
            identity = queue.pop(0)
            identities.append(identity)
            for step in self._steps(identity):
                path = (*identity.path, step)
                if step.means is Means.ALTER_CONFIGS:
                    conditional.append(step)
                elif step.to is None:
                    everything = everything or path
                elif step.to not in seen:
                    seen.add(step.to)
                    queue.append(Identity(step.to, path, self.regions(step.to)))
            if len(seen) > IDENTITIES_MAX:
                raise AnalysisError(
                    f"`{principal}` can become more than {IDENTITIES_MAX} others, take tokens away first"
                )
        return BlastRadius(principal, tuple(identities), everything, tuple(conditional))

    def _steps(self, identity: Identity) -> Iterator[Step]:
        principal = identity.principal
        if principal in self._rules.super_users:
            yield Step(principal, Means.SUPER_USER, None, "anywhere")
            return
        for region in identity.regions:
            hosts = region.hosts.text()
            if region.resource_type is ResourceType.CLUSTER:
                for operation, means in _CLUSTER:
                    if operation in region.operations:
                        yield Step(principal, means, None, hosts)
                if AclOperation.ALTER_CONFIGS in region.operations:
                    yield Step(principal, Means.ALTER_CONFIGS, None, hosts)
        if identity.path:
            return
        for region in identity.regions:
            yield from self._tokens_of(principal, region)

    def _tokens_of(self, principal: str, region: Region) -> Iterator[Step]:
        hosts = region.hosts.text()
        if region.resource_type is ResourceType.USER:
            for owner in self._owners:
                if owner in region.names and owner != principal:
                    if AclOperation.CREATE_TOKENS in region.operations:
                        yield Step(principal, Means.CREATE_TOKENS, login_of(owner), hosts)
                    elif AclOperation.DESCRIBE_TOKENS in region.operations:
                        yield Step(principal, Means.DESCRIBE_TOKENS, login_of(owner), hosts)
        if (
            region.resource_type is ResourceType.DELEGATION_TOKEN
            and AclOperation.DESCRIBE in region.operations
        ):
            for token in self._tokens:
                if token.token_id in region.names and token.owner != principal:
                    yield Step(principal, Means.DESCRIBE_TOKEN, login_of(token.owner), hosts)


def login_of(owner: str) -> str:
    """Return the principal of a login with an owner's token: `User:` and the name, whatever the type."""
    return f"User:{owner.partition(':')[2]}"


def blast_radius(
    bindings: Iterable[AclBinding], principal: str, rules: Rules = ACLS_ALONE, **options: Any
) -> BlastRadius:
    """Return what one principal can reach; `options` are those of `Escalation`."""
    return Escalation(bindings, rules, **options).of(principal)
