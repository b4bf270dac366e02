"""SIGHUP: reloads the properties file, and puts in force what may change while the node runs.

The authorizer says what may change; for StandardAuthorizer these are `super.users` and
`allow.everyone.if.no.acl.found`. TLS of listeners may change, too, and candidate ACLs are read anew. Any
error leaves everything as it was,
with one error in the log.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Final

import structlog

from kustos.authorizer import Authorizer
from kustos.client import SettingsError
from kustos.server.admin import AdminSide
from kustos.server.authorization.life import ReconfigurationError, changed_keys, reconfigure
from kustos.server.candidate import CandidateSide
from kustos.server.settings.node_settings import KustosSettings
from kustos.server.tls import TlsSide, without_tls

LOG: Final = structlog.get_logger("kustos.server")

_OF_THE_AUTHORIZER: Final = frozenset(
    {
        "authorizer_configs",
        "super_users",
        "allow_everyone_if_no_acl_found",
        "candidate_acls",
        "config_entries",
        "warnings",
    }
)


class Reloader:
    """Keeps the settings in force. `read` reads the properties file; it raises `SettingsError`.

    `on_reload` is called with the keys that changed, if any did.
    """

    def __init__(
        self,
        settings: KustosSettings,
        read: Callable[[], KustosSettings],
        authorizer: Authorizer | None,
        admin: AdminSide | None = None,
        on_reload: Callable[[frozenset[str]], object] | None = None,
        tls: TlsSide | None = None,
        candidate: CandidateSide | None = None,
    ) -> None:
        self._candidate: Final = candidate
        self._tls: Final = tls
        self._on_reload: Final = on_reload
        self._admin: Final = admin
        self._settings: Final = settings
        self._read: Final = read
        self._authorizer: Final = authorizer
        self._configs = settings.authorizer_configs

    def reload(self) -> bool:
        """Read the file again and put in force what may change; return whether that succeeded."""
        try:
            settings = self._read()
            commit_stores = None if self._tls is None else self._tls.staged(settings.listeners)
            configs, waiting = self._configs, frozenset[str]()
            if self._authorizer is not None:
                configs, waiting = self._reconfigure(self._authorizer, settings)
        except (SettingsError, ReconfigurationError) as error:
            LOG.error("the settings were not reloaded, the old ones stay in force", reason=str(error))
            return False
        if commit_stores is not None:
            commit_stores()
        if self._candidate is not None:
            self._candidate.load(settings.candidate_acls)
        changed = changed_keys(self._configs, configs)
        self._configs = configs
        if self._admin is not None:
            self._admin.reloaded(configs, settings.config_entries)
        others = [
            field.name
            for field in fields(settings)
            if field.name not in _OF_THE_AUTHORIZER
            and _comparable(settings, field.name) != _comparable(self._settings, field.name)
        ]
        if waiting or others:
            LOG.warning("some settings change only with a restart", keys=sorted(waiting), of=others)
        LOG.info("the settings were reloaded", changed=sorted(changed))
        if changed and self._on_reload is not None:
            self._on_reload(frozenset(changed))
        return True

    def _reconfigure(
        self, authorizer: Authorizer, settings: KustosSettings
    ) -> tuple[Mapping[str, str], frozenset[str]]:
        """Put the file's settings in force unless the log overrides them."""
        over = {} if self._admin is None else self._admin.dynamic_values()
        old, new = self._configs, settings.authorizer_configs
        configs, waiting = reconfigure(authorizer, {**old, **over}, {**new, **over})
        file_values = {key: value for key, value in configs.items() if key not in over}
        return file_values | {key: new[key] for key in over if key in new}, waiting


def _comparable(settings: KustosSettings, name: str) -> object:
    """Return a setting without its parts that a reload puts in force."""
    return without_tls(settings.listeners) if name == "listeners" else getattr(settings, name)
