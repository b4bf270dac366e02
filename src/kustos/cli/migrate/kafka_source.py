"""What a running cluster says of itself by its admin API, and what its own metadata files add."""

from typing import TYPE_CHECKING

from kustos.metadata.image import ScramKey
from kustos.metadata.scram import ScramMechanism

if TYPE_CHECKING:
    from kustos.client.admin import AdminClient


async def scram_iterations(admin: "AdminClient") -> dict[ScramKey, int]:
    """Return the iterations of all users' credentials; raise the first refusal."""
    found: dict[ScramKey, int] = {}
    for user in await admin.describe_user_scram_credentials():
        if user.error is not None:
            raise user.error
        for name, iterations in user.credentials:
            mechanism = ScramMechanism.from_name(name)
            if mechanism is not None:
                found[user.name, int(mechanism)] = iterations
    return found
