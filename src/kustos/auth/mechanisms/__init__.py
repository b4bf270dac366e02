"""SASL mechanisms: the contents of the tokens."""

from kustos.auth.mechanisms.base import (
    HASHING,
    Beside,
    Challenge,
    Claimant,
    ClientMechanism,
    MechanismFactory,
    MechanismStep,
    Proven,
    ServerMechanism,
)
from kustos.auth.mechanisms.scram_keys import ScramHash

__all__ = [
    "HASHING",
    "Beside",
    "Challenge",
    "Claimant",
    "ClientMechanism",
    "MechanismFactory",
    "MechanismStep",
    "Proven",
    "ScramHash",
    "ServerMechanism",
]
