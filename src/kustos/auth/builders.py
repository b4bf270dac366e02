"""Principal builders: they derive the principal of a session from the login of its connection (KIP-189).

`DefaultKafkaPrincipalBuilder` does what Kafka's class of that name does. A custom class, named by
`principal.builder.class`, implements `KafkaPrincipalBuilder`; kustos validates its result. Any failure raises
`PrincipalBuilderError`, and the connection is closed without a principal.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kustos.acl import ANONYMOUS, EVERY_PRINCIPAL, KafkaPrincipal
from kustos.auth.errors import NoMatchingRuleError, PrincipalBuilderError, SaslAuthenticationError
from kustos.auth.groups import GroupError, checked_groups
from kustos.auth.mechanisms.base import Proven


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationContext:
    """The facts about an authenticated connection. `client_address` is written as in Java.

    `groups` are the groups of the client, as the settings find them in its token or certificate.
    """

    listener_name: str
    client_address: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaintextAuthenticationContext(AuthenticationContext):
    """A connection to a listener without authentication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SslAuthenticationContext(AuthenticationContext):
    """A TLS connection. Both fields are None if the client presented no certificate.

    `distinguished_name` is the subject's name in RFC 2253's form, `certificate` the certificate's DER.
    """

    distinguished_name: str | None = None
    certificate: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticationContext(AuthenticationContext):
    """A SASL login; for GSSAPI `authorization_id` is the Kerberos principal."""

    security_protocol: str
    mechanism: str
    authorization_id: str


class KafkaPrincipalBuilder(ABC):
    """Builds principals. One object serves one listener; it is created without arguments."""

    def configure(self, configs: Mapping[str, str]) -> None:  # noqa: B027 - most need no settings
        """Receive the node's settings, once and before other calls; an exception prevents the start of the
        node."""

    @abstractmethod
    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        """Return the principal, with its groups; an exception closes the connection. All clients wait during
        this call."""


class DefaultKafkaPrincipalBuilder(KafkaPrincipalBuilder):
    """Kafka's builder: ANONYMOUS, the mapped name of a certificate or of Kerberos, or the user of the
    login."""

    def __init__(self, map_certificate: Callable[[str], str], shorten_kerberos: Callable[[str], str]) -> None:
        self._map_certificate: Final = map_certificate
        self._shorten_kerberos: Final = shorten_kerberos

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        """Return the principal; raise `NoMatchingRuleError` if no rule gives one."""
        match context:
            case SslAuthenticationContext(distinguished_name=str(name)):
                return _user(self._map_certificate(name), context.groups)
            case SaslAuthenticationContext(mechanism="GSSAPI"):
                return _user(self._shorten_kerberos(context.authorization_id), context.groups)
            case SaslAuthenticationContext():
                return _user(context.authorization_id, context.groups)
            case PlaintextAuthenticationContext() | SslAuthenticationContext():
                return ANONYMOUS
        raise PrincipalBuilderError(f"there is no principal for a `{type(context).__name__}`")


