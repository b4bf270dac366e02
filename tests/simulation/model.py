"""What the requests add up to, as plainly as it can be said: the specification the store is held to."""

from dataclasses import dataclass, field

from kustos.acl import AclBinding
from kustos.metadata.control import TokenCreation
from kustos.metadata.image import MetadataImage
from kustos.metadata.store.store import AlterScram, CreateAcls, DeleteAcls, StoreRequest, SweepTokens

TOKEN_EXPIRY_MS = 5_000


@dataclass
class Model:
    """ACLs, the iterations of credentials, and owner and expiry of tokens (their ids are random)."""

    acls: set[AclBinding] = field(default_factory=set)
    scram: dict[tuple[str, int], int] = field(default_factory=dict)
    tokens: list[tuple[str, int]] = field(default_factory=list)

    def copy(self) -> "Model":
        return Model(set(self.acls), dict(self.scram), list(self.tokens))

    def after(self, request: StoreRequest, now_ms: int) -> "Model":
        """The state after a request; this one stays as it is."""
        made = self.copy()
        match request:
            case CreateAcls(bindings):
                made.acls |= set(bindings)
            case DeleteAcls(filters):
                made.acls = {each for each in made.acls if not any(one.matches(each) for one in filters)}
            case AlterScram(deletions, upsertions):
                for deletion in deletions:
                    made.scram.pop((deletion.user, deletion.mechanism), None)
                for upsertion in upsertions:
                    made.scram[upsertion.user, upsertion.mechanism] = upsertion.iterations
            case TokenCreation():
                made.tokens = sorted([*made.tokens, (str(request.owner), now_ms + TOKEN_EXPIRY_MS)])
            case SweepTokens():
                made.tokens = [each for each in made.tokens if each[1] >= now_ms]
            case _:
                raise AssertionError(request)
        return made

    @classmethod
    def of(cls, image: MetadataImage) -> "Model":
        """The same of an image."""
        return cls(
            set(image.acls.values()),
            {key: credential.iterations for key, credential in image.scram_credentials.items()},
            sorted(
                (token.owner, token.expiration_timestamp_ms) for token in image.delegation_tokens.values()
            ),
        )
