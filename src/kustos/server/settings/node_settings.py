"""A node's settings, read from its properties file: checked as a whole, typed, frozen.

First every value is parsed alone, and all errors are reported together; then the settings are combined, and
the first contradiction is raised. No message contains the value of a secret, or of a `${env:...}` or
`${file:...}` reference.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kustos.acl import AclValueError, KafkaPrincipal
from kustos.auth.jwt import GROUPS_CLAIM_PATH
from kustos.authorizer import Authorizer, parse_super_users
from kustos.client import SettingsError, read_properties
from kustos.gateway.listener import AuthorizationMode, ConnectionSettings, FailedLoginLimits, GatewayLimits
from kustos.gateway.upstream import RevocationSettings
from kustos.metadata.control import TokenRules, TokenSecret
from kustos.metadata.log import LogPolicy
from kustos.server.settings.audit import audit_settings
from kustos.server.settings.clients import token_mechanism, upstream_settings
from kustos.server.settings.entries import config_entries, reloadable_keys
from kustos.server.settings.listeners import (
    CONTROLLER_LISTENER_NAMES,
    ListenerSettings,
    check_delay,
    check_ports,
    listener_settings,
)
from kustos.server.settings.node import (
    DECOY_SECRET,
    DELEGATION_TOKEN_SECRET_KEY,
    EARLY_START_LISTENERS,
    LOG_DIRS,
    METADATA_LOG_DIR,
    SUPER_USERS,
    KustosSettings,
)
from kustos.server.settings.plugins import AUTHORIZER_CLASS, find_authorizer
from kustos.server.settings.principals import SSL_GROUP_MAPPING_RULES
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.quorum import quorum_settings
from kustos.server.settings.table import BY_NAME
from kustos.server.settings.workers import worker_settings
from kustos.settings import TakesEffect

GROUP_KEYS: Final = (GROUPS_CLAIM_PATH.name, SSL_GROUP_MAPPING_RULES.name)
"""The keys by which clients have groups."""

DECOY_SECRET_MIN_CHARACTERS: Final = 32
"""The size of the secret of a metadata directory."""


def load_settings(
    path: Path,
    environment: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
) -> KustosSettings:
    """Return the settings of a properties file; raise one `SettingsError` with all errors.

    `environment`: resolves `${env:NAME}`, by default this process's own. `properties`: the content of the
    file, if the caller has read it already.
    """
    if properties is None:
        properties = read_properties(path)
    try:
        return settings_from(properties, os.environ if environment is None else environment)
    except SettingsError as error:
        raise SettingsError(f"`{path}`: {error}") from None


def settings_from(properties: Mapping[str, str], environment: Mapping[str, str]) -> KustosSettings:
    """Return the settings of these keys; raise `SettingsError`."""
    given = GivenSettings.read(BY_NAME, properties, environment)
    listeners = listener_settings(given)
    connections = ConnectionSettings(**given.fields(ConnectionSettings))
    own = given.fields(KustosSettings)
    check_ports(listeners, own["http"])
    check_delay(given, connections, listeners)
    authorization_enabled = _authorization_enabled(given, listeners)
    make_authorizer = _make_authorizer(given) if authorization_enabled else None
    audit = audit_settings(given)
    quorum = quorum_settings(given, listeners)
    upstream = upstream_settings(given)
    workers = worker_settings(given, is_foreign=make_authorizer is not None)
    return KustosSettings(
        **own,
        metadata_directory=_metadata_directory(given),
        log_policy=LogPolicy(**given.fields(LogPolicy)),
        quorum=quorum,
        workers=workers,
        listeners=listeners,
        super_users=_super_users(given),
        authorization_enabled=authorization_enabled,
        authorizer_name=given.require(AUTHORIZER_CLASS).strip(),
        make_authorizer=make_authorizer,
        authorizer_configs=_authorizer_configs(given, is_foreign=make_authorizer is not None),
        own_class_configs=given.custom_class_configs() if given.has_own_classes else {},
        early_start_listeners=_early_start_listeners(given, listeners),
        connections=connections,
        limits=GatewayLimits(
            failed_logins=FailedLoginLimits(**given.fields(FailedLoginLimits)), **given.fields(GatewayLimits)
        ),
        revocation=RevocationSettings(**given.fields(RevocationSettings)),
        upstream=upstream,
        upstream_token_mechanism=token_mechanism(given, upstream, listeners),
        token_rules=_token_rules(given),
        decoy_secret=_decoy_secret(given),
        config_entries=config_entries(properties, given),
        reloadable_keys=reloadable_keys(given, listeners),
        audit=audit,
        warnings=tuple(given.warnings),
    )


def _metadata_directory(given: GivenSettings) -> Path:
    directory = given.get(METADATA_LOG_DIR)
    if directory is not None:
        return directory
    directories = given.get(LOG_DIRS)
    if not directories:
        raise SettingsError("`metadata.log.dir` is not set, name the directory of the metadata log")
    return Path(directories[0])


def _super_users(given: GivenSettings) -> frozenset[str]:
    try:
        users = parse_super_users(given.require(SUPER_USERS))
    except AclValueError as error:
        raise SettingsError(f"`super.users`: {error}") from None
    groups = sorted(each for each in users if each.startswith(KafkaPrincipal.GROUP_PREFIX))
    if groups and any(key.endswith(GROUP_KEYS) for key in given.values):
        given.warnings.append(
            f"`super.users` names `{groups[0]}`, but no group makes its clients super users: name the users"
        )
    return users


def _authorization_enabled(given: GivenSettings, listeners: tuple[ListenerSettings, ...]) -> bool:
    """Return whether a listener uses an authorizer; raise `SettingsError` if the authorizer is missing or
    unused."""
    class_name = given.require(AUTHORIZER_CLASS).strip()
    concerned = [each.name for each in listeners if each.mode is not AuthorizationMode.OFF]
    if not class_name and concerned:
        raise SettingsError(
            "`authorizer.class.name` is empty, which would allow every client everything on listener "
            f"`{concerned[0]}`; leave it out, or set `kustos.authorization.mode=off` as well to confirm that"
        )
    if not concerned and class_name and AUTHORIZER_CLASS.name in given.values:
        raise SettingsError(
            f"`authorizer.class.name` is `{class_name}`, but `kustos.authorization.mode` is `off`; set only "
            "one of them"
        )
    return bool(concerned)


def _make_authorizer(given: GivenSettings) -> Callable[[], Authorizer] | None:
    return find_authorizer(given.require(AUTHORIZER_CLASS).strip())


def _authorizer_configs(given: GivenSettings, *, is_foreign: bool) -> Mapping[str, str]:
    if is_foreign:
        return given.custom_class_configs()
    return {
        key: text
        for key, text in given.texts.items()
        if key in given.table and given.table[key].takes_effect is TakesEffect.AUTHORIZER
    }


def _early_start_listeners(given: GivenSettings, listeners: tuple[ListenerSettings, ...]) -> frozenset[str]:
    controllers = given.require(CONTROLLER_LISTENER_NAMES)
    early: tuple[str, ...] | None = given.get(EARLY_START_LISTENERS)
    if early is None:
        # as in Kafka: an operator needs them to repair ACLs that cannot be loaded
        return frozenset(name.upper() for name in controllers)
    known = {listener.name for listener in listeners}.union(controllers)
    for name in early:
        if name not in known:
            raise SettingsError(
                f"`early.start.listeners` has `{name}`, which is neither in `listeners` nor in "
                "`controller.listener.names`, name one that is (in capitals)"
            )
    return frozenset(early)


def _decoy_secret(given: GivenSettings) -> bytes | None:
    text = given.get(DECOY_SECRET)
    if text is None:
        return None
    if len(text) < DECOY_SECRET_MIN_CHARACTERS:
        raise SettingsError(
            f"`kustos.sasl.scram.decoy.secret` must have {DECOY_SECRET_MIN_CHARACTERS} characters at least"
        )
    try:
        return hashlib.sha512(text.encode()).digest()
    except UnicodeEncodeError:
        # Python's own error contains the whole text
        raise SettingsError("`kustos.sasl.scram.decoy.secret`: the secret is not Unicode text") from None


def _token_rules(given: GivenSettings) -> TokenRules:
    try:
        secret = TokenSecret.of(given.get(DELEGATION_TOKEN_SECRET_KEY))
    except ValueError as error:
        raise SettingsError(f"`delegation.token.secret.key`: {error}") from None
    return TokenRules(secret, **given.fields(TokenRules))
