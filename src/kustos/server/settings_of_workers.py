"""How many processes serve, and what keeps there from being more than one."""

import sys
from dataclasses import dataclass

from kustos.client.errors import SettingsError
from kustos.server import worker_setting_table as table
from kustos.server.given import GivenSettings
from kustos.server.quorum_setting_table import METADATA_STORE


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """`count` 1: the node is one process."""

    count: int = 1
    apply_timeout_ms: int = 3_000


def worker_settings(given: GivenSettings, *, is_quorum: bool, is_foreign: bool) -> WorkerSettings:
    """Return them; raise `SettingsError` where the other settings do not go with several processes.

    `is_quorum`: the metadata is that of a quorum; `is_foreign`: somebody else's authorizer decides.
    """
    count = given.require(table.WORKERS)
    if count > 1:
        name = f"`{table.WORKERS.name}` is `{count}`"
        if is_quorum:
            raise SettingsError(
                f"{name}, but with `{METADATA_STORE.name}=kraft` a node is one process; leave it out, and "
                "run several nodes instead"
            )
        if is_foreign:
            raise SettingsError(
                f"{name}, but what an authorizer of your own keeps in one process the others would not know; "
                "leave it out, or use StandardAuthorizer"
            )
        if sys.platform != "linux":
            raise SettingsError(f"{name}, which needs Linux; leave it out")
    return WorkerSettings(count=count, apply_timeout_ms=given.require(table.APPLY_TIMEOUT_MS))
