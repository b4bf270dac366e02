"""A process without free file descriptors can still use every API."""

import subprocess
import sys

import pytest

WITHOUT_DESCRIPTORS = """
import os, resource
from kustos.server import main, node
from kustos.server.process import load_late_modules, warm_codecs
from kustos.wire import codec_versions, request_codec, response_codec
from kustos.wire.api_keys import ApiKey

load_late_modules()
warm_codecs()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
try:
    os.open("/dev/null", os.O_RDONLY)
except OSError as error:
    print(error.strerror)
made = 0
for api_key in ApiKey:
    lowest, highest = codec_versions(api_key)
    for version in range(lowest, highest + 1):
        request_codec(api_key, version), response_codec(api_key, version)
        made += 1
print(made > 150)
print("b\u00fccher".encode("idna"))
"""


@pytest.mark.slow
def test_every_codec_can_be_made_without_a_file_descriptor() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["Too many open files", "True", "b'xn--bcher-kva'"]
