"""The client's Kerberos settings: Kafka's keys for GSSAPI, and the options of Java's Krb5LoginModule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kustos.auth import require_gssapi
from kustos.client.errors import SettingsError
from kustos.client.properties import group_fields
from kustos.settings import INT64_MAX, TEXT, Setting, number, whole_number

LOGIN_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE_NAME_KEY: Final = "sasl.kerberos.service.name"

_EXAMPLE: Final = (
    f'`{LOGIN_MODULE} required useKeyTab=true storeKey=true keyTab="/etc/kustos/client.keytab" '
    f'principal="client@EXAMPLE.COM";` or `{LOGIN_MODULE} required useTicketCache=true;`'
)


@dataclass(frozen=True, slots=True)
class RenewRules:
    """The time of the next login: fractions of a ticket's lifetime, and the minimum time between two logins
    (ms)."""

    window_factor: float = Setting(
        "sasl.kerberos.ticket.renew.window.factor",
        number(0, 1),
        0.8,
        "Upstream",
        "The part of a ticket's life after which the node gets the next one.",
        since="0.2.0",
    ).field()
    jitter: float = Setting(
        "sasl.kerberos.ticket.renew.jitter",
        number(0, 1),
        0.05,
        "Upstream",
        "The random part of its life that is added to that.",
        since="0.2.0",
    ).field()
    min_before_relogin_ms: int = Setting(
        "sasl.kerberos.min.time.before.relogin",
        whole_number(0, INT64_MAX, "milliseconds"),
        60_000,
        "Upstream",
        "The least time between two logins at the KDC.",
        since="0.2.0",
    ).field()

    def renew_at_ms(self, chance: float, now_ms: int, started_ms: int, expires_ms: int) -> int:
        """Return the wall time at which to log in again; `chance` is from 0 to 1.

        As in Kafka's KerberosLogin, this is at `window_factor` plus a random part of `jitter` of the ticket's
        lifetime, but at least `min_before_relogin_ms` from now, unless the ticket expires before that. In
        that case Kafka logs in at once, repeatedly if tickets are always that short; kustos applies factor
        and jitter to the remaining time.
        """
        part = self.window_factor + self.jitter * chance
        if now_ms + self.min_before_relogin_ms > expires_ms:
            return now_ms + int((expires_ms - now_ms) * min(part, 1.0))
        proposed_ms = started_ms + int((expires_ms - started_ms) * part)
        return now_ms if proposed_ms > expires_ms else max(proposed_ms, now_ms + self.min_before_relogin_ms)


@dataclass(frozen=True, slots=True)
class KerberosClientSettings:
    """The source of the client's ticket: a keytab, or else a cache (`cache` None: the default cache)."""

    service_name: str
    principal: str | None = None
    keytab: str | None = None
    uses_cache: bool = False
    cache: str | None = None
    renew: RenewRules = RenewRules()
    kinit: str = Setting(
        "sasl.kerberos.kinit.cmd",
        TEXT,
        "/usr/bin/kinit",
        "Upstream",
        "The program that renews a ticket cache.",
        since="0.2.0",
    ).field()

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], options: Mapping[str, str]
    ) -> "KerberosClientSettings":
        """Return the settings of these keys, and of the options of the login module.

        Raise `SettingsError` naming the wrong key, `ExtraMissingError` without the library.
        """
        service_name = _service_name(properties, options)
        uses_keytab = _is_true(options, "useKeyTab")
        uses_cache = _is_true(options, "useTicketCache")
        if not (uses_keytab or uses_cache):
            # Java would ask for a password
            raise SettingsError(f"`sasl.jaas.config` names neither keytab nor ticket cache: {_EXAMPLE}")
        principal, keytab = options.get("principal"), options.get("keyTab")
        if uses_keytab and not (principal and keytab):
            raise SettingsError(f"`sasl.jaas.config` lacks `keyTab` or `principal`, write it as {_EXAMPLE}")
        require_gssapi()
        return cls(
            service_name,
            principal or None,
            (keytab or "").removeprefix("file:") if uses_keytab else None,
            uses_cache,
            options.get("ticketCache") or None,
            RenewRules(**group_fields(RenewRules, properties)),
            **group_fields(cls, properties),
        )


def _service_name(properties: Mapping[str, str], options: Mapping[str, str]) -> str:
    names = {properties.get(SERVICE_NAME_KEY, "").strip(), options.get("serviceName", "").strip()} - {""}
    if not names:
        raise SettingsError(
            f"`{SERVICE_NAME_KEY}` is not set, nor is the option `serviceName` of `sasl.jaas.config`; it is "
            "the first part of the brokers' principals, mostly `kafka`"
        )
    if len(names) > 1:
        raise SettingsError(
            f"`{SERVICE_NAME_KEY}` and the option `serviceName` of `sasl.jaas.config` differ, make them the "
            "same"
        )
    return names.pop()


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"
