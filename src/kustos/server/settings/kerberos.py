"""The node's identity in Kerberos: options of Java's Krb5LoginModule that name a keytab and a principal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.auth import GSSAPI, JaasEntry, NoMatchingRuleError, require_gssapi
from kustos.auth.mapping import KerberosName
from kustos.client import SettingsError
from kustos.server.settings.properties import GivenSettings, keys_of
from kustos.server.settings.table import node as table
from kustos.server.settings.table.principals import KERBEROS_SERVICE_NAME

MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
_EXAMPLE: Final = (
    f'`{MODULE} required useKeyTab=true storeKey=true keyTab="/etc/kustos/kafka.keytab" '
    'principal="kafka/host.example.com@EXAMPLE.COM";`'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosSettings:
    """The key of the service: `principal` is `service/host@REALM`."""

    keytab: Path
    principal: str


def kerberos_settings(given: GivenSettings, listener: str, entry: JaasEntry | None) -> KerberosSettings:
    """Return the settings of a listener that offers GSSAPI; raise `SettingsError`, `ExtraMissingError`."""
    key = next(iter(keys_of(table.JAAS_CONFIG, listener, GSSAPI)))
    if entry is None:
        raise SettingsError(
            f"listener `{listener}` offers `GSSAPI` (Kafka's default) without a keytab: set `{key}` to "
            f"{_EXAMPLE}"
        )
    require_gssapi()
    options = entry.options
    for option in ("useKeyTab", "storeKey"):
        # without them Java would take the key from a ticket cache, or keep none to accept clients with
        if options.get(option, "").lower() != "true":
            raise SettingsError(f"`{key}` lacks `{option}=true`, write it as {_EXAMPLE}")
    for option in ("keyTab", "principal"):
        if not options.get(option):
            raise SettingsError(f"`{key}` lacks `{option}`, write it as {_EXAMPLE}")
    principal = options["principal"]
    try:
        name = KerberosName.parse(principal)
    except NoMatchingRuleError as error:
        raise SettingsError(f"`{key}`: {error}") from None
    if not (name.service and name.host):
        raise SettingsError(f"`{key}` has the principal `{principal}`, write it as `service/host@REALM`")
    for service in (options.get("serviceName"), given.get(KERBEROS_SERVICE_NAME, listener)):
        if service is not None and service != name.service:
            raise SettingsError(
                f"the principal `{principal}` in `{key}` is not of the service `{service}` that "
                f"`{KERBEROS_SERVICE_NAME.name}` or `serviceName` names, make them the same"
            )
    return KerberosSettings(keytab=Path(options["keyTab"].removeprefix("file:")), principal=principal)
