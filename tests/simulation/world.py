"""One machine, one metadata directory, many crashes: what was acknowledged is there after each of them."""

import random
import uuid
from collections import Counter
from pathlib import Path

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.metadata.control import ScramDeletion, ScramUpsertion, TokenCreation, TokenRules
from kustos.metadata.control.token_secrets import TokenSecret
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.errors import DirectoryError, LogDamagedError, LogFailedError, LogFullError
from kustos.metadata.image import MetadataDelta, MetadataImage
from kustos.metadata.log import LogPolicy
from kustos.metadata.store.store import (
    AlterScram,
    CreateAcls,
    DeleteAcls,
    MetadataStore,
    StoreRequest,
    SweepTokens,
)
from tests.simulation.disk import File, PowerCutError, SimulatedDisk
from tests.simulation.model import TOKEN_EXPIRY_MS, Model

DIRECTORY = Path("/disk/meta")
PARTITION = DIRECTORY / "__cluster_metadata-0"
POLICY = LogPolicy(
    segment_bytes=1500, segment_ms=40_000, snapshot_record_bytes=1200, retention_bytes=6000,
    retention_ms=120_000,
)  # fmt: skip
"""So small that a life of some writes rolls, takes a snapshot and deletes."""

TOKEN_RULES = TokenRules(TokenSecret.of("simulation"), expiry_time_ms=TOKEN_EXPIRY_MS)
STEPS_MAX = 90
GROUPS_MAX = 8
DAMAGES = 4
"""Of a directory at rest, one at a time."""


class SimulatedClock:
    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


class SimulatedEntropy:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def token_bytes(self, size: int) -> bytes:
        return self._chance.randbytes(size)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._chance.randbytes(16), version=4)


class ViolationError(AssertionError):
    """What must never be: it names the seed and the life."""


