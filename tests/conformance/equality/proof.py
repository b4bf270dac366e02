"""All stories that are told to listeners for clients, and which versions of each API the stories prove.

That is read from their ranges of versions; nothing is played. `python -m tests.conformance.equality.proof`
writes it down for the page of the authorization table.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from kustos.protocol import ADMIN_TABLE, TABLE, Row
from kustos.wire.api_keys import ApiKey, api_name
from testkit.equality.compared import ADMINS, CLIENTS, COMPARED
from testkit.equality.stories import Story, offered
from tests.conformance.equality import (
    cases_admin,
    cases_daily,
    cases_features,
    cases_groups,
    cases_settings,
    cases_shares,
    cases_streams,
    cases_telemetry,
    cases_tokens,
    cases_topics,
    cases_transactions,
    known_mistakes,
)
from tests.conformance.equality.cases_node import STORIES as ADMIN_STORIES

STORIES: tuple[Story, ...] = (
    *cases_topics.READING,
    *known_mistakes.STORIES,
    *cases_groups.ASKING,
    *cases_topics.PRODUCE_STORIES,
    *cases_topics.WRITTEN,
    *cases_daily.LEADER_EPOCHS,
    *cases_transactions.STORIES,
    *cases_shares.STORIES,
    *cases_streams.STORIES,
    *cases_topics.MALFORMED_STORIES,
    *cases_groups.WITH_OFFSETS,
    *cases_groups.JOINING,
    *cases_admin.LOOKING,
    *cases_topics.AUTO_CREATION,
    *cases_daily.LOOKING,
    *cases_settings.LOOKING,
    *cases_admin.CHANGING,
    *cases_daily.CHANGING,
    *cases_settings.CHANGING,
    *cases_features.STORIES,
    *cases_telemetry.STORIES,
    *cases_tokens.STORIES,
    *cases_topics.CLOSING,
)
"""In the order in which they are played: first those that change nothing."""

Pairs = frozenset[tuple[int, int]]
"""API keys with a version each."""

NOT_ENABLED: Final[Mapping[tuple[int, int], str]] = {
    (ApiKey.INIT_PRODUCER_ID, 6): "KIP-939; a broker has it only with `unstable.api.versions.enable`",
}
"""Versions that kustos has and the reference does not offer, so that there is nothing to compare with."""


def compared(stories: Iterable[Story]) -> Pairs:
    """Return the APIs that stories are about, in each version in which they are told."""
    found: set[tuple[int, int]] = set()
    for story in stories:
        lowest, highest = story.versions or offered(story.api)
        found.update((int(story.api), version) for version in range(lowest, highest + 1))
    return frozenset(found) - NOT_ENABLED.keys()


def advertised(table: Mapping[int, Row]) -> Pairs:
    """Return the APIs of a table in each version that clients may be offered."""
    found: set[tuple[int, int]] = set()
    for api_key in table:
        lowest, highest = offered(ApiKey(api_key))
        found.update((int(api_key), version) for version in range(lowest, highest + 1))
    return frozenset(found)


FOR_CLIENTS: Final = compared(STORIES)
FOR_ADMINS: Final = compared(ADMIN_STORIES)


def compared_versions() -> str:
    """Return the file that says of each row of the tables in which versions it is compared."""
    lines = ["listener,key,api,versions"]
    lines += [f"{CLIENTS},{key},{api_name(key)},{of_client_row(key)}" for key in sorted(TABLE)]
    lines += [f"{ADMINS},{key},{api_name(key)},{of_admin_row(key)}" for key in sorted(ADMIN_TABLE)]
    return "\n".join(lines) + "\n"


def of_client_row(api_key: int) -> str:
    """Return the versions in which a row for clients is compared."""
    return _ranges(FOR_CLIENTS, api_key) or "none"


def of_admin_row(api_key: int) -> str:
    """Return the same of a row of admin listeners; some are compared in other versions where clients are."""
    here, there = _ranges(FOR_ADMINS, api_key), _ranges(FOR_CLIENTS, api_key)
    everything = {(api_key, version) for _, version in advertised({api_key: ADMIN_TABLE[api_key]})}
    if everything <= FOR_ADMINS or api_key not in TABLE:
        return here or "none"
    return f"{here or 'none'}; for clients {there or 'none'}"


def _ranges(pairs: Pairs, api_key: int) -> str:
    """Return the versions of an API as ranges, such as `0-3 and 5`; empty if there are none."""
    runs: dict[int, list[int]] = defaultdict(list)
    for number, version in enumerate(sorted(version for key, version in pairs if key == api_key)):
        # in a run both count by one
        runs[version - number].append(version)
    return " and ".join(f"{run[0]}-{run[-1]}" if run[1:] else f"{run[0]}" for run in runs.values())


if __name__ == "__main__":
    COMPARED.write_text(compared_versions(), encoding="utf-8")
