"""A principal builder for the scenes: everybody is their team, and mallory is nobody."""

from kustos.acl import KafkaPrincipal
from kustos.auth import AuthenticationContext, KafkaPrincipalBuilder, SaslAuthenticationContext

TEAMS = {"alice": "payments", "admin": "admins"}


class TeamPrincipals(KafkaPrincipalBuilder):
    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        if not isinstance(context, SaslAuthenticationContext):
            raise TypeError("a login is needed")
        return KafkaPrincipal("Team", TEAMS[context.authorization_id])
