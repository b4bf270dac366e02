"""Metadata logs at random, and the same replayed as plainly as possible."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from kustos.metadata.log import METADATA_PARTITION, encode_snapshot
from kustos.metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    LeaderChange,
    MetadataRecord,
    NoOpRecord,
    OpaqueRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    control_batch,
    encode_record,
)
from kustos.wire.record_batch import batch_of

T0_MS = 1_700_000_000_000
SECRETS = (b"the-salt", b"the-stored-key", b"the-server-key")
NAMES = ("a", "ab", "b", "*")
PRINCIPALS = ("User:p", "User:q", "User:*", "Group:g")


@dataclass
class State:
    """What is there: everything by its key, as the fields of its record."""

    acls: dict[UUID, tuple[Any, ...]] = field(default_factory=dict)
    scram: dict[tuple[str, int], int] = field(default_factory=dict)
    tokens: dict[str, DelegationTokenRecord] = field(default_factory=dict)

    def copy(self) -> "State":
        return State(dict(self.acls), dict(self.scram), dict(self.tokens))

    def apply(self, record: MetadataRecord) -> None:
        match record:
            case AccessControlEntryRecord():
                self.acls[record.id] = fields_of(record)
            case RemoveAccessControlEntryRecord():
                del self.acls[record.id]
            case UserScramCredentialRecord():
                self.scram[record.name, record.mechanism] = record.iterations
            case RemoveUserScramCredentialRecord():
                del self.scram[record.name, record.mechanism]
            case DelegationTokenRecord():
                self.tokens[record.token_id] = record
            case RemoveDelegationTokenRecord():
                del self.tokens[record.token_id]

    def records(self) -> Iterator[MetadataRecord]:
        """What a snapshot of it holds."""
        yield FeatureLevelRecord("metadata.version", 30)
        for acl_id, acl in self.acls.items():
            yield AccessControlEntryRecord(acl_id, *acl)
        for (user, mechanism), iterations in self.scram.items():
            yield UserScramCredentialRecord(user, mechanism, *SECRETS, iterations)
        yield from self.tokens.values()


def fields_of(record: AccessControlEntryRecord) -> tuple[Any, ...]:
    return (
        record.resource_type, record.resource_name, record.pattern_type, record.principal, record.host,
        record.operation, record.permission_type,
    )  # fmt: skip


@dataclass(frozen=True)
class World:
    """A log: batches of records with the time of each; offset 0 is the batch of its leader."""

    batches: tuple[tuple[MetadataRecord, ...], ...]
    times_ms: tuple[int, ...]

    @property
    def ends(self) -> list[int]:
        """The last offset of each batch."""
        return [sum(map(len, self.batches[: count + 1])) for count in range(len(self.batches))]

    def latest_ms(self, batch: int) -> int:
        """The latest time that the log had shown by the end of a batch."""
        return max(T0_MS, *self.times_ms[: batch + 1])

    def state_at(self, time_ms: int) -> State:
        """The state at a time: that before the first batch that was later."""
        ends = [end for number, end in enumerate(self.ends) if self.latest_ms(number) <= time_ms]
        return self.states()[ends[-1]] if ends else State()

    def states(self) -> list[State]:
        """The state after each offset, from 0 on."""
        state, states = State(), [State()]
        held: list[MetadataRecord] | None = None
        for record in (record for batch in self.batches for record in batch):
            if isinstance(record, BeginTransactionRecord):
                held = []
            elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
                for each in held or [] if isinstance(record, EndTransactionRecord) else []:
                    state.apply(each)
                held = None
            elif held is not None:
                held.append(record)
            else:
                state.apply(record)
            states.append(state.copy())
        return states

    def log(self, first: int = 0) -> bytes:
        """The segment from batch `first` on."""
        data = bytearray()
        if first == 0:
            data += control_batch(0, 1, T0_MS, (LeaderChange(1, (1,), (1,)),)).encode()
        offset = 1 + sum(map(len, self.batches[:first]))
        for records, time_ms in zip(self.batches[first:], self.times_ms[first:], strict=True):
            data += batch_of(offset, 1, time_ms, map(encode_record, records)).encode()
            offset += len(records)
        return bytes(data)

    def write(self, directory: Path, *, first: int = 0, snapshots: Sequence[int] = ()) -> Path:
        """Write the log from batch `first` on, and a snapshot after each of these batches."""
        partition = directory / METADATA_PARTITION
        partition.mkdir(parents=True)
        base = 0 if first == 0 else self.ends[first - 1] + 1
        (partition / f"{base:020d}.log").write_bytes(self.log(first))
        states = self.states()
        for number in snapshots:
            end = self.ends[number]
            data = encode_snapshot(
                states[end].records(),
                epoch=1,
                timestamp_ms=T0_MS,
                last_contained_timestamp_ms=self.latest_ms(number),
            )
            (partition / f"{end + 1:020d}-{1:010d}.checkpoint").write_bytes(data)
        return directory


class _Making:
    """Makes records that may follow one another."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.state = State()
        self._made = 0

    def record(self) -> MetadataRecord:
        made = self.random.choice(
            (self._acl, self._acl, self._acl, self._scram, self._token, self._nothing)
        )()
        self.state.apply(made)
        return made

    def _acl(self) -> MetadataRecord:
        if self.state.acls and self.random.random() < 0.45:
            return RemoveAccessControlEntryRecord(self.random.choice(list(self.state.acls)))
        choose = self.random.choice
        acl = (2, choose(NAMES), choose((3, 4)), choose(PRINCIPALS), "*", choose((2, 3, 4)), choose((2, 3)))
        if acl in self.state.acls.values():
            return NoOpRecord()
        self._made += 1
        return AccessControlEntryRecord(UUID(int=self._made), *acl)

    def _scram(self) -> MetadataRecord:
        if self.state.scram and self.random.random() < 0.3:
            return RemoveUserScramCredentialRecord(*self.random.choice(list(self.state.scram)))
        user, mechanism = self.random.choice("uv"), self.random.choice((1, 2))
        return UserScramCredentialRecord(user, mechanism, *SECRETS, self.random.choice((4096, 8192)))

    def _token(self) -> MetadataRecord:
        if self.state.tokens and self.random.random() < 0.3:
            return RemoveDelegationTokenRecord(self.random.choice(list(self.state.tokens)))
        expiry = self.random.randint(1, 1000)
        return DelegationTokenRecord(
            "User:o", "User:r", ("User:w",), 1, 2000, expiry, self.random.choice("tu")
        )

    def _nothing(self) -> MetadataRecord:
        return self.random.choice((NoOpRecord(), OpaqueRecord(2, 0, b"a topic\x00")))


