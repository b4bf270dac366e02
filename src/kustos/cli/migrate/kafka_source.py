"""What a running cluster says of itself by its admin API, and what its own metadata files add.

The API tells neither keys of users nor, to everybody, tokens. A snapshot has the keys, as old as it is:
what the cluster says counts, and the snapshot only adds keys to users whom both know alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kustos.acl import AclBinding
from kustos.cli.failures import usage_error
from kustos.cli.migrate.source import Left, NewPassword, Source
from kustos.cli.progress import progress
from kustos.metadata.image import MetadataImage, ScramKey
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.scram import ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from kustos.client.admin import AdminClient

NO_KEYS: Final = "the cluster tells nobody its keys; `--snapshot` reads them from a file of its own"
NOT_IN_SNAPSHOT: Final = "set after the snapshot was written, take a newer one"
SNAPSHOT: Final = "the snapshot"
UNCONFIRMED: Final = "delegation tokens that the cluster does not tell of"
TOKENS_OFF: Final = "DELEGATION_TOKEN_AUTH_DISABLED"
GONE: Final = "users whom the cluster has no more"


@dataclass(frozen=True, slots=True)
class Told:
    """What a running cluster told."""

    acls: tuple[AclBinding, ...]
    iterations: Mapping[ScramKey, int]
    tokens: Mapping[str, DelegationTokenRecord]
    tokens_refusal: str | None = None


async def ask(admin: "AdminClient", *, acls_only: bool) -> Told:
    """Return what the cluster tells; raise its refusal, but for tokens, which many have switched off."""
    from kustos.client.errors import KafkaError, UnsupportedVersionError

    acls = tuple(await admin.describe_acls())
    if acls_only:
        return Told(acls, {}, {})
    iterations = await scram_iterations(admin)
    try:
        tokens = {token.token_id: token for token in await admin.describe_delegation_tokens()}
    except (KafkaError, UnsupportedVersionError) as error:
        return Told(
            acls, iterations, {}, error.name if isinstance(error, KafkaError) else "UNSUPPORTED_VERSION"
        )
    return Told(acls, iterations, tokens)


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


def read_snapshot(path: Path) -> MetadataImage:
    """Return what a `.checkpoint`, a first `.log` or a metadata directory of a cluster holds.

    Raises `MetadataError`, or a usage error for something else.
    """
    from kustos.metadata.acl_files import read_metadata_file
    from kustos.metadata.loader import read_image, require_beginning
    from kustos.metadata.log import METADATA_PARTITION
    from kustos.metadata.suffixes import METADATA_SUFFIXES, SNAPSHOT_SUFFIX
    from kustos.runtime import FileSystemStorage

    with progress(f"reading {path}"):
        if path.suffix in METADATA_SUFFIXES:
            image = read_metadata_file(path, FileSystemStorage())
        elif path.is_dir():
            image = read_image(path.parent if path.name == METADATA_PARTITION else path)
        else:
            raise usage_error(f"`{path}` is no snapshot, name a `{SNAPSHOT_SUFFIX}` or a metadata directory")
        require_beginning(image, path)
    return image


def source_of(name: str, told: Told, snapshot: MetadataImage | None) -> Source:
    """Return what to take over of a running cluster, with keys from its snapshot where there is one."""
    kept = snapshot.scram_credentials if snapshot is not None else {}
    credentials: dict[ScramKey, ScramCredential] = {}
    closed: list[NewPassword] = []
    for key, iterations in told.iterations.items():
        found = kept.get(key)
        if found is not None and found.iterations == iterations:
            credentials[key] = found
        else:
            closed.append(NewPassword(*key, iterations, NOT_IN_SNAPSHOT if snapshot is not None else NO_KEYS))
    hidden = snapshot.delegation_tokens.keys() - told.tokens.keys() if snapshot is not None else ()
    gone = {user for user, _ in kept} - {user for user, _ in told.iterations}
    left = [Left(SNAPSHOT, UNCONFIRMED, len(hidden)), Left(SNAPSHOT, GONE, len(gone))]
    if told.tokens_refusal not in {None, TOKENS_OFF}:
        left.append(Left("the cluster", f"delegation tokens, answer {told.tokens_refusal}", 1))
    return Source(
        name=name,
        acls=dict.fromkeys(told.acls, name),
        credentials=credentials,
        closed=tuple(sorted(closed, key=lambda each: (each.user, each.mechanism))),
        tokens=told.tokens,
        left=tuple(each for each in left if each.count),
    )


def source_of_snapshot(name: str, snapshot: MetadataImage, *, acls_only: bool) -> Source:
    """Return what to take over of a snapshot alone, as of the moment when it was written."""
    acls = dict.fromkeys(snapshot.acls.values(), name)
    if acls_only:
        return Source(name=name, acls=acls)
    return Source(
        name=name, acls=acls, credentials=snapshot.scram_credentials, tokens=snapshot.delegation_tokens
    )
