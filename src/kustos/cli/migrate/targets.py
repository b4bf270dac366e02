"""Targets of a migration: a formatted metadata directory, or a running cluster by its admin API."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVar

from kustos.acl import AclPermissionType
from kustos.analysis.lint import acl_text
from kustos.cli.failures import CommandError, ExitCode, failure_of_items, kafka_error_text, usage_error
from kustos.cli.migrate.plan import MigrationPlan, MigrationRefusal, TargetState
from kustos.cli.session import opened_store
from kustos.cli.terminal import progress
from kustos.metadata import METADATA_VERSION_FEATURE, MINIMUM_LEVEL
from kustos.metadata.control import Copy

if TYPE_CHECKING:
    from kustos.client import KafkaError
    from kustos.client.admin import AdminClient
    from kustos.metadata.image import MetadataImage
    from kustos.metadata.store import MetadataStore

CLUSTER_SCHEME: Final = "kafka://"

BATCH_ITEMS: Final = 5_000
"""Items per write to a directory: below the 10,000 that one request may hold, a few MB of records."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """The outcome of a plan: what was created, what the target refused after all, and its error."""

    plan: MigrationPlan
    failure: CommandError | None = None


class Target(Protocol):
    """Reports its state, and applies a plan."""

    def state(self) -> TargetState:
        """Return the current state."""

    def carry_out(self, plan: MigrationPlan) -> CarriedOut:
        """Create everything in the plan, denials first; return what was created."""


@dataclass(frozen=True, slots=True)
class TargetPlace:
    """The target of the command line: a directory, or the servers of a cluster."""

    place: Path | str
    command_config: Path | None
    with_users: bool = True

    @classmethod
    def of(cls, text: str, command_config: Path | None, *, with_users: bool) -> Self:
        """Return the target of `DIR` or `kafka://HOST:PORT`; raise a usage error for a missing directory."""
        if text.startswith(CLUSTER_SCHEME):
            return cls(text.removeprefix(CLUSTER_SCHEME), command_config, with_users)
        if command_config is not None:
            raise usage_error(f"`--command-config` does not apply to the directory `{text}`, remove it")
        if not Path(text).is_dir():
            raise usage_error(
                f"directory `{text}` does not exist; create it with `kustos storage format`, or use "
                f"`{CLUSTER_SCHEME}HOST:PORT`"
            )
        return cls(Path(text), None, with_users)

    @contextmanager
    def opened(self, *, writing: bool) -> Iterator[Target]:
        """Open the target, a directory with its lock if `writing`; raise the errors of opening."""
        if isinstance(self.place, str):
            yield ClusterTarget(self.place, self.command_config, self.with_users)
        elif writing:
            if_locked = f"migrate to the running node at `{CLUSTER_SCHEME}HOST:PORT`"
            with opened_store(self.place, if_locked) as store:
                yield DirectoryTarget(self.place, store)
        else:
            yield DirectoryTarget(self.place)


@dataclass(frozen=True, slots=True)
class DirectoryTarget:
    """A directory formatted by `storage format`; without a store it is read only, and not locked."""

    directory: Path
    store: "MetadataStore | None" = None

    def state(self) -> TargetState:
        """Return the directory's state: ACLs, credentials with their keys, tokens."""
        image = self._image()
        return TargetState(
            name=str(self.directory),
            metadata_version=image.metadata_version,
            acls=image.acl_ids.keys(),
            iterations={key: each.iterations for key, each in image.scram_credentials.items()},
            credentials=image.scram_credentials,
            tokens=image.delegation_tokens,
        )

    def _image(self) -> "MetadataImage":
        if self.store is not None:
            return self.store.image
        from kustos.metadata.directory import describe_directory

        with progress(f"reading {self.directory}"):
            return describe_directory(self.directory).image

    def carry_out(self, plan: MigrationPlan) -> CarriedOut:
        """Write the plan into the log, batch by batch, each durable before the next."""
        store = self.store
        if store is None:
            raise usage_error("the directory was not opened for writing")
        copies: tuple[Copy, ...] = (*plan.credentials, *plan.tokens)
        with progress(f"writing to {self.directory}"):
            outcomes = [each.error for batch in batches(plan.acls) for each in store.create_acls(batch)]
            outcomes += [each.error for batch in batches(copies) for each in store.copy_secrets(batch)]
        refused = next((error for error in outcomes if error is not None), None)
        if refused is not None:
            # cannot happen: it was planned under the same lock with the same checks
            raise CommandError(ExitCode.FAILED, refused.code.name.upper(), f"refused: {refused.message}")
        return CarriedOut(plan)


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """A running cluster, of Kafka or of kustos."""

    bootstrap_server: str
    command_config: Path | None
    with_users: bool

    def state(self) -> TargetState:
        """Return the cluster's state: its metadata.version, all ACLs, and users without their keys.

        A Kafka before 4.4 treats an address range as a plain text, which no client matches: ranges need
        a cluster whose metadata.version supports them.
        """
        from kustos.cli.migrate.kafka_source import scram_iterations
        from kustos.cli.session import query_cluster

        async def read_state(admin: "AdminClient") -> TargetState:
            features = await admin.describe_finalized_features()
            return TargetState(
                name=f"the cluster at {self.bootstrap_server}",
                metadata_version=features.get(METADATA_VERSION_FEATURE, MINIMUM_LEVEL),
                acls=frozenset(await admin.describe_acls()),
                iterations=await scram_iterations(admin) if self.with_users else {},
            )

        return query_cluster(self.bootstrap_server, self.command_config, read_state, "reading ACLs and users")

    def carry_out(self, plan: MigrationPlan) -> CarriedOut:
        """Create the ACLs in the cluster; users cannot be created this way."""
        from kustos.cli.session import query_cluster

        acls = plan.acls
        if not acls:
            return CarriedOut(plan)
        denials = [each for each in acls if each.entry.permission_type is AclPermissionType.DENY]

        async def create(admin: "AdminClient") -> "list[KafkaError | None]":
            outcomes = await admin.create_acls(denials)
            # without the denials an ACL could open what must stay closed
            return outcomes if any(outcomes) else outcomes + await admin.create_acls(acls[len(denials) :])

        outcomes = query_cluster(self.bootstrap_server, self.command_config, create, "adding ACLs")
        created = [binding for binding, error in zip(acls, outcomes, strict=False) if error is None]
        reasons = {
            binding: kafka_error_text(error)
            for binding, error in zip(acls, outcomes, strict=False)
            if error is not None
        }
        reasons |= dict.fromkeys(acls[len(outcomes) :], "it was not sent, since a denial was refused")
        refused = [
            MigrationRefusal(self.bootstrap_server, acl_text(each), why) for each, why in reasons.items()
        ]
        done = replace(plan, acls=tuple(created), refused=(*plan.refused, *refused))
        return CarriedOut(done, failure_of_items("adding ACLs", outcomes))


def batches(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """Yield the items in order, in slices that fit one request."""
    for start in range(0, len(items), BATCH_ITEMS):
        yield items[start : start + BATCH_ITEMS]