def random_world(
    random: Random, *, batches: int = 8, records_max: int = 4, with_transactions: bool = True
) -> World:
    """A log that a controller could have written; some of its transactions are aborted, one may stay open."""
    making = _Making(random)
    made: list[tuple[MetadataRecord, ...]] = [(FeatureLevelRecord("metadata.version", 30),)]
    before: State | None = None
    for _ in range(batches):
        records: list[MetadataRecord] = []
        for _ in range(random.randint(1, records_max)):
            if with_transactions and random.random() < 0.15:
                if before is None:
                    before = making.state.copy()
                    records.append(BeginTransactionRecord("x"))
                elif random.random() < 0.5:
                    before = None
                    records.append(EndTransactionRecord())
                else:
                    making.state, before = before, None
                    records.append(AbortTransactionRecord("no"))
            else:
                records.append(making.record())
        made.append(tuple(records))
    steps = [random.choice((0, 1000, 1000, 3000, -2000)) for _ in made]
    times = tuple(T0_MS + sum(steps[: count + 1]) for count in range(len(made)))
    return World(tuple(made), times)


def is_at_rest(world: World, batch: int) -> bool:
    """Whether no transaction is open after a batch, so that a snapshot may stand there."""
    records = [record for each in world.batches[: batch + 1] for record in each]
    begun = sum(isinstance(each, BeginTransactionRecord) for each in records)
    ended = sum(isinstance(each, EndTransactionRecord | AbortTransactionRecord) for each in records)
    return begun == ended
