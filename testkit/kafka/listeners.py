"""The listeners of a test broker and their Kafka configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"

INTERNAL_USER = "broker"
INTERNAL_PASSWORD = "broker-secret"  # of a test broker on loopback
"""The user of brokers and controllers among each other if an authorizer is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One listener for clients.

    `properties` are added under `listener.name.<name>.`, for example the keys of TLS.
    """

    name: str
    protocol: str = "PLAINTEXT"
    mechanisms: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """The prefix of the listener's own configuration keys."""
        return f"listener.name.{self.name.lower()}."

    def configuration(self, users: Mapping[str, str]) -> dict[str, str]:
        """Return the properties of this listener; `users` are the passwords that PLAIN accepts."""
        keys = {self.prefix + key: value for key, value in self.properties.items()}
        if self.mechanisms:
            keys[self.prefix + "sasl.enabled.mechanisms"] = ",".join(self.mechanisms)
        for mechanism in self.mechanisms:
            if mechanism == "PLAIN":
                keys[f"{self.prefix}plain.sasl.jaas.config"] = plain_jaas(users)
            elif mechanism.startswith("SCRAM-"):
                keys[f"{self.prefix}{mechanism.lower()}.sasl.jaas.config"] = f"{SCRAM_MODULE} required;"
        return keys


PLAINTEXT = Listener(name="PLAINTEXT")
SASL_PLAINTEXT = Listener(
    name="SASL_PLAINTEXT", protocol="SASL_PLAINTEXT", mechanisms=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
)


def plain_jaas(users: Mapping[str, str]) -> str:
    """Return the JAAS line of a listener that accepts `users` and logs in elsewhere as the internal user."""
    known = {**users, INTERNAL_USER: INTERNAL_PASSWORD}
    own = f'username="{INTERNAL_USER}" password="{INTERNAL_PASSWORD}"'
    entries = " ".join(f'user_{name}="{password}"' for name, password in known.items())
    return f"{PLAIN_MODULE} required {own} {entries};"
