"""SASL mechanisms: what is said inside the tokens."""

from kustos.auth.mechanisms.base import (
    Challenge,
    ClientMechanism,
    MechanismFactory,
    MechanismStep,
    Proven,
    ServerMechanism,
)

__all__ = [
    "Challenge",
    "ClientMechanism",
    "MechanismFactory",
    "MechanismStep",
    "Proven",
    "ServerMechanism",
]
