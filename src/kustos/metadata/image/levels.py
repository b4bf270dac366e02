"""The records of an image at a given metadata.version, and the losses if it does not fit."""

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter

from kustos.metadata.features import DELEGATION_TOKEN_LEVEL, METADATA_VERSION_FEATURE, SCRAM_LEVEL
from kustos.metadata.image.image import MetadataImage
from kustos.metadata.records import (
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    UserScramCredentialRecord,
)
from kustos.metadata.scram import ScramMechanism


def records_at(image: MetadataImage, level: int, on_loss: Callable[[str], None]) -> Iterator[MetadataRecord]:
    """Yield the records of a snapshot of this image at this level of metadata.version.

    Parts that the level cannot hold are left out and reported to `on_loss`, by names only, in the wording of
    Kafka's images. To lose nothing, let `on_loss` raise.
    """
    yield FeatureLevelRecord(METADATA_VERSION_FEATURE, level)
    if level < SCRAM_LEVEL and image.scram_credentials:
        on_loss(_scram_text(image))
    if level < DELEGATION_TOKEN_LEVEL and image.delegation_tokens:
        on_loss(f"DelegationTokenImage({', '.join(sorted(image.delegation_tokens))})")
    for record in image.records():
        match record:
            case FeatureLevelRecord(name=name) if name == METADATA_VERSION_FEATURE:
                continue
            case UserScramCredentialRecord() if level < SCRAM_LEVEL:
                continue
            case DelegationTokenRecord() if level < DELEGATION_TOKEN_LEVEL:
                continue
            case _:
                yield record


def _scram_text(image: MetadataImage) -> str:
    keys = sorted((mechanism, user) for user, mechanism in image.scram_credentials)
    parts = "".join(
        f"{_mechanism_name(mechanism)}:{', '.join(user for _, user in users)}}},{{"
        for mechanism, users in groupby(keys, key=itemgetter(0))
    )
    return f"ScramImage({{{parts}}})"


def _mechanism_name(code: int) -> str:
    known = ScramMechanism.from_code(code)
    return "UNKNOWN" if known is None else known.name
