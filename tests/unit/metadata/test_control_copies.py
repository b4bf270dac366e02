"""Credentials and tokens taken over from another cluster: what is kept, and what Kafka would refuse."""

from dataclasses import replace
from pathlib import Path

import pytest

from kustos.metadata.control import (
    MAX_RECORDS_PER_USER_OPERATION,
    Copy,
    ScramCopy,
    ScramUpsertion,
    copy_error,
    copy_secrets,
)
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.features import DEFAULT_LEVEL, DELEGATION_TOKEN_LEVEL, SCRAM_LEVEL
from kustos.metadata.image import MetadataImage
from kustos.metadata.scram import ScramCredential, ScramMechanism, scram_credential
from kustos.metadata.store.store import MetadataStore
from kustos.wire import ErrorCode
from tests.unit.metadata.token_worlds import TOKEN

SHA_256, SHA_512 = ScramMechanism
OF_256 = scram_credential(SHA_256, "alice-secret", b"salt", 4096)
OF_512 = scram_credential(SHA_512, "alice-secret", b"pepper", 16384)
IMAGE = MetadataImage(features={"metadata.version": DEFAULT_LEVEL})


def code_of(copy: Copy, level: int = DEFAULT_LEVEL) -> ErrorCode | None:
    error = copy_error(copy, level)
    return error.code if error is not None else None


def test_copies_are_kept_secrets_and_all_and_survive_a_restart(tmp_path: Path) -> None:
    format_directory(tmp_path / "meta")
    store = MetadataStore.open(tmp_path / "meta")
    store.alter_scram(upsertions=[ScramUpsertion("alice", SHA_256, 5000, b"old", b"old")])
    copies: list[Copy] = [ScramCopy("alice", SHA_256, OF_256), ScramCopy("alice", SHA_512, OF_512), TOKEN]
    assert [result.error for result in store.copy_secrets(copies)] == [None] * 3
    store.close()
    kept = read_image(tmp_path / "meta")
    assert kept.scram_credentials == {("alice", SHA_256): OF_256, ("alice", SHA_512): OF_512}
    assert kept.delegation_tokens == {TOKEN.token_id: TOKEN}


@pytest.mark.parametrize(
    ("copy", "code"),
    [
        (ScramCopy("", SHA_256, OF_256), ErrorCode.unacceptable_credential),
        (ScramCopy("u", 3, OF_256), ErrorCode.unsupported_sasl_mechanism),
        (ScramCopy("u", SHA_512, OF_256), ErrorCode.unacceptable_credential),
        (ScramCopy("u", SHA_256, replace(OF_256, iterations=4095)), ErrorCode.unacceptable_credential),
        (ScramCopy("u", SHA_256, replace(OF_256, iterations=16385)), ErrorCode.unacceptable_credential),
        (ScramCopy("u", SHA_256, replace(OF_256, salt=b"")), ErrorCode.unacceptable_credential),
        (ScramCopy("u", SHA_256, replace(OF_256, server_key=b"short")), ErrorCode.unacceptable_credential),
        (ScramCopy("u" * 32768, SHA_256, OF_256), ErrorCode.unacceptable_credential),
        (ScramCopy("u" * 32767, SHA_512, OF_512), None),
        (TOKEN, None),
    ],
)
def test_nothing_is_let_in_that_kafka_refuses(copy: Copy, code: ErrorCode | None) -> None:
    assert code_of(copy) == code
    outcome = copy_secrets(IMAGE, [copy, TOKEN])
    assert [result.error is None for result in outcome.results] == [code is None, True]
    assert len(outcome.records) == (1 if code else 2)


def test_a_refusal_is_told_in_kafkas_words() -> None:
    for copy, level, message in (
        (ScramCopy("", SHA_256, OF_256), DEFAULT_LEVEL, "Username must not be empty"),
        (ScramCopy("u", 3, OF_256), DEFAULT_LEVEL, "Unknown SCRAM mechanism"),
        (ScramCopy("u", SHA_256, OF_256), 7, "The current metadata.version does not support SCRAM"),
        (ScramCopy("u", SHA_256, replace(OF_256, iterations=1)), DEFAULT_LEVEL, "Too few iterations"),
        (ScramCopy("u", SHA_256, replace(OF_256, iterations=99999)), DEFAULT_LEVEL, "Too many iterations"),
        (TOKEN, 7, "The current metadata.version does not support delegation tokens"),
    ):
        error = copy_error(copy, level)
        assert error is not None
        assert error.message == message


def test_each_kind_has_its_gate() -> None:
    credential = ScramCopy("u", SHA_256, OF_256)
    assert code_of(credential, SCRAM_LEVEL) is None
    assert code_of(credential, SCRAM_LEVEL - 1) is ErrorCode.unsupported_version
    assert code_of(TOKEN, DELEGATION_TOKEN_LEVEL) is None
    assert code_of(TOKEN, DELEGATION_TOKEN_LEVEL - 1) is ErrorCode.unsupported_version


def test_too_many_fail_together() -> None:
    many = [TOKEN] * (MAX_RECORDS_PER_USER_OPERATION + 1)
    outcome = copy_secrets(IMAGE, many)
    assert outcome.records == ()
    assert {result.error.code if result.error else None for result in outcome.results} == {
        ErrorCode.policy_violation
    }
    assert len(copy_secrets(IMAGE, many[1:]).records) == MAX_RECORDS_PER_USER_OPERATION


def test_a_copy_never_shows_its_secrets() -> None:
    credential = ScramCredential(b"salty", b"stored-key", b"server-key", 4096)
    text = repr(ScramCopy("alice", SHA_256, credential))
    assert "alice" in text
    assert not any(secret in text for secret in ("salty", "stored-key", "server-key"))
