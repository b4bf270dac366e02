"""Delegation tokens as logins see them: those of the metadata of this moment."""

from collections.abc import Callable
from typing import Final

from kustos.acl import KafkaPrincipal
from kustos.auth import ScramHash, TokenLogin, TokenLookup
from kustos.metadata.image import MetadataImage
from kustos.metadata.scram import ScramMechanism
from kustos.metadata.tokens import TokenCredentials, TokenSecret
from kustos.runtime import Entropy

_MECHANISMS: Final = {each: ScramMechanism(each.code) for each in ScramHash}


def token_lookup(
    secret: TokenSecret | None, image: Callable[[], MetadataImage], entropy: Entropy
) -> TokenLookup | None:
    """Return what finds the token of a login, None where tokens are switched off.

    As in Kafka a token acts as `User:` and the name of its owner, whatever the owner's type.
    """
    if secret is None:
        return None
    credentials = TokenCredentials(secret, entropy)

    def lookup(token_id: str, scram_hash: ScramHash) -> TokenLogin | None:
        token = image().delegation_tokens.get(token_id)
        if token is None:
            return None
        return TokenLogin(
            credentials.credential(token_id, _MECHANISMS[scram_hash]),
            KafkaPrincipal.parse(token.owner).name,
            min(token.expiration_timestamp_ms, token.max_timestamp_ms),
        )

    return lookup
