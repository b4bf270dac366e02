"""A live quorum as a source of images, for a shell that queries it before each command."""

import asyncio
from pathlib import Path
from typing import Final, Self

from kustos.client import ClientSettings
from kustos.client.quorum import QuorumReader
from kustos.metadata.image import MetadataImage
from kustos.runtime import SystemEntropy


class QuorumSource:
    """Queries the controllers each time; an image holds what is committed at that moment."""

    def __init__(self, controllers: str, command_config: Path | None) -> None:
        self.name: Final = f"the quorum at {controllers}"
        self._reader: Final = QuorumReader(
            ClientSettings.from_file(controllers, command_config), SystemEntropy()
        )
        # the connection lives as long as its event loop
        self._runner: Final = asyncio.Runner()

    def image(self) -> MetadataImage:
        """Return the image committed now; raise `ClientError` or `MetadataError`."""
        return self._runner.run(self._reader.catch_up())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._runner.close()
