"""The content of a running cluster by its admin API, completed from its metadata files.

The API never returns the keys of users, and returns tokens only to some principals. A snapshot has the keys,
but may be stale: the cluster's answers count, and the snapshot only adds keys to users that both agree on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kustos.acl import AclBinding
from kustos.cli.migrate.plan import LeftOut, MigrationSource, NewPassword
from kustos.cli.terminal import progress
from kustos.metadata import ScramCredential, ScramMechanism
from kustos.metadata.image import MetadataImage, ScramKey
from kustos.metadata.records import DelegationTokenRecord

if TYPE_CHECKING:
    from kustos.client.admin import AdminClient

NO_KEYS: Final = "no API returns the keys; `--snapshot` reads them from a file of the cluster"
NOT_IN_SNAPSHOT: Final = "set after the snapshot was written, take a newer one"
SNAPSHOT: Final = "the snapshot"
UNCONFIRMED: Final = "delegation tokens that the cluster does not return"
TOKENS_OFF: Final = "DELEGATION_TOKEN_AUTH_DISABLED"
GONE: Final = "users that the cluster no longer has"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The answers of a running cluster."""

    acls: tuple[AclBinding, ...]
    iterations: Mapping[ScramKey, int]
    tokens: Mapping[str, DelegationTokenRecord]
    tokens_refusal: str | None = None


async def read_facts(admin: "AdminClient", *, acls_only: bool) -> ClusterFacts:
    """Return the cluster's answers; raise its refusal, except for tokens, which many clusters disable."""
    from kustos.client import KafkaError, UnsupportedVersionError

    acls = tuple(await admin.describe_acls())
    if acls_only:
        return ClusterFacts(acls, {}, {})
    iterations = await scram_iterations(admin)
    try:
        tokens = {token.token_id: token for token in await admin.describe_delegation_tokens()}
    except (KafkaError, UnsupportedVersionError) as error:
        return ClusterFacts(
            acls, iterations, {}, error.name if isinstance(error, KafkaError) else "UNSUPPORTED_VERSION"
        )
    return ClusterFacts(acls, iterations, tokens)


async def scram_iterations(admin: "AdminClient") -> dict[ScramKey, int]:
    """Return the iterations of all users' credentials; raise the first refusal."""
    found: dict[ScramKey, int] = {}
    for user in await admin.describe_user_scram_credentials():
        if user.error is not None:
            raise user.error
        for name, iterations in user.credentials:
            mechanism = ScramMechanism.from_name(name)
            if mechanism is not None:
                found[user.name, int(mechanism)] = iterations
    return found


def read_snapshot(path: Path, *, ignore_torn_tail: bool) -> MetadataImage:
    """Return the content of a cluster's `.checkpoint`, first `.log` or metadata directory.

    Raises `MetadataError`.
    """
    from kustos.metadata import METADATA_SUFFIXES
    from kustos.metadata.directory import read_image, read_metadata_file, require_beginning
    from kustos.metadata.inspection import metadata_directory
    from kustos.runtime import FileSystemStorage

    with progress(f"reading {path}"):
        if path.suffix in METADATA_SUFFIXES:
            image = read_metadata_file(path, FileSystemStorage(), ignore_torn_tail=ignore_torn_tail)
        else:
            directory = metadata_directory(path, FileSystemStorage())
            image = read_image(directory, ignore_torn_tail=ignore_torn_tail)
        require_beginning(image, path)
    return image


def source_of(name: str, facts: ClusterFacts, snapshot: MetadataImage | None) -> MigrationSource:
    """Return what to migrate from a running cluster, with keys from its snapshot if there is one."""
    kept = snapshot.scram_credentials if snapshot is not None else {}
    credentials: dict[ScramKey, ScramCredential] = {}
    closed: list[NewPassword] = []
    for key, iterations in facts.iterations.items():
        found = kept.get(key)
        if found is not None and found.iterations == iterations:
            credentials[key] = found
        else:
            closed.append(NewPassword(*key, iterations, NOT_IN_SNAPSHOT if snapshot is not None else NO_KEYS))
    hidden = snapshot.delegation_tokens.keys() - facts.tokens.keys() if snapshot is not None else ()
    gone = {user for user, _ in kept} - {user for user, _ in facts.iterations}
    left = [LeftOut(SNAPSHOT, UNCONFIRMED, len(hidden)), LeftOut(SNAPSHOT, GONE, len(gone))]
    if facts.tokens_refusal not in {None, TOKENS_OFF}:
        left.append(LeftOut("the cluster", f"delegation tokens, answer {facts.tokens_refusal}", 1))
    return MigrationSource(
        name=name,
        acls=dict.fromkeys(facts.acls, name),
        credentials=credentials,
        closed=tuple(sorted(closed, key=lambda each: (each.user, each.mechanism))),
        tokens=facts.tokens,
        left=tuple(each for each in left if each.count),
    )


def source_of_snapshot(name: str, snapshot: MetadataImage, *, acls_only: bool) -> MigrationSource:
    """Return what to migrate from a snapshot alone, as of the time it was written."""
    acls = dict.fromkeys(snapshot.acls.values(), name)
    if acls_only:
        return MigrationSource(name=name, acls=acls)
    return MigrationSource(
        name=name, acls=acls, credentials=snapshot.scram_credentials, tokens=snapshot.delegation_tokens
    )
