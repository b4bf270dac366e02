"""Sources of an image for inspection: a directory or a snapshot; others can follow the same protocol."""

from pathlib import Path
from typing import Final, Protocol

from kustos.metadata.directory.acl_files import read_metadata_file
from kustos.metadata.directory.loader import read_image, require_beginning
from kustos.metadata.image import MetadataImage
from kustos.metadata.inspection.files import metadata_directory
from kustos.metadata.inspection.moments import Moment
from kustos.metadata.inspection.timeline import Timeline
from kustos.runtime import Storage


class ImageSource(Protocol):
    """A source of an image: files, or a followed quorum."""

    @property
    def name(self) -> str:
        """The display name."""

    def image(self) -> MetadataImage:
        """Return the newest known image; raise `MetadataError`, or the error of the connection."""


class DirectorySource:
    """A metadata directory or its partition, in use or not, read without a lock."""

    def __init__(self, path: Path, storage: Storage, *, ignore_torn_tail: bool = False) -> None:
        self.name: Final = str(path)
        self._path: Final = path
        self._storage: Final = storage
        self._ignore_torn_tail: Final = ignore_torn_tail

    def image(self) -> MetadataImage:
        """Return the current state of its files."""
        directory = metadata_directory(self._path, self._storage)
        image = read_image(directory, self._storage, ignore_torn_tail=self._ignore_torn_tail)
        require_beginning(image, self._path)
        return image


class PastSource:
    """A metadata directory as it was at a moment."""

    def __init__(
        self, path: Path, moment: Moment, storage: Storage, *, ignore_torn_tail: bool = False
    ) -> None:
        self.name: Final = f"{path} at {moment.text}"
        self._ignore_torn_tail: Final = ignore_torn_tail
        self._path: Final = path
        self._moment: Final = moment
        self._storage: Final = storage

    def image(self) -> MetadataImage:
        """Return the state at that moment; raise `OutOfReachError` if the files do not reach it."""
        timeline = Timeline(self._path, self._storage, ignore_torn_tail=self._ignore_torn_tail)
        return timeline.state_at(self._moment).image


class FileSource:
    """A snapshot, or the first segment of a log with its own beginning."""

    def __init__(self, path: Path, storage: Storage, *, ignore_torn_tail: bool = False) -> None:
        self.name: Final = str(path)
        self._path: Final = path
        self._storage: Final = storage
        self._ignore_torn_tail: Final = ignore_torn_tail

    def image(self) -> MetadataImage:
        """Return the state in the file."""
        image = read_metadata_file(self._path, self._storage, ignore_torn_tail=self._ignore_torn_tail)
        require_beginning(image, self._path)
        return image
