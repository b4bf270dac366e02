"""From files to image: the newest snapshot and the log after it, replayed record by record."""

from collections.abc import Iterable
from pathlib import Path

from kustos.metadata.errors import LogDamagedError, MetadataError, RecordError, ReplayError
from kustos.metadata.features import METADATA_VERSION_FEATURE
from kustos.metadata.image import ImageBuilder, MetadataImage
from kustos.metadata.log import LogReader
from kustos.metadata.records import MetadataRecord, decode_record
from kustos.runtime import FileSystemStorage, Storage
from kustos.wire.record_batch import RecordBatch


def records_of(batch: RecordBatch) -> list[MetadataRecord]:
    """Return the metadata records of a batch; a control batch has none. Raises `RecordError`."""
    if batch.is_control:
        return []
    return [_decode(record.value) for record in batch.records]


def _decode(value: bytes | None) -> MetadataRecord:
    if value is None:
        raise RecordError("a metadata record has no value")
    return decode_record(value)


def replay_batches(builder: ImageBuilder, batches: Iterable[RecordBatch], where: Path) -> None:
    """Replay batches in order; raise `LogDamagedError` naming the offset of one that cannot be."""
    for batch in batches:
        try:
            builder.replay_all(records_of(batch))
        except (RecordError, ReplayError) as error:
            raise LogDamagedError(
                f"the batch at offset {batch.base_offset} of the log in `{where}` cannot be applied: {error}"
            ) from error


def load(directory: Path, storage: Storage) -> tuple[LogReader, ImageBuilder]:
    """Return the reader, at its end, and the state that it read; nothing is changed on disk."""
    reader = LogReader(directory, storage)
    builder = ImageBuilder()
    replay_batches(builder, reader.snapshot(), directory)
    replay_batches(builder, reader.batches(), directory)
    if METADATA_VERSION_FEATURE not in builder.view().features:
        # nothing was ever written but the beginning of epochs, perhaps by a start that crashed
        replay_batches(builder, reader.legacy_bootstrap(), directory)
    return reader, builder


def require_beginning(image: MetadataImage, directory: Path) -> None:
    """Raise `LogDamagedError` if the first records of a log are not there.

    Each formatted directory, of any Kafka, sets metadata.version before anything else. Without the file
    that holds it, the first users and ACLs, denials among them, would silently be missing too.
    """
    if METADATA_VERSION_FEATURE not in image.features:
        raise LogDamagedError(
            f"the log in `{directory}` lacks its beginning: no record sets metadata.version; a snapshot "
            "is missing, restore the directory from a copy"
        )


def read_image(directory: Path, storage: Storage | None = None) -> MetadataImage:
    """Return what a metadata log directory, ours or a real Kafka's, adds up to; without a lock.

    Of a directory that is in use this is the state at some moment. Raises `MetadataError`.
    """
    try:
        reader, builder = load(directory, storage or FileSystemStorage())
    except OSError as error:
        raise MetadataError(f"`{directory}` cannot be read: {error}") from error
    return builder.build(reader.next_offset - 1, reader.epoch)
