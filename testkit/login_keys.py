"""Kafka's settings of listeners by which clients log in, without the listener's prefix."""

from pathlib import Path

from testkit.kdc import REALM

MODULES = "org.apache.kafka.common.security"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def bearer_keys(jwks_url: str, audience: str, issuer: str) -> dict[str, str]:
    """Return the keys of OAUTHBEARER with the tokens of a provider."""
    oauth = "oauthbearer.sasl.oauthbearer"
    return {
        "oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        "oauthbearer.sasl.server.callback.handler.class": (
            f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        f"{oauth}.jwks.endpoint.url": jwks_url,
        f"{oauth}.expected.audience": audience,
        f"{oauth}.expected.issuer": issuer,
    }


def kerberos_keys(keytab: Path, principal: str = f"kafka/localhost@{REALM}") -> dict[str, str]:
    """Return the keys of GSSAPI with the service's keytab."""
    return {
        "gssapi.sasl.jaas.config": f"{KERBEROS_MODULE} required useKeyTab=true storeKey=true "
        f'keyTab="{keytab}" principal="{principal}";'
    }


def pem_keys(store: Path, trust: Path) -> dict[str, str]:
    """Return the keys of TLS with stores in PEM."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust),
    }