PLAIN_NAMES: Final = DefaultKafkaPrincipalBuilder(str, str)
"""Without rules, every name is unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerPrincipals:
    """The principals of one listener; each method raises `PrincipalBuilderError` if there is none."""

    listener_name: str
    security_protocol: str
    builder: KafkaPrincipalBuilder = PLAIN_NAMES

    def without_login(self, client_address: str) -> KafkaPrincipal:
        """Return the principal of a client of a listener without authentication."""
        name = self.listener_name
        return self._built(PlaintextAuthenticationContext(listener_name=name, client_address=client_address))

    def of_certificate(
        self,
        client_address: str,
        distinguished_name: str | None,
        certificate: bytes | None,
        groups: tuple[str, ...] = (),
    ) -> KafkaPrincipal:
        """Return the principal of a TLS client; name and certificate are None if it presented no
        certificate."""
        context = SslAuthenticationContext(
            listener_name=self.listener_name,
            client_address=client_address,
            distinguished_name=distinguished_name,
            certificate=certificate,
            groups=groups,
        )
        return self._built(context)

    def of_login(self, client_address: str, mechanism: str, proven: Proven) -> KafkaPrincipal:
        """Return the principal of a SASL login; its flag of delegation tokens comes from the login.

        A delegation token belongs to its owner, and has none of the owner's groups: they are not in the
        token, and the owner may have left them.
        """
        context = SaslAuthenticationContext(
            listener_name=self.listener_name,
            client_address=client_address,
            security_protocol=self.security_protocol,
            mechanism=mechanism,
            authorization_id=proven.authorization_id,
            groups=proven.groups,
        )
        built, flag = self._built(context), proven.token_authenticated
        return replace(built, token_authenticated=flag, groups=() if flag else built.groups)

    def _built(self, context: AuthenticationContext) -> KafkaPrincipal:
        """Return what the builder returns, validated."""
        try:
            found: object = self.builder.build(context)
        except (NoMatchingRuleError, PrincipalBuilderError) as error:
            raise PrincipalBuilderError(str(error)) from None
        except Exception as error:
            # only the type: the exception text of third-party code may contain bytes of the peer
            raise PrincipalBuilderError(
                f"`{type(self.builder).__name__}` raised {type(error).__name__}"
            ) from error
        # a subclass could compare equal to every other principal
        if type(found) is not KafkaPrincipal:
            raise PrincipalBuilderError(
                f"`{type(self.builder).__name__}` returned a {type(found).__name__}, not a `KafkaPrincipal`"
            )
        if not found.name or not found.principal_type:
            raise PrincipalBuilderError(
                f"`{type(self.builder).__name__}` returned a principal without a name"
            )
        if found.groups != ():
            try:
                checked = checked_groups(found.groups)
            except GroupError as error:
                raise PrincipalBuilderError(
                    f"`{type(self.builder).__name__}` returned groups that cannot be used: {error}"
                ) from None
            found = replace(found, groups=checked)
        return refuse_wildcard(found)


def principal_of_login(mechanism: str, proven: Proven) -> KafkaPrincipal:
    """Return the principal of a SASL login where there are no rules; raise `PrincipalBuilderError`."""
    principals = ListenerPrincipals(listener_name="", security_protocol="SASL_PLAINTEXT")
    return principals.of_login("", mechanism, proven)


def configured(
    builder_class: type[KafkaPrincipalBuilder], configs: Mapping[str, str]
) -> KafkaPrincipalBuilder:
    """Return a new builder, configured; raise `PrincipalBuilderError` if that fails."""
    try:
        builder = builder_class()
        builder.configure(configs)
    except Exception as error:  # noqa: BLE001 - whatever it raises keeps the node from starting
        # only the type: the settings passed to it may contain secrets
        raise PrincipalBuilderError(
            f"`principal.builder.class` names `{builder_class.__name__}`, which cannot be configured: "
            f"it raised {type(error).__name__}"
        ) from None
    return builder


def _user(name: str, groups: tuple[str, ...]) -> KafkaPrincipal:
    return KafkaPrincipal(KafkaPrincipal.USER_TYPE, name, groups=groups)


def refuse_wildcard(principal: KafkaPrincipal) -> KafkaPrincipal:
    """Return the principal; raise `PrincipalBuilderError` for `User:*`.

    In an ACL, `User:*` matches every user, so no user may have that name. Kafka lets such a user log in and
    then fails each request.
    """
    # compare the name first: it decides for most principals
    if principal.name == "*" and str(principal) == EVERY_PRINCIPAL:
        raise PrincipalBuilderError("a user named `*` may not log in: `User:*` means everybody in ACLs")
    return principal


def refuse_change(old: KafkaPrincipal | None, new: KafkaPrincipal) -> None:
    """Raise `SaslAuthenticationError` if a re-authentication leads to another principal (KIP-368)."""
    if new != old:
        was = "" if old is None else f"{old.principal_type}.{old.name}"
        raise SaslAuthenticationError(
            f"Cannot change principals during re-authentication from {was}: {new.principal_type}.{new.name}"
        )
