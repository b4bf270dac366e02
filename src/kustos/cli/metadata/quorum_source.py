"""A live quorum as a source of images, for a shell that asks one command after the other."""

import asyncio
from pathlib import Path
from typing import Final, Self

from kustos.client.quorum_reading import QuorumReader
from kustos.client.settings import ClientSettings
from kustos.metadata.image import MetadataImage
from kustos.runtime import SystemEntropy


class QuorumSource:
    """Asks the controllers each time; each answer is what is committed then."""

    def __init__(self, controllers: str, command_config: Path | None) -> None:
        self.name: Final = f"the quorum at {controllers}"
        self._reader: Final = QuorumReader(
            ClientSettings.from_file(controllers, command_config), SystemEntropy()
        )
        # the connection lives as long as its loop does
        self._runner: Final = asyncio.Runner()

    def image(self) -> MetadataImage:
        """Return what is committed now; raise `ClientError` or `MetadataError`."""
        return self._runner.run(self._reader.catch_up())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._runner.close()
