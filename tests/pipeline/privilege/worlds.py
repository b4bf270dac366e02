"""Random records of one principal: families of names, few hosts, denials that get in the way, odd values."""

from collections import Counter

from hypothesis import strategies as st

from kustos.acl import SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kustos.pipeline.privilege import Denial, Problem, Use

HOSTS = ("10.0.0.1", "10.0.0.2", "2001:db8:0:0:0:0:0:1")
SEGMENTS = ("pay.", "pay.eu.", "pay.us-", "logs_", "x.", "")
TAILS = ("a", "b", "c", "d.", "*", "")
NAMES = tuple(
    sorted({segment + tail for segment in SEGMENTS for tail in TAILS} | {"*pay.a", "*pay.b", "hardcode"})
)
TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)

ODD_NAMES = (
    "", "*", "**", "*a", "a*", "a", "kafka-cluster", "hardcode", "hard.", "hard.code", "pay.a", "pay.b",
    "pay.c", "*pay.a", "*pay.b", "ü.a", "ü.b", "a\x00b", " a", "a\nb", "..a", "....", "-_-",
    "\U0001f642.a", "\U0001f642.b", "pay." + "x" * 40_000, "p.a.b.c.d.e.f.g.h.i", "p.a.b.c.d.e.f.g.h.j",
)  # fmt: skip
ODD_HOSTS = (
    "10.0.0.1", "10.0.0.2", "10.0.0.3", "", "*", "0:0:0:0:0:0:0:1", "::1", "localhost", "10.0.0.0/24",
    "10.0.0.01", "/10.0.0.1", "10.0.0.1%eth0", "256.1.1.1", "\u0661.0.0.1", "h" * 40_000,
)  # fmt: skip
"""What the record of a broken or forged log may have, beside what Kafka writes."""

Key = tuple[str, AclOperation, ResourceType, str | None]


@st.composite
def problems(draw: st.DrawFn, *, hosts: int = 1, probes: bool = True, denial_share: int = 3) -> Problem:
    """Draw a problem; one access in about `denial_share` was denied."""
    resource_type = draw(st.sampled_from(TYPES))
    names = ("kafka-cluster",) if resource_type is ResourceType.CLUSTER else NAMES
    operations = SUPPORTED_OPERATIONS[resource_type]
    few = draw(st.lists(st.sampled_from(operations), min_size=1, max_size=6, unique=True))
    name = st.sampled_from((*names, None) if probes else names)
    accesses = draw(
        st.lists(
            st.tuples(
                st.sampled_from(HOSTS[:hosts]), st.sampled_from(few), name, st.integers(0, denial_share)
            ),
            min_size=1,
            max_size=30,
        )
    )
    decided: dict[Key, bool] = {
        (host, operation, resource_type, name): turn != denial_share
        for host, operation, name, turn in accesses
    }
    extra = draw(st.lists(st.sampled_from(names), max_size=12, unique=True))
    universe = {name for _, _, _, name in decided if name is not None} | set(extra)
    known = Counter((resource_type, name[:end]) for name in universe for end in range(len(name) + 1))
    return Problem(
        "User:app",
        tuple(Use(*key, event_count=2) for key, allowed in decided.items() if allowed),
        tuple(Denial(*key) for key, allowed in decided.items() if not allowed),
        known,
    )


@st.composite
def odd_problems(draw: st.DrawFn) -> Problem:
    """ "Draw a problem with odd names, hosts and operations, and on several types."""
    resource_type = draw(st.sampled_from((ResourceType.TOPIC, *TYPES)))
    operations = (*SUPPORTED_OPERATIONS[resource_type] * 3, *(one for one in AclOperation if one.value > 1))
    key = st.tuples(
        st.sampled_from(draw(st.lists(st.sampled_from(ODD_HOSTS), min_size=1, max_size=4))),
        st.sampled_from(draw(st.lists(st.sampled_from(operations), min_size=1, max_size=5))),
        st.sampled_from((resource_type,) * 5 + TYPES),
        st.sampled_from((*draw(st.lists(st.sampled_from(ODD_NAMES), min_size=1, max_size=12)), None)),
    )
    decided = draw(st.dictionaries(key, st.sampled_from((True, True, True, False)), min_size=1, max_size=30))
    known = Counter((kind, name[:end]) for _, _, kind, name in decided if name for end in range(8))
    return Problem(
        "User:app",
        tuple(Use(*key, event_count=2) for key, allowed in decided.items() if allowed),
        tuple(Denial(*key) for key, allowed in decided.items() if not allowed),
        known,
    )
