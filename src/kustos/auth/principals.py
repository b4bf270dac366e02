"""The principal of an authenticated session (`DefaultKafkaPrincipalBuilder`)."""

from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.auth.errors import SaslMechanismError

__all__ = ["ANONYMOUS", "principal_of_login"]

_WILDCARD_NAME = "*"


def principal_of_login(authorization_id: str, token_authenticated: bool = False) -> KafkaPrincipal:
    """Return `User:<authorization id>`; raise `SaslMechanismError` for the name `*`.

    `User:*` in an ACL matches everyone, so no user may have that name: Kafka lets such a user log in and then
    fails each of its requests.
    """
    if authorization_id == _WILDCARD_NAME:
        raise SaslMechanismError("a user named `*` may not log in: `User:*` means everybody in ACLs")
    return KafkaPrincipal(KafkaPrincipal.USER_TYPE, authorization_id, token_authenticated)
