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
    "base36_text",
    "collector_at_rest",
    "random_text",
    "short_turns",
]
