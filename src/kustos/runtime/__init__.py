"""The only home of time, randomness and files: real here, replaceable in tests."""

from kustos.runtime.clock import Clock, SystemClock
from kustos.runtime.entropy import Entropy, SystemEntropy, base36_text, random_text
from kustos.runtime.interpreter import collector_at_rest, short_turns
from kustos.runtime.storage import (
    AppendFile,
    FileSystemStorage,
    Storage,
    StorageLock,
    StorageLockedError,
)
from kustos.runtime.texts import TextFileError, read_text_file, read_text_stream, reason_of, text_of_bytes

__all__ = [
    "AppendFile",
    "Clock",
    "Entropy",
    "FileSystemStorage",
    "Storage",
    "StorageLock",
    "StorageLockedError",
    "SystemClock",
    "SystemEntropy",
    "TextFileError",
    "base36_text",
    "collector_at_rest",
    "random_text",
    "read_text_file",
    "read_text_stream",
    "reason_of",
    "short_turns",
    "text_of_bytes",
]
