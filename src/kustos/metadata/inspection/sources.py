"""Where an image to be looked at comes from: a directory or a snapshot now, others by the same protocol."""

from pathlib import Path
from typing import Final, Protocol

from kustos.metadata.acl_files import read_metadata_file
from kustos.metadata.image import MetadataImage
from kustos.metadata.inspection.files import metadata_directory
from kustos.metadata.inspection.timeline import Moment, Timeline
from kustos.metadata.loader import read_image, require_beginning
from kustos.runtime import Storage


class ImageSource(Protocol):
    """Something that has an image: files, or a quorum that is followed."""

    @property
    def name(self) -> str:
        """What people call it."""

    def image(self) -> MetadataImage:
        """Return the newest image that is known; raise `MetadataError`, or what a connection raises."""


class DirectorySource:
    """A metadata directory, given itself or its partition; in use or not, read without a lock."""

    def __init__(self, path: Path, storage: Storage) -> None:
        self.name: Final = str(path)
        self._path: Final = path
        self._storage: Final = storage

    def image(self) -> MetadataImage:
        """Return the state that its files add up to now."""
        image = read_image(metadata_directory(self._path, self._storage), self._storage)
        require_beginning(image, self._path)
        return image


class PastSource:
    """A metadata directory as it was at a moment."""

    def __init__(self, path: Path, moment: Moment, storage: Storage) -> None:
        self.name: Final = f"{path} at {moment.text}"
        self._path: Final = path
        self._moment: Final = moment
        self._storage: Final = storage

    def image(self) -> MetadataImage:
        """Return the state of that moment; raise `OutOfReachError` if the files do not hold it."""
        return Timeline(self._path, self._storage).state_at(self._moment).image


class FileSource:
    """A snapshot, or the first segment of a log that holds its own beginning."""

    def __init__(self, path: Path, storage: Storage) -> None:
        self.name: Final = str(path)
        self._path: Final = path
        self._storage: Final = storage

    def image(self) -> MetadataImage:
        """Return what the file says."""
        image = read_metadata_file(self._path, self._storage)
        require_beginning(image, self._path)
        return image
