"""The errors of this package."""


class WorkersError(Exception):
    """The base class of this package's errors."""


class ChannelError(WorkersError):
    """Bytes that are not a valid message; the receiver closes the channel."""


class WorkerStartError(WorkersError):
    """The worker processes cannot be started, or one of them ended before it served."""

    def __init__(self, text: str, exit_code: int | None = None) -> None:
        super().__init__(text)
        self.exit_code = exit_code
        """The worker's exit code, if the worker ended by itself."""
