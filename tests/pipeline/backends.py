"""Which tests run over Spark Connect: all that use a session, but for those named here.

`KUSTOS_TEST_SPARK` is `connect` for all of them, `connect-short` for those that CI has time for.
"""

import os
from typing import Final

import pytest

CHOSEN: Final = os.environ.get("KUSTOS_TEST_SPARK", "classic")
IS_CONNECT: Final = {"classic": False, "connect": True, "connect-short": True}[CHOSEN]
IS_SHORT: Final = CHOSEN == "connect-short"

CLASSIC_ONLY: Final = {
    "test_kills.py": "a driver is killed together with its Spark",
    "test_stale_rollup.py": "likewise; commands run in the same session afterwards",
    "test_object_store.py": "workers are started again in the environment that names the store",
    "test_google_storage.py": "likewise",
    "test_hdfs.py": "likewise",
    "test_logs_in_a_store.py": "likewise",
    "test_reading_less.py": "a client of Connect is not told which files the server reads",
    "test_jobs_of_reads.py": "a client of Connect is not told which jobs the server starts",
    "test_spark_failures.py": "a Spark of its own fails to start, or lacks what it stands on",
    "test_other_readers.py": "Spark reads with Delta's own jars, which a Connect client does not have",
}
"""Files of tests that need a driver with a Spark of its own, and why."""

CONNECT_ONLY: Final = {"test_connect_only.py": "a stream over Connect, and a command that finds the server"}
"""Files of tests that have nothing to look at in a classic session, and why."""

LONG: Final = {
    "test_against_kafka.py": "Kafka's authorizer is asked; test_flips.py replays",
    "test_answers_by_command.py": "the functions behind the commands have tests of their own",
    "test_check_command.py": "test_check.py checks tables",
    "test_commands.py": "test_connect_only.py runs one",
    "test_every_number.py": "all answers beside SQL; each answer's stages have tests of their own",
    "test_job.py": "the report of a folder; its stages have tests of their own",
    "test_judge_command.py": "test_judging.py judges",
    "test_layout.py": "older folders; test_ingest.py writes and reads tables",
    "test_legacy_broker.py": "the log of a real broker; test_kafka_lines.py parses",
    "test_million.py": "a million rows; test_questions.py decides",
    "test_real_lines.py": "logs of real brokers; test_kafka_lines.py parses",
    "test_real_nodes.py": "a real node; test_judging.py judges",
    "test_report_page.py": "a browser looks at pages; test_access.py and test_answer_stages.py fill them",
    "test_retention.py": "days that go; test_ingest.py replaces and reads tables",
    "test_runs.py": "many runs one after the other; test_ingest.py takes in",
    "test_stream.py": "test_connect_only.py has a stream",
    "test_topic.py": "real brokers",
    "test_topic_ids.py": "streams, as in test_stream.py",
}
"""Files left out where time counts, and what runs the same stages there."""


def left_out() -> dict[str, str]:
    """Return the files that this run leaves out, and why."""
    return CONNECT_ONLY if not IS_CONNECT else {**CLASSIC_ONLY, **(LONG if IS_SHORT else {})}


def runs_here(item: pytest.Item) -> bool:
    """Return whether a test says something about the kind of session that this run has."""
    uses_session = "spark" in getattr(item, "fixturenames", ())
    return item.path.name not in left_out() and (uses_session or not IS_CONNECT)
