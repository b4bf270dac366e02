"""The model cluster's answers to administrators: success for every item."""

from collections.abc import Callable

from kustos.wire import Message, MessageCodec


def altered_configs(request: Message, made: MessageCodec) -> Message:
    item = made.root.ELEMENTS["responses"]
    asked = [(each.resource_type, each.resource_name) for each in request.resources]
    return made.root(responses=[item(resource_type=kind, resource_name=name) for kind, name in asked])


def moved_logs(request: Message, made: MessageCodec) -> Message:
    item = made.root.ELEMENTS["results"]
    below = item.ELEMENTS["partitions"]
    return made.root(
        results=[
            item(topic_name=topic.name, partitions=[below(partition_index=n) for n in topic.partitions])
            for each in request.dirs
            for topic in each.topics
        ]
    )


def elections(request: Message, made: MessageCodec) -> Message:
    item = made.root.ELEMENTS["replica_election_results"]
    below = item.ELEMENTS["partition_result"]
    return made.root(
        replica_election_results=[
            item(topic=topic.topic, partition_result=[below(partition_id=n) for n in topic.partitions])
            for topic in request.topic_partitions or ()
        ]
    )


def reassigned(request: Message, made: MessageCodec) -> Message:
    item = made.root.ELEMENTS["responses"]
    below = item.ELEMENTS["partitions"]
    return made.root(
        responses=[
            item(
                name=topic.name,
                partitions=[below(partition_index=each.partition_index) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def enlarged(request: Message, made: MessageCodec) -> Message:
    item = made.root.ELEMENTS["results"]
    return made.root(results=[item(name=topic.name) for topic in request.topics])


def deleted_groups(request: Message, made: MessageCodec) -> Message:
    item = made.root.ELEMENTS["results"]
    return made.root(results=[item(group_id=name) for name in dict.fromkeys(request.groups_names)])


def quotas(request: Message, made: MessageCodec) -> Message:
    return made.root(entries=[made.root.ELEMENTS["entries"]() for _ in request.entries])


def quorum(_request: Message, made: MessageCodec) -> Message:
    if "nodes" not in made.root.FIELDS:
        return made.root()
    node = made.root.ELEMENTS["nodes"]
    listener = node.ELEMENTS["listeners"](name="CONTROLLER", host="upstream", port=1)
    return made.root(nodes=[node(node_id=1, listeners=[listener])])


def epochs(request: Message, made: MessageCodec) -> Message:
    item = made.root.ELEMENTS["topics"]
    below = item.ELEMENTS["partitions"]
    return made.root(
        topics=[
            item(topic=topic.topic, partitions=[below(partition=p.partition) for p in topic.partitions])
            for topic in request.topics
        ]
    )


DONE: dict[int, Callable[[Message, MessageCodec], Message]] = {
    23: epochs,
    **dict.fromkeys((33, 44), altered_configs),
    34: moved_logs,
    37: enlarged,
    42: deleted_groups,
    43: elections,
    45: reassigned,
    49: quotas,
    55: quorum,
}
"""By API key."""
