"""SASL mechanisms of listeners, each with its source of credentials.

The properties file has the users of PLAIN for each listener; a reload replaces them completely.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from kustos.acl import KafkaPrincipal
from kustos.auth import (
    GSSAPI,
    OAUTHBEARER,
    FormCount,
    Forms,
    GssapiCredentials,
    GssapiServer,
    JaasEntry,
    MechanismFactory,
    OAuthBearerServer,
    OwnedToken,
    PlainServer,
    PlainUsers,
    ReplaceablePlainUsers,
    ScramDecoys,
    ScramHash,
    ScramServer,
    TokenLogin,
    TokenLookup,
    TokenValidator,
)
from kustos.metadata import ScramCredential, ScramMechanism
from kustos.metadata.control import TokenCredentials, TokenSecret
from kustos.metadata.directory import read_decoy_secret
from kustos.metadata.image import MetadataImage, ScramKey
from kustos.runtime import Clock, Entropy, SystemClock
from kustos.server.settings.listeners import ListenerSettings, SaslListenerSettings
from kustos.server.settings.node import KustosSettings

PLAIN: Final = "PLAIN"


def plain_users(sasl: SaslListenerSettings, entropy: Entropy) -> PlainUsers:
    """Return the users of a listener, none if its PLAIN has no login module."""
    module = sasl.jaas.get(PLAIN)
    return PlainUsers.from_jaas_options({} if module is None else module.options, entropy)


class PlainSide:
    """The users of all listeners of a node."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy: Final = entropy
        self._users: Final[dict[str, ReplaceablePlainUsers]] = {}
        self._modules: Final[dict[str, JaasEntry | None]] = {}

    def users(self, listener: str, sasl: SaslListenerSettings) -> ReplaceablePlainUsers:
        """Return the users of a listener, now and after each reload."""
        self._modules[listener] = sasl.jaas.get(PLAIN)
        found = self._users[listener] = ReplaceablePlainUsers(plain_users(sasl, self._entropy))
        return found

    def staged(self, listeners: Iterable[ListenerSettings]) -> Callable[[], None]:
        """Return the function that puts the users of these settings in force. Sessions continue."""
        made = {
            each.name: (each.sasl.jaas.get(PLAIN), plain_users(each.sasl, self._entropy))
            for each in listeners
            if each.sasl is not None
            and each.name in self._users
            and each.sasl.jaas.get(PLAIN) != self._modules[each.name]
        }

        def commit() -> None:
            for name, (module, users) in made.items():
                self._modules[name], self._users[name].current = module, users

        return commit


SCRAM: Final[dict[str, ScramHash]] = {each.mechanism_name: each for each in ScramHash}


FORMS_RENEWED_EVERY_MS: Final = 60_000
"""The interval of counting the forms of credentials again after users were added or removed."""

USERS_COUNTED_AT_ONCE: Final = 1_000
"""The number of users that one login counts, in some 2 ms; only the first login counts all users."""


class UserForms:
    """The forms of the users' credentials, up to a minute old."""

    def __init__(self, image: Callable[[], MetadataImage], clock: Clock) -> None:
        self._image: Final = image
        self._clock: Final = clock
        self._forms: dict[ScramHash, Forms] = {}
        self._users: Mapping[ScramKey, ScramCredential] = {}
        self._begun_ms = 0
        self._counting: Iterator[None] = iter(())

    def of(self, scram_hash: ScramHash) -> Forms:
        """Return the forms of a mechanism's credentials."""
        users, now_ms = self._image().scram_credentials, self._clock.monotonic_ms()
        if not self._forms:
            self._users, self._begun_ms = users, now_ms
            for _ in self._count(users):
                pass
        elif users is not self._users and now_ms - self._begun_ms >= FORMS_RENEWED_EVERY_MS:
            self._users, self._begun_ms = users, now_ms
            self._counting = self._count(users)
        next(self._counting, None)
        return self._forms[scram_hash]

    def _count(self, users: Mapping[ScramKey, ScramCredential]) -> Iterator[None]:
        """Count the forms of all users, `USERS_COUNTED_AT_ONCE` in one step."""
        counts = {each.code: FormCount() for each in ScramHash}
        for number, ((_, code), credential) in enumerate(users.items(), start=1):
            if code in counts:
                counts[code].add(credential)
            if number % USERS_COUNTED_AT_ONCE == 0:
                yield
        self._forms = {each: counts[each.code].forms() for each in ScramHash}


