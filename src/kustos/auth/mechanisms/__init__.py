"""SASL mechanisms: the contents of the tokens."""

from kustos.auth.mechanisms.base import (
    HASHING,
    BlockingStep,
    Challenge,
    Claimant,
    ClientMechanism,
    MechanismFactory,
    MechanismStep,
    ProofRefused,
    Proven,
    ServerMechanism,
)
from kustos.auth.mechanisms.scram_keys import ScramHash

__all__ = [
    "HASHING",
    "BlockingStep",
    "Challenge",
    "Claimant",
    "ClientMechanism",
    "MechanismFactory",
    "MechanismStep",
    "ProofRefused",
    "Proven",
    "ScramHash",
    "ServerMechanism",
]
