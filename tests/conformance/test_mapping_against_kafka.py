"""Our rules for names of principals against Kafka's own classes, over drawn rules and names."""

import base64
import json

import pytest
from cryptography.x509 import Name

from kustos.acl import ANONYMOUS
from kustos.auth import DefaultKafkaPrincipalBuilder, ListenerPrincipals, PrincipalBuilderError
from kustos.auth.mapping import kerberos_shortener, rfc2253_of_der, ssl_principal_mapper
from kustos.auth.mechanisms import Proven
from testkit.mapping_probe import (
    ERROR,
    GOLDEN,
    GOLDEN_COUNT,
    GOLDEN_SEED,
    NONE,
    RULES,
    differences,
    draw,
    kafkas_answers,
    our_answer,
    probe_word,
    run_probe,
)
from testkit.seeds import seed_of_run


def test_drawn_rules_and_names_are_mapped_alike() -> None:
    questions = draw(seed_of_run(), 2000)
    theirs = kafkas_answers(questions)
    assert differences(questions, theirs)[:5] == []
    refused = [question for question, answers in zip(questions, theirs, strict=True) if answers == [RULES]]
    assert all(our_answer(question) == [RULES] for question in refused)
    given = [name for answers in theirs for name in answers if not name.startswith("!")]
    assert len(given) > 3000


def test_the_recorded_questions_are_those_that_are_drawn() -> None:
    recorded = [question for question, _ in json.loads(GOLDEN.read_text(encoding="utf-8"))]
    assert recorded == draw(GOLDEN_SEED, GOLDEN_COUNT)


def test_an_unreadable_name_is_refused_where_java_replaces_it() -> None:
    question = ["x500", bytes.fromhex("300c310a300806035504030c01c3").decode("latin-1")]
    assert kafkas_answers([question]) == [["CN=\N{REPLACEMENT CHARACTER}"]]
    assert our_answer(question) == [NONE]
    assert rfc2253_of_der(bytes.fromhex("300c310a300806035504030c0141")) == "CN=A"


BUILT = (
    ("tls", "DEFAULT", "-"),
    ("tls", "RULE:^CN=([^,]*),.*$/$1/L", "CN=Duke,O=Org"),
    ("tls", "RULE:^CN=x$/y/", "CN=Duke,O=Org"),
    ("tls", "DEFAULT", "CN=Duke,O=Org"),
    ("sasl", "PLAIN", "R", "DEFAULT", "a/b@R"),
    ("sasl", "GSSAPI", "R", "DEFAULT", "a/b@R"),
    ("sasl", "GSSAPI", "R", "RULE:[2:$2-$1]/U", "a/b@R"),
    ("sasl", "GSSAPI", "R", "DEFAULT", "a/b@S"),
)


def our_principal(kind: str, *words: str) -> str:
    builder = DefaultKafkaPrincipalBuilder(
        ssl_principal_mapper(words[0] if kind == "tls" else "DEFAULT"),
        kerberos_shortener([words[2]] if kind == "sasl" else [], words[1]),
    )
    principals = ListenerPrincipals(listener_name="X", security_protocol="SASL_SSL", builder=builder)
    try:
        if kind == "tls":
            name = None if words[1] == "-" else words[1]
            return str(principals.of_certificate("127.0.0.1", name, b""))
        return str(principals.of_login("127.0.0.1", words[0], Proven(b"", words[3])))
    except PrincipalBuilderError:
        return ERROR


@pytest.mark.behaviour("B289", "B290", "B291", "B292")
def test_principals_are_built_as_kafkas_builder_builds_them() -> None:
    der = "=" + base64.b64encode(Name.from_rfc4514_string("CN=Duke,O=Org").public_bytes()).decode()
    lines = ["plaintext"]
    for kind, *words in BUILT:
        known = {"-": "-", "CN=Duke,O=Org": der}
        lines.append(" ".join([kind, *(known.get(word) or probe_word(word) for word in words)]))
    theirs = [answer for [answer] in run_probe(lines)]
    assert theirs[0] == str(ANONYMOUS)
    assert [our_principal(*question) for question in BUILT] == theirs[1:]
    assert ERROR in theirs
    assert "User:DUKE" not in theirs
    assert {"User:duke", "User:CN=Duke,O=Org", "User:a/b@R", "User:a", "User:B-A"} < set(theirs)
