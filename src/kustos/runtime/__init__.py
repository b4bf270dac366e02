"""The only home of time, randomness and files: real here, replaceable in tests."""

from kustos.runtime.clock import Clock, PacedCounts, SystemClock, stopwatch_ns
from kustos.runtime.entropy import Entropy, SystemEntropy, base36_text, random_nonce, random_text
from kustos.runtime.keyed_hash import KeyedHash, keyed_digest
from kustos.runtime.process import (
    collect_seldom,
    descriptor_limit,
    freeze_objects,
    garbage_collection_paused,
    is_out_of_descriptors,
    raise_descriptor_limit,
    short_switch_interval,
)
from kustos.runtime.storage import (
    DEFAULT_FILE_MODE,
    PART_SUFFIX,
    PRIVATE_FILE_MODE,
    AppendFile,
    FileSystemStorage,
    FixedFile,
    Storage,
    StorageLock,
    StorageLockedError,
)
from kustos.runtime.texts import (
    TextFileError,
    read_text_file,
    read_text_stream,
    reason_of,
    text_of_bytes,
    words_of,
)

__all__ = [
    "DEFAULT_FILE_MODE",
    "PART_SUFFIX",
    "PRIVATE_FILE_MODE",
    "AppendFile",
    "Clock",
    "Entropy",
    "FileSystemStorage",
    "FixedFile",
    "KeyedHash",
    "PacedCounts",
    "Storage",
    "StorageLock",
    "StorageLockedError",
    "SystemClock",
    "SystemEntropy",
    "TextFileError",
    "base36_text",
    "collect_seldom",
    "descriptor_limit",
    "freeze_objects",
    "garbage_collection_paused",
    "is_out_of_descriptors",
    "keyed_digest",
    "raise_descriptor_limit",
    "random_nonce",
    "random_text",
    "read_text_file",
    "read_text_stream",
    "reason_of",
    "short_switch_interval",
    "stopwatch_ns",
    "text_of_bytes",
    "words_of",
]
