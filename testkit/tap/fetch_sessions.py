"""Follows the fetch sessions (KIP-227) that upstream holds on one connection, and decides about them.

An incremental Fetch is served for all that its session holds, so a frame by itself does not say what it
asks for. A tap shows every Fetch to `request` and every answer to `response`, both without length.
"""

from collections.abc import Collection, Mapping

from kustos.acl import AclBinding
from testkit.tap.client import Client, Op, Type, Violation
from testkit.tap.frames import read_request, read_response, topic_key

FETCH = 1
Partition = tuple[str | bytes, int]


class UpstreamFetchSessions:
    """What upstream would serve on this connection, by session id."""

    def __init__(self) -> None:
        self.held: dict[int, set[Partition]] = {}
        self._pending: dict[int, tuple[int, int, set[Partition]]] = {}

    def request(
        self,
        frame: bytes,
        principal: str,
        host: str,
        acls: Collection[AclBinding],
        topic_names: Mapping[bytes, str],
    ) -> list[Violation]:
        """Return a violation for each topic that this Fetch makes upstream serve against the ACLs."""
        if int.from_bytes(frame[:2], "big") != FETCH:
            return []
        request = read_request(frame)
        body = request.body
        asked = {(topic_key(topic), p.partition) for topic in body.topics for p in topic.partitions}
        session_id, epoch = getattr(body, "session_id", 0), getattr(body, "session_epoch", -1)
        if epoch in {0, -1}:
            served = asked
        else:
            gone = {
                (topic_key(topic), index)
                for topic in body.forgotten_topics_data
                for index in topic.partitions
            }
            served = (self.held.get(session_id, set()) | asked) - gone
        found: list[Violation] = []
        if session_id not in self.held and session_id != 0:
            found.append(Violation("fetch", "only sessions of this connection go upstream", str(session_id)))
        self._pending[request.correlation_id] = (request.version, session_id, served)
        replica = body.replica_id if hasattr(body, "replica_id") else body.replica_state.replica_id
        client = Client(principal, host, acls, topic_names)
        if replica >= 0 and client.may_cluster(Op.CLUSTER_ACTION):
            return found
        for topic in {topic for topic, _ in served}:
            name = topic if isinstance(topic, str) else topic_names.get(topic)
            if name is not None and not client.may(Op.READ, Type.TOPIC, name):
                found.append(Violation("fetch", "nothing unauthorised is in a session", name))
        return found

    def response(self, frame: bytes) -> None:
        """Learn from upstream's answer to a Fetch which session it keeps."""
        pending = self._pending.pop(int.from_bytes(frame[:4], "big"), None)
        if pending is None:
            return
        version, asked_id, served = pending
        _, body = read_response(frame, FETCH, version)
        self.held.pop(asked_id, None)
        if getattr(body, "session_id", 0) != 0:
            self.held[body.session_id] = served
