"""The options that the user commands share."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kustos.metadata import ScramMechanism


class MechanismName(StrEnum):
    """The SCRAM mechanisms of Kafka."""

    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"

    @property
    def mechanism(self) -> "ScramMechanism":
        """The corresponding mechanism."""
        from kustos.metadata import ScramMechanism

        return ScramMechanism[self.name]


UserName = Annotated[str, typer.Argument(metavar="NAME", help="The user's name, without `User:`.")]
Mechanism = Annotated[MechanismName, typer.Option("--mechanism", help="The SASL mechanism.")]
