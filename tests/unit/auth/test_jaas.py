"""`sasl.jaas.config` texts."""

import pytest

from kustos.auth import JaasError, PlainUsers, parse_jaas_config, single_jaas_entry
from testkit.sasl import SeededEntropy

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRET = "hunter2"


@pytest.mark.behaviour("B333")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {}),
        ('username="alice" password="hunter2"', {"username": "alice", "password": "hunter2"}),
        ("username=alice password='a\"b;c=d/e'", {"username": "alice", "password": 'a"b;c=d/e'}),
        (r'p="\"q\\ \t\101\60 \x"', {"p": '"q\\ \tA0 x'}),
        ("a=x /* b=2; */ c=y1.-$ // d=4\n e=z / f=6\n", {"a": "x", "c": "y1.-$", "e": "z"}),
        ('user_alice = "x"\n\tuser_bob\n=\n"y"', {"user_alice": "x", "user_bob": "y"}),
        ('a="1" a="2"', {"a": "2"}),
        ('p="päss wörd €"', {"p": "päss wörd €"}),
        ('"quoted key"=v empty=""', {"quoted key": "v", "empty": ""}),
    ],
)
def test_options_are_read_as_java_reads_them(options: str, expected: dict[str, str]) -> None:
    entry = single_jaas_entry(f"{PLAIN} Required {options};")
    assert entry.login_module == PLAIN
    assert entry.options == expected


@pytest.mark.behaviour("B333", "B335")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no login module"),
        ("  // nothing\n", "names no login module"),
        (PLAIN, "control flag is missing"),
        (f'{PLAIN} password="hunter2";', "there is no control flag"),
        (f'{PLAIN} "hunter2";', "there is no control flag"),
        (f'{PLAIN} required password="hunter2"', "semicolon"),
        (f"{PLAIN} required hunter2;", "not written"),
        (f"{PLAIN} required password=;", "not written"),
        (f"{PLAIN} required password=12345;", "not written"),
        (f"{PLAIN} required password=-hunter2;", "not written"),
        (
            f'{PLAIN} required password=hun;ter2";',
            "no control flag|is missing",
        ),
        (f'{PLAIN} required password="hunter2;', "semicolon"),
        (f'; {PLAIN} required password="hunter2";', "expected at character 0"),
        ("com.sun.security.auth.module.JndiLoginModule required;", "not allowed"),
        ("com.sun.security.auth.module.LdapLoginModule required;", "not allowed"),
        ("x" * 1_048_577, "longer than"),
    ],
)
def test_errors_do_not_contain_the_secret(text: str, said: str) -> None:
    with pytest.raises(JaasError, match=said) as raised:
        single_jaas_entry(text)
    assert SECRET not in str(raised.value)
    assert "ter2" not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.behaviour("B336")
def test_exactly_one_module_is_required() -> None:
    two = f"{PLAIN} required; {PLAIN} optional;"
    assert len(parse_jaas_config(two)) == 2
    with pytest.raises(JaasError, match="2 login modules"):
        single_jaas_entry(two)


def test_options_are_not_shown() -> None:
    entry = single_jaas_entry(f'{PLAIN} required user_alice="hunter2" user_="nameless";')
    assert SECRET not in repr(entry)
    users = PlainUsers.from_jaas_options(entry.options, SeededEntropy())
    assert users.verify("alice", b"hunter2")
    assert not users.verify("alice", b"hunter")
    assert not users.verify("bob", b"hunter2")
    assert SECRET not in repr(users)
