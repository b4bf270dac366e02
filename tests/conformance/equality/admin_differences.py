"""Where the admin listener answers otherwise than Kafka's controller, on purpose, and why.

`docs/explanation/differences-from-kafka.md` says the same to a reader.
"""

from typing import Any

from kustos.metadata.features import METADATA_VERSION_FEATURE
from kustos.protocol.admin_table import ADMIN_OFFERED
from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Run
from tests.conformance.equality import differences
from tests.conformance.equality.audit import gathered
from tests.conformance.equality.both_sides import Asked
from tests.conformance.equality.differences import ANSWER, AUDIT, Difference


def offered_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what kustos offers of what the controller does, and what it has besides."""
    versions = [
        {"api_key": key, "min_version": lowest, "max_version": highest}
        for key, (lowest, highest) in ADMIN_OFFERED.items()
    ]
    features = {
        name: [item for item in answer[name] if item["name"] == METADATA_VERSION_FEATURE]
        for name in ("supported_features", "finalized_features")
        if name in answer
    }
    return answer | {"api_keys": versions} | features


def asks_who_governs(_: Run, asked: Asked) -> bool:
    """Return whether kustos only asked for ALTER besides and was told yes, which is logged at TRACE alone."""
    reference, kustos = gathered(asked.reference_audit), gathered(asked.kustos_audit)
    extra = kustos - reference
    return kustos >= reference and all(
        (each.level, each.operation, each.kind) == ("TRACE", "ALTER", "Cluster") for each in extra
    )


SHARED = {"Equal checks of one request"}

DIFFERENCES: tuple[Difference, ...] = (
    *[each for each in differences.DIFFERENCES if each.name in SHARED],
    Difference(
        name="What the admin listener offers",
        of=ANSWER,
        where=lambda _, asked: asked.step.api == ApiKey.API_VERSIONS and asked.reference["error_code"] == 0,
        expected=offered_of,
    ),
    Difference(name="Changes of super users", of=AUDIT, where=asks_who_governs),
    Difference(
        name="Error text without a decision",
        of=ANSWER,
        where=lambda run, _: run.story.title == "principal: everybody",
    ),
    Difference(
        name="Times of a token that was not created",
        of=ANSWER,
        where=lambda run, _: (
            run.story.api == ApiKey.CREATE_DELEGATION_TOKEN and run.story.title.endswith("a group as renewer")
        ),
    ),
)
