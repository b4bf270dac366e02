"""A principal builder of your own: clients with a certificate are services, of the team in its `OU`.

`CN=billing,OU=payments,O=Example` becomes `Service:payments.billing`, so that ACLs for services cannot be
mistaken for those of people; everybody else gets the principal that Kafka builds. A certificate needs a team.

    principal.builder.class=service_principals.ServicePrincipals
    services.organization=Example
"""

from collections.abc import Mapping

from kustos.acl import KafkaPrincipal
from kustos.auth import (
    AuthenticationContext,
    KafkaPrincipalBuilder,
    SaslAuthenticationContext,
    SslAuthenticationContext,
)


class ServicePrincipals(KafkaPrincipalBuilder):
    """Turns certificates into services."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Read the organization; without one the node does not start."""
        self._end = f",O={configs['services.organization']}"

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        """Return the principal; whatever this raises closes the connection."""
        if isinstance(context, SaslAuthenticationContext):
            return KafkaPrincipal("User", context.authorization_id)
        if not isinstance(context, SslAuthenticationContext) or context.distinguished_name is None:
            raise PermissionError("a certificate or a login is needed")
        name, separator, team = context.distinguished_name.removesuffix(self._end).partition(",OU=")
        if not (separator and name.startswith("CN=") and context.distinguished_name.endswith(self._end)):
            raise PermissionError("the certificate is of another organization, or names no team")
        return KafkaPrincipal("Service", f"{team}.{name.removeprefix('CN=')}")
