"""SASL servers for listeners: each enabled mechanism with where its credentials are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kustos.auth import (
    MechanismFactory,
    PlainServer,
    PlainUsers,
    ScramDecoys,
    ScramHash,
    ScramServer,
    TokenLookup,
)
from kustos.metadata.image import MetadataImage
from kustos.metadata.scram import ScramCredential
from kustos.runtime import Entropy

PLAIN: Final = "PLAIN"
SCRAM: Final[dict[str, ScramHash]] = {each.mechanism_name: each for each in ScramHash}


def mechanism_factories(
    enabled: Sequence[str],
    plain_options: Mapping[str, str],
    image: Callable[[], MetadataImage],
    decoys: ScramDecoys,
    entropy: Entropy,
    tokens: TokenLookup | None = None,
) -> dict[str, MechanismFactory]:
    """Return the factories of the enabled mechanisms, in the order shown to clients.

    `plain_options`: those of the listener's PlainLoginModule. `image`: the metadata of this moment, so
    that a credential counts from the moment its creation was answered. `tokens`: finds delegation tokens.
    """

    def lookup(user: str, scram_hash: ScramHash) -> ScramCredential | None:
        return image().scram_credentials.get((user, scram_hash.code))

    made: dict[str, MechanismFactory] = {}
    for mechanism in enabled:
        if mechanism == PLAIN:
            users = PlainUsers.from_jaas_options(plain_options, entropy)
            made[mechanism] = PlainServer.factory(users)
        else:
            made[mechanism] = ScramServer.factory(SCRAM[mechanism], lookup, decoys, entropy, tokens)
    return made
