"""Searches of everything that anybody can send, as child processes, some seconds of each target."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from zlib import crc32

import pytest

from fuzz.searching import Search, search
from fuzz.targets import INCLUDED, SEARCHED
from testkit import seeds
from testkit.paths import ROOT

# fewer where somebody works on a target
SECONDS = int(os.environ.get("KUSTOS_FUZZ_S", "10"))
AT_ONCE = 4
"""Searches side by side: their time is that of a clock, and one alone would leave a core idle."""

INPUTS_MIN = 1_000
"""Of a search: with fewer it hangs, whatever the machine does beside it."""


@pytest.fixture(scope="module")
def searches(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Search]]]:
    """Begin a search of each target that a selected test looks at."""
    wanted = {
        item.callspec.params["target"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and "searches" in item.fixturenames
    }
    pool = ThreadPoolExecutor(AT_ONCE)
    yield {
        target: pool.submit(
            search,
            target,
            f"-max_total_time={SECONDS}",
            f"-seed={crc32(f'{seeds.seed_of_run()} {target}'.encode())}",
        )
        for target in SEARCHED
        if target in wanted
    }
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("target", SEARCHED)
def test_a_search_finds_nothing(target: str, searches: Mapping[str, Future[Search]]) -> None:
    found = searches[target].result()
    assert found.find == "", f"seed {found.seed}; put the input into fuzz/corpus/{target}"
    # it begins with seeds and earlier finds, and libFuzzer tries the empty input, too
    finds = ROOT / "fuzz" / "corpus" / target
    assert found.begun > (len(list(finds.iterdir())) if finds.is_dir() else 0) + 1
    assert found.inputs > INPUTS_MIN
    assert found.edges > 0


@pytest.mark.parametrize("target", SEARCHED)
def test_no_seed_is_a_find(target: str) -> None:
    """Also a seed that is longer than the inputs of a search, which cuts it."""
    program = f"""if True:
        import fuzz.targets.{target} as target
        for seed in target.seeds():
            target.check(seed)
            target.check(seed[: target.INPUT_MAX_BYTES])
    """
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


BROKEN = {
    "frames": (
        "kustos.auth.mechanisms.plain.PlainUsers.verify = lambda *_: True",
        r"bytes.fromhex('00000012 0011 0001 00000005 0001 63 0005 504c41494e')"
        r" + bytes.fromhex('00000016 0024 0001 00000005 0001 63 00000007') + b'\0bob\0ab'",
        "somebody logs in without a password",
    ),
    "scram": (
        "kustos.auth.mechanisms.scram.hmac.compare_digest = lambda *_: True",
        r"b'p\x32\x01\x50\x03'",
        "a changed proof is taken",
    ),
    "jwt": (
        "kustos.auth.jwt.signed.is_signed_by = lambda *_: True",
        "b't' + compact(claims(sub='eve'), 'rsa-7', header={'alg': 'RS256', 'kid': 'rsa-1'}).encode()",
        "a token is believed that nobody signed",
    ),
    "gssapi": (
        "kustos.auth.mechanisms.gssapi.GssapiServer._prove = "
        "lambda self, token: kustos.auth.mechanisms.base.Proven(b'', 'alice@EXAMPLE.COM')",
        r"b'\x04garbage'",
        "what nobody wrapped is believed",
    ),
    "tls": (
        "kustos.tls.jks.hmac.compare_digest = lambda *_: True",
        r"b'd\x10\x01'",
        "a changed store is read",
    ),
    "mapping": (
        "kustos.auth.mapping.kerberos._simple = lambda name: name",
        r"b'kRULE:[2:$1/$2]\0kafka/host@EXAMPLE.COM\0'",
        "a user has a host or a realm",
    ),
    "hosts": (
        "kustos.gateway.upstream.host_names.BrokerHostPattern.node_of = lambda *_: 1",
        r"b'nbroker-$(nodeId).kafka.example.com\0broker-2.kafka.example.com'",
        "a name leads to the broker of another",
    ),
    "requests": (
        "read = kustos.wire.codec.MessageCodec.read; kustos.wire.codec.MessageCodec.read = "
        "lambda self, data, *args: read(self, data + bytes(8), *args)",
        "bytes.fromhex('0003 0004 00000001 0001 61 00000001 0001')",
        "only Kafka refuses it",
    ),
    "requests, repeated": (
        "kustos.protocol.plans.ProduceShape.matches = lambda *_: True",
        "next(frame for frame in target.produce_seeds() if opened(frame).is_exact)",
        "a repeated Produce is another one",
    ),
}
"""Target → a fault, an input that shows it (Python), and what is said then."""


def test_each_target_has_a_fault() -> None:
    assert {each.partition(",")[0] for each in BROKEN} == set(SEARCHED)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_fault_is_noticed(broken: str) -> None:
    fault, data, said = BROKEN[broken]
    target = broken.partition(",")[0]
    program = textwrap.dedent(f"""
        import kustos.auth.jwt.signed, kustos.auth.mapping.kerberos, kustos.auth.mechanisms.gssapi
        import kustos.auth.mechanisms.plain, kustos.auth.mechanisms.scram, kustos.tls.jks
        import kustos.gateway.upstream.host_names
        import kustos.protocol.plans, kustos.wire.codec
        from testkit.bearer_tokens import claims, compact
        from testkit.parsing.judge import opened
        import fuzz.targets.{target} as target
        from fuzz.targets import FoundError
        target.check({data})
        {fault}
        try:
            target.check({data})
        except FoundError as error:
            print("found:", error)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.startswith(f"found: {said}"), done.stdout + done.stderr


def test_an_unknown_target_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "frame"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"there is no target `frame`, use one of {', '.join(INCLUDED)}" in done.stderr
