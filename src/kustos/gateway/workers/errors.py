"""What can go wrong between the writer process and its workers."""


class WorkersError(Exception):
    """The root of this package's errors."""


class ChannelError(WorkersError):
    """Bytes that are no message of ours; whoever sees one ends the channel."""


class WorkerStartError(WorkersError):
    """The worker processes cannot be started, or one of them ended before it served."""

    def __init__(self, text: str, exit_code: int | None = None) -> None:
        super().__init__(text)
        self.exit_code = exit_code
        """That of the worker, if it ended by itself."""
