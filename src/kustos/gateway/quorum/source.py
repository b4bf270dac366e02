"""A KRaft quorum as a source of metadata: the node follows it, and the active controller makes the changes.

Changes of StandardAuthorizer's ACLs use its `AclMutator`; other changes are forwarded unchanged, in the
client's version. Both are made in the client's name.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from kustos.authorizer import KafkaApiError
from kustos.client.quorum import (
    ControllerForwarder,
    Forwarded,
    ForwardingRefusedError,
    QuorumUnavailableError,
)
from kustos.gateway.store.forwarding import ForwardingMutator
from kustos.gateway.store.source import Submitted
from kustos.gateway.store.writer import ALONE, Followers
from kustos.metadata.quorum import FollowedStore
from kustos.wire import ErrorCode


def unavailable(error: QuorumUnavailableError | ForwardingRefusedError) -> KafkaApiError:
    """Return the error that clients get for a failed change."""
    code = (
        ErrorCode.request_timed_out
        if isinstance(error, QuorumUnavailableError)
        else ErrorCode.cluster_authorization_failed
    )
    return KafkaApiError(code, str(error))


class FollowedQuorum:
    """A `MetadataSource`. `stop` stops following the quorum."""

    def __init__(
        self,
        store: FollowedStore,
        forwarder: ControllerForwarder,
        stop: Callable[[], Awaitable[None]],
        followers: Followers = ALONE,
    ) -> None:
        self.store: Final = store
        self._forwarder: Final = forwarder
        self._stop: Final = stop
        self._followers: Final = followers
        self.mutator: Final = ForwardingMutator(self.submit)

    async def submit(self, request: Forwarded) -> Submitted:
        """Return the controller's answer once its change is in force here; raise `KafkaApiError`."""
        try:
            answer = await self._forwarder.forward(request)
        except (QuorumUnavailableError, ForwardingRefusedError) as error:
            raise unavailable(error) from error
        await self._followers.in_force(self.store.last_offset)
        # controllers do not report the offset of a change
        return Submitted(answer)

    async def close(self) -> None:
        """Stop following."""
        await self._stop()
