"""Our identity in Kerberos: Kafka's keys of a client with GSSAPI, and options of Java's Krb5LoginModule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kustos.auth import require_gssapi
from kustos.client.errors import SettingsError

LOGIN_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE_NAME_KEY: Final = "sasl.kerberos.service.name"
KINIT_KEY: Final = "sasl.kerberos.kinit.cmd"
FACTOR_KEY: Final = "sasl.kerberos.ticket.renew.window.factor"
JITTER_KEY: Final = "sasl.kerberos.ticket.renew.jitter"
MIN_TIME_KEY: Final = "sasl.kerberos.min.time.before.relogin"

_INT64_MAX: Final = 2**63 - 1
_EXAMPLE: Final = (
    f'`{LOGIN_MODULE} required useKeyTab=true storeKey=true keyTab="/etc/kustos/client.keytab" '
    f'principal="client@EXAMPLE.COM";` or `{LOGIN_MODULE} required useTicketCache=true;`'
)


@dataclass(frozen=True, slots=True)
class RenewRules:
    """When to log in again: parts of a ticket's life, and the least time between two logins (ms)."""

    window_factor: float
    jitter: float
    min_before_relogin_ms: int

    def renew_at_ms(self, chance: float, now_ms: int, started_ms: int, expires_ms: int) -> int:
        """Return the wall time at which to log in again; `chance` is from 0 to 1.

        As in Kafka's KerberosLogin: at `window_factor` plus a part of `jitter` of the ticket's life, but not
        sooner than `min_before_relogin_ms` from now, unless it ends before. Kafka then logs in at once, and
        again and again if tickets never last as long; here factor and jitter divide what is left of it.
        """
        part = self.window_factor + self.jitter * chance
        if now_ms + self.min_before_relogin_ms > expires_ms:
            return now_ms + int((expires_ms - now_ms) * min(part, 1.0))
        proposed_ms = started_ms + int((expires_ms - started_ms) * part)
        return now_ms if proposed_ms > expires_ms else max(proposed_ms, now_ms + self.min_before_relogin_ms)


KAFKAS_RULES: Final = RenewRules(0.8, 0.05, 60_000)
"""Kafka's defaults."""


@dataclass(frozen=True, slots=True)
class KerberosClientSettings:
    """Where our ticket comes from: a keytab, or else a cache (`cache` None: the default one)."""

    service_name: str
    principal: str | None = None
    keytab: str | None = None
    uses_cache: bool = False
    cache: str | None = None
    kinit: str = "/usr/bin/kinit"
    """Renews the tickets of a cache."""
    renew: RenewRules = KAFKAS_RULES

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
            properties.get(KINIT_KEY, "").strip() or "/usr/bin/kinit",
            RenewRules(
                _part(properties, FACTOR_KEY, KAFKAS_RULES.window_factor),
                _part(properties, JITTER_KEY, KAFKAS_RULES.jitter),
                _milliseconds(properties),
            ),
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


def _part(properties: Mapping[str, str], key: str, default: float) -> float:
    text = properties.get(key, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise SettingsError(f"`{key}` is `{text}`, use a number from 0 to 1")
    return value


def _milliseconds(properties: Mapping[str, str]) -> int:
    text = properties.get(MIN_TIME_KEY, "").strip()
    if not text:
        return KAFKAS_RULES.min_before_relogin_ms
    if not (text.isascii() and text.isdigit() and len(text) <= 19) or int(text) > _INT64_MAX:
        raise SettingsError(f"`{MIN_TIME_KEY}` is `{text}`, use a whole number of milliseconds from 0")
    return int(text)
