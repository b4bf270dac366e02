"""SIGHUP: reloads the properties file, and applies the settings that may change while the node runs.

The table of settings defines the keys that the node itself can change, and the authorizer defines its own;
StandardAuthorizer has `super.users` and `allow.everyone.if.no.acl.found`. After an error nothing changes, and
the error is logged. For every other changed key, the log says that it needs a restart, without its value.
"""

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from kustos.authorizer import Authorizer
from kustos.client import SettingsError
from kustos.server.admin import AdminSide
from kustos.server.authorization.life import ReconfigurationError, changed_keys, reconfigure
from kustos.server.settings.node import KustosSettings

LOG: Final = structlog.get_logger("kustos.server")

Stage = Callable[[KustosSettings], Callable[[], None]]
"""Prepares new settings, and returns the function that puts them in force; raises `SettingsError`."""


class Reloader:
    """Keeps the settings in force. `read` reads the properties file; it raises `SettingsError`.

    `stage` is the function of the node. `on_reload` is called with the changed keys, if there are any.
    """

    def __init__(
        self,
        settings: KustosSettings,
        read: Callable[[], KustosSettings],
        authorizer: Authorizer | None,
        admin: AdminSide | None = None,
        on_reload: Callable[[frozenset[str]], object] | None = None,
        stage: Stage = lambda _: lambda: None,
    ) -> None:
        self._stage: Final = stage
        self._on_reload: Final = on_reload
        self._admin: Final = admin
        self._at_start: Final = settings
        self._latest = settings
        self._read: Final = read
        self._authorizer: Final = authorizer
        self._configs = settings.authorizer_configs

    def reload(self) -> bool:
        """Read the file again and apply the settings that may change; return whether this succeeded."""
        try:
            settings = self._read()
            commit = self._stage(settings)
            configs, waiting = self._configs, frozenset[str]()
            if self._authorizer is not None:
                configs, waiting = self._reconfigure(self._authorizer, settings)
        except (SettingsError, ReconfigurationError, OSError) as error:
            LOG.error("the settings were not reloaded, the old ones stay in force", reason=str(error))
            return False
        commit()
        former, self._latest = self._latest, settings
        in_force = former.reloadable_keys | settings.reloadable_keys
        changed = changed_keys(self._configs, configs) | (
            changed_keys(_texts(former), _texts(settings)) & in_force
        )
        self._configs = configs
        self._tell_admin(changed)
        restart = (waiting | self._changed_since_start()) - in_force
        if restart:
            LOG.warning("some settings change only with a restart", keys=sorted(restart))
        LOG.info("the settings were reloaded", changed=sorted(changed))
        if changed and self._on_reload is not None:
            self._on_reload(changed)
        return True

    def _changed_since_start(self) -> frozenset[str]:
        """Return the keys that changed since the start, without those that the authorizer applied."""
        before, now = self._at_start.authorizer_configs, self._latest.authorizer_configs
        taken = {key for key in before.keys() | now.keys() if self._configs.get(key) == now.get(key)}
        return changed_keys(_texts(self._at_start), _texts(self._latest)) - taken

    def _tell_admin(self, changed: frozenset[str]) -> None:
        if self._admin is not None:
            entries = {entry.name: entry for entry in self._latest.config_entries}
            found = [entries[key] for key in changed if key in entries]
            self._admin.reloaded(self._configs, found, changed - entries.keys())

    def _reconfigure(
        self, authorizer: Authorizer, settings: KustosSettings
    ) -> tuple[Mapping[str, str], frozenset[str]]:
        """Put the file's settings in force unless the log overrides them."""
        over = {} if self._admin is None else self._admin.dynamic_values()
        old, new = self._configs, settings.authorizer_configs
        configs, waiting = reconfigure(authorizer, {**old, **over}, {**new, **over})
        file_values = {key: value for key, value in configs.items() if key not in over}
        return file_values | {key: new[key] for key in over if key in new}, waiting


def _texts(settings: KustosSettings) -> dict[str, str | None]:
    """Return the text of each key of the file; some are secrets."""
    return {entry.name: entry.value for entry in settings.config_entries}
