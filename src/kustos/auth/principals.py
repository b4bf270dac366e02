"""Which principals a session may have, and keep."""

from kustos.acl import ANONYMOUS, EVERY_PRINCIPAL, KafkaPrincipal
from kustos.auth.errors import PrincipalBuilderError, SaslAuthenticationError

__all__ = ["ANONYMOUS", "refuse_change", "refuse_wildcard"]


def refuse_wildcard(principal: KafkaPrincipal) -> KafkaPrincipal:
    """Return the principal; raise `PrincipalBuilderError` for `User:*`.

    In an ACL it matches everyone, so no user may have that name: Kafka lets such a user log in and then fails
    each of its requests.
    """
    if str(principal) == EVERY_PRINCIPAL:
        raise PrincipalBuilderError("a user named `*` may not log in: `User:*` means everybody in ACLs")
    return principal


def refuse_change(old: KafkaPrincipal | None, new: KafkaPrincipal) -> None:
    """Raise `SaslAuthenticationError` if a re-authentication proved to be somebody else (KIP-368)."""
    if new != old:
        was = "" if old is None else f"{old.principal_type}.{old.name}"
        raise SaslAuthenticationError(
            f"Cannot change principals during re-authentication from {was}: {new.principal_type}.{new.name}"
        )