def scram_decoys(settings: KustosSettings, image: Callable[[], MetadataImage] | None = None) -> ScramDecoys:
    """Return decoys for users that do not exist, the same on all nodes with this secret.

    They have the forms of the image's users; without an image, the form of Kafka's tools.
    """
    shared = settings.decoy_secret
    secret = read_decoy_secret(settings.metadata_directory) if shared is None else shared
    return ScramDecoys(secret) if image is None else ScramDecoys(secret, UserForms(image, SystemClock()).of)


def mechanism_factories(
    sasl: SaslListenerSettings,
    image: Callable[[], MetadataImage],
    decoys: ScramDecoys,
    entropy: Entropy,
    tokens: TokenLookup | None = None,
    validate: TokenValidator | None = None,
    of_operator: Callable[[str], MechanismFactory | None] = lambda _: None,
    users: ReplaceablePlainUsers | None = None,
) -> dict[str, MechanismFactory]:
    """Return the factories of the enabled mechanisms, in the order shown to clients.

    `image`: returns the current metadata, so a credential is valid when its creation is answered. `tokens`:
    finds delegation tokens. `validate`: validates bearer tokens, if OAUTHBEARER is enabled. `of_operator`:
    the factories of mechanisms with custom classes. `users`: the users of PLAIN, by default the users of
    these settings. Raise `CredentialsError` if the keytab for GSSAPI has no usable key.
    """

    def lookup(user: str, scram_hash: ScramHash) -> ScramCredential | None:
        return image().scram_credentials.get((user, scram_hash.code))

    factories: dict[str, MechanismFactory] = {}
    for mechanism in sasl.enabled_mechanisms:
        own = of_operator(mechanism)
        if own is not None:
            factories[mechanism] = own
        elif mechanism == GSSAPI and sasl.kerberos is not None:
            credentials = GssapiCredentials.acquire(sasl.kerberos.keytab, sasl.kerberos.principal)
            factories[mechanism] = GssapiServer.factory(credentials)
        elif mechanism == PLAIN:
            factories[mechanism] = PlainServer.factory(users or plain_users(sasl, entropy))
        elif mechanism == OAUTHBEARER and validate is not None:
            factories[mechanism] = OAuthBearerServer.factory(validate)
        else:
            factories[mechanism] = ScramServer.factory(SCRAM[mechanism], lookup, decoys, entropy, tokens)
    return factories


_MECHANISMS: Final = {each: ScramMechanism(each.code) for each in ScramHash}


def token_lookup(secret: TokenSecret | None, image: Callable[[], MetadataImage]) -> TokenLookup | None:
    """Return the lookup of a login's token, None if tokens are disabled.

    As in Kafka, a token has the principal `User:` with its owner's name, regardless of the owner's type.
    Every id has a credential that depends only on the secret, so neither salt nor time reveals which ids
    exist.
    """
    if secret is None:
        return None
    credentials, use = TokenCredentials(secret), threading.Lock()

    def lookup(token_id: str, scram_hash: ScramHash) -> TokenLogin:
        mechanism = _MECHANISMS[scram_hash]

        def find() -> OwnedToken | None:
            token = image().delegation_tokens.get(token_id)
            if token is None:
                return None
            expires_at_ms = min(token.expiration_timestamp_ms, token.max_timestamp_ms)
            return OwnedToken(KafkaPrincipal.parse(token.owner).name, expires_at_ms)

        def compute() -> ScramCredential:
            credential = credentials.compute(token_id, mechanism)
            if token_id in image().delegation_tokens:
                with use:
                    credentials.keep(token_id, mechanism, credential)
            return credential

        with use:
            known = credentials.known(token_id, mechanism)
        return TokenLogin(known, compute, find)

    return lookup