class InForce:
    """A publisher, as an authorizer is: knows how far the changes go that are in force."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def publish_snapshot(self, image: MetadataImage) -> None:
        self._world.in_force_offset = image.offset

    def publish_delta(self, delta: MetadataDelta) -> None:
        self._world.in_force_offset = delta.last_offset


class World:
    """A directory and its lives. `seen` counts what happened, so that a run can show that it did."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.disk = SimulatedDisk(self.chance)
        self.disk.garbage_probability = 0.02
        self.clock = SimulatedClock()
        self.entropy = SimulatedEntropy(self.chance)
        self.acknowledged = Model()
        self.possible: list[Model] = []
        """The states after each request that was asked for since and not acknowledged, in order."""
        self.in_force_offset = -1
        self.epoch = 0
        self.was_formatted = False
        self.lives = 0
        self.seen: Counter[str] = Counter()

    # a life

    def live(self) -> bool:
        """Start, change, crash; return whether the directory can be used further."""
        self.lives += 1
        self._draw_faults()
        store: MetadataStore | None = None
        try:
            if not self._is_formatted():
                format_directory(DIRECTORY, storage=self.disk, clock=self.clock, entropy=self.entropy)
            self.was_formatted = True
            store = self._open()
            found = Model.of(store.image)
            self._allow(found)
            # what the start went on from is durable: it is not lost again
            self.acknowledged, self.possible = found, []
            self._require(store.image.epoch > self.epoch, "an epoch that was begun before")
            self.epoch = store.image.epoch
            store.add_publisher(InForce(self))
            self._work(store)
        except PowerCutError:
            self.seen["power cut in " + (self.disk.trace[-1] if self.disk.trace else "the beginning")] += 1
        except LogFailedError:
            self.seen["log failed"] += 1
            if store is not None:
                self._require_silence(store)
        except LogFullError:
            self.seen["no room at the start"] += 1
        except LogDamagedError as error:
            return self._stopped(error)
        except OSError:
            self._require(bool(self.disk.failures), "an OSError that the disk did not cause")
            self.seen["disk error at the start"] += 1
        return self._crash()

    def _draw_faults(self) -> None:
        draw = self.chance.random()
        if draw < 0.75:
            self.disk.cut_at = self.chance.randrange(STEPS_MAX)
        elif draw < 0.85:
            self.disk.fails_sync_at = self.chance.randrange(STEPS_MAX)
        elif draw < 0.92:
            self.disk.is_full_at = self.chance.randrange(STEPS_MAX)

    def _is_formatted(self) -> bool:
        return self.disk.exists(DIRECTORY / "meta.properties")

    def _open(self) -> MetadataStore:
        return MetadataStore.open(
            DIRECTORY, storage=self.disk, clock=self.clock, entropy=self.entropy, token_rules=TOKEN_RULES,
            policy=POLICY,
        )  # fmt: skip

    def _work(self, store: MetadataStore) -> None:
        for _ in range(self.chance.randrange(1, GROUPS_MAX)):
            self.clock.now_ms += self.chance.choice((0, 1, 1000, 7000))
            self._change(store)
            self._snapshot(store)
        if self.chance.random() < 0.3:
            store.close()

    def _change(self, store: MetadataStore) -> None:
        requests = [self._request() for _ in range(self.chance.choice((1, 1, 1, 2, 5)))]
        for request in requests:
            before = self.possible[-1] if self.possible else self.acknowledged
            self.possible.append(before.after(request, self.clock.now_ms))
        try:
            store.append_many(requests)
        except LogFullError:
            self.seen["no room"] += 1
            self.possible.clear()
            self._check(Model.of(store.image), "after a change that found no room")
            self.disk.is_full_at = None
            return
        self.acknowledged, self.possible = self.possible[-1], []
        self.seen["acknowledged"] += len(requests)
        self._check(Model.of(store.image), "after an acknowledgement")

    def _snapshot(self, store: MetadataStore) -> None:
        job = store.begin_snapshot()
        if job is None:
            return
        if self.chance.random() < 0.5:
            self.disk.between_pieces = lambda: self._amid_snapshot(store)
        try:
            job.write()
        except OSError as error:
            store.end_snapshot(job, error)
            self.seen["snapshot failed"] += 1
        else:
            store.end_snapshot(job)
            self.seen["snapshot"] += 1
        finally:
            self.disk.between_pieces = lambda: None

    def _amid_snapshot(self, store: MetadataStore) -> None:
        self.disk.between_pieces = lambda: None
        self.seen["change amid a snapshot"] += 1
        try:
            self._change(store)
        except LogFailedError:
            # on a real node this is another thread, which the snapshot does not hear of
            self.seen["log failed"] += 1

    def _request(self) -> StoreRequest:
        chance, user = self.chance, self.chance.choice("abcd")
        match chance.randrange(8):
            case 0 | 1 | 2 | 3:
                return CreateAcls(tuple(self._binding() for _ in range(chance.randrange(1, 5))))
            case 4:
                pattern = ResourcePatternFilter(ResourceType.TOPIC, self._binding().pattern.name)
                return DeleteAcls((AclBindingFilter(pattern),))
            case 5:
                if chance.random() < 0.3:
                    return AlterScram((ScramDeletion(user, 1),))
                keys = chance.randbytes(32), chance.randbytes(32)
                return AlterScram((), (ScramUpsertion(user, 1, chance.randrange(4096, 16384), *keys),))
            case 6:
                principal = KafkaPrincipal("User", user)
                return TokenCreation(principal, principal)
            case _:
                return SweepTokens()

    def _binding(self) -> AclBinding:
        name = f"t{self.chance.randrange(12)}" + "x" * self.chance.choice((0, 0, 0, 300))
        permission = self.chance.choice((AclPermissionType.ALLOW, AclPermissionType.DENY))
        entry = AccessControlEntry("User:a", "*", AclOperation.READ, permission)
        return AclBinding(ResourcePattern(ResourceType.TOPIC, name), entry)

    # its end

    def _crash(self) -> bool:
        failed = list(self.disk.failures)
        power_cut = self.disk.is_off or self.chance.random() < 0.5
        self.seen["power cut" if power_cut else "kill"] += 1
        self.seen.update(failed)
        self.disk.restart(power_cut=power_cut)
        self.clock.now_ms += self.chance.choice((1, 60_000))
        if not self._is_formatted():
            self._require(
                (not self.acknowledged.acls and self.lives == 1) or not self.was_formatted, "unformatted"
            )
            return True
        return self._recover()

    def _recover(self) -> bool:
        """Read what is there, without changing it, and hold it against what may be there."""
        try:
            image = read_image(DIRECTORY, self.disk, ignore_torn_tail=True)
        except LogDamagedError as error:
            return self._stopped(error)
        if not (self.was_formatted or self.acknowledged.acls):
            return True
        self._require(image.offset >= self.in_force_offset, "what was in force is not on the disk")
        self._allow(Model.of(image))
        if self.chance.random() < 0.08 and not self.disk.holds_garbage:
            self._damage_at_rest()
            return False
        return True

    def _allow(self, found: Model) -> None:
        """What is found after a crash: all that was acknowledged, and of the rest the first few, whole."""
        may_be = [self.acknowledged, *self.possible]
        self._require(found in may_be, f"the state after a crash is none of {len(may_be)} that may be")
        self.seen["unacknowledged, yet there"] += found != self.acknowledged

    def _damage_at_rest(self) -> None:
        """Spoil a file of a closed directory: the start stops, or everything is there nevertheless."""
        store = self._open()
        self.acknowledged, self.possible = Model.of(store.image), []
        epoch = store.image.epoch
        for _ in range(self.chance.randrange(4)):
            self._change(store)
        store.close()
        whole = self.disk.copied()
        for _ in range(DAMAGES):
            self.disk.put_back({path: File(file.seen.copy(), file.durable) for path, file in whole.items()})
            self._damage_once(epoch)

    def _damage_once(self, epoch: int) -> None:
        names = [name for name in self.disk.names_seen if name.parent == PARTITION]
        kind, spoil = self.chance.choice(list(self.disk.damages.items()))
        spoil(self.chance.choice(sorted(names)))
        try:
            store = self._open()
        except (LogDamagedError, DirectoryError):
            self.seen["damage stopped the start"] += 1
            self.seen[f"{kind} stopped the start"] += 1
            return
        self.seen["damage did not matter"] += 1
        self._check(Model.of(store.image), f"after {kind}")
        self._require(store.image.epoch == epoch + 1, f"an epoch that nobody began, after {kind}")
        store.close()

    def _stopped(self, error: LogDamagedError) -> bool:
        """A start that stops loses nothing, but nothing may stop it that only lacks what was not written."""
        if not self.disk.holds_garbage:
            raise self._violation(f"a start stopped without damage: {error}") from error
        self.seen["a sector of garbage stopped the start"] += 1
        return False

    def _require_silence(self, store: MetadataStore) -> None:
        for _ in range(3):
            try:
                store.append_many([self._request()])
            except LogFailedError:
                self._check(Model.of(store.image), "after a failed write")
                self._require(self.in_force_offset == store.image.offset, "what failed is in force")
                continue
            self._require(False, "a request was acknowledged after a failed write")

    def _check(self, found: Model, when: str) -> None:
        self._require(found == self.acknowledged, f"the state {when} is not what was acknowledged")

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise self._violation(what)

    def _violation(self, what: str) -> ViolationError:
        return ViolationError(f"seed `{self.seed}`, life {self.lives}: {what}; steps {self.disk.trace[-12:]}")
