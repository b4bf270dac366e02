"""The releases of Kafka that tests, benchmarks and the demo run: the only place that names them.

A new release: change `KAFKA`, add a file of digests for each set of jars (`testkit/maven`), run the tests.
"""

import os
from typing import Final

KAFKA: Final = "4.4.0"
"""The reference: its brokers, controllers, tools, clients, Streams and authorizer."""

PREVIOUS: Final = "4.3.1"
"""The release before: a small part of the tests also runs with its brokers, controllers and clients."""

OLDEST: Final = "3.9.2"
"""The oldest release that the documentation promises: the same part of the tests runs with it."""

WHOLE: Final = "4.3.1"
"""The newest release of which Maven Central has every jar: the metadata shell, Connect's file connectors and
MirrorMaker 2 are missing in later ones. These run with all jars of this release."""

LEGACY: Final = "2.8.2"
"""The last Kafka with the interface of KIP-11."""

VARIABLE: Final = "KUSTOS_TEST_KAFKA"
"""The environment variable that chooses one of `CHOICES`."""

CHOICES: Final = {"reference": KAFKA, "previous": PREVIOUS, "oldest": OLDEST}


def chosen() -> str:
    """Return the release of this run; raise `ValueError` if the variable has no name of one."""
    choice = os.environ.get(VARIABLE, "reference")
    if choice not in CHOICES:
        raise ValueError(f"{VARIABLE}: no release `{choice}`; use {', '.join(CHOICES)}")
    return CHOICES[choice]
