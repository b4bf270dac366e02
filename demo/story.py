"""The story: a guarded Kafka from the first start to the report on who did what."""

from collections.abc import Callable
from typing import Final

from demo import audit, logins, reading, setup, writing
from demo.stage import Stage

GuardedCluster = Callable[[Stage], None]

CHAPTERS: Final[tuple[tuple[str, tuple[GuardedCluster, ...]], ...]] = (
    ("A Kafka that guards nothing, and kustos before it", (setup.start_kafka, setup.start_kustos)),
    ("Users, topics, ACLs", (setup.add_users, setup.create_topics, setup.add_acls, setup.list_acls)),
    (
        "What each client gets to hear",
        (
            writing.write,
            writing.write_elsewhere,
            writing.fill,
            reading.read_by_prefix,
            reading.read_by_java,
            reading.deny_overrules,
        ),
    ),
    ("Logins, changes, administration", (logins.log_in_wrongly, reading.revoke, logins.administer)),
    (
        "What was written down",
        (audit.look_at_events, audit.look_at_metrics, audit.restart, audit.report),
    ),
)


def play(stage: Stage) -> None:
    """Play all of it. Raises `DemoError` where a step that others stand on fails."""
    for title, scenes in CHAPTERS:
        stage.say.chapter(title)
        for scene in scenes:
            scene(stage)
