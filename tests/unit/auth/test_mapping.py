"""Rules map certificate and Kerberos names to users, compared with recorded answers of Kafka's classes."""

import json

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from kustos.auth import MappingRuleError, NoMatchingRuleError
from kustos.auth.mapping import (
    MAX_NAME_CHARACTERS,
    KerberosName,
    kerberos_shortener,
    rfc2253_of_der,
    ssl_principal_mapper,
)
from testkit.mapping_probe import GOLDEN, NONE, RULES, differences, our_answer

RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))
SUBJECT = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


def test_recorded_answers_of_kafka_are_ours() -> None:
    questions, answers = [question for question, _ in RECORDED], [answer for _, answer in RECORDED]
    assert differences(questions, answers) == []
    refused_by_kafka = [question for question, answer in RECORDED if answer == [RULES]]
    assert len(refused_by_kafka) > 50
    assert all(our_answer(question) == [RULES] for question in refused_by_kafka)
    mapped = [name for question in questions if question[0] != "x500" for name in our_answer(question)]
    assert sum(name not in {NONE, RULES} for name in mapped) > 100


@pytest.mark.behaviour("B280", "B284")
@pytest.mark.parametrize(
    ("rules", "user"),
    [
        ("RULE:^CN=(.*),OU=ServiceUsers,O=Org,C=US$/$1/", "Duke"),
        (" DEFAULT , RULE:.*/x/", SUBJECT),
        ("RULE:^x$/y/L  ,,  RULE:^CN=(.*?),.*$/$1, the first/", "Duke, the first"),
        (r"RULE:^CN=(\w+),OU=(Service Users|ServiceUsers),.*$/$1\/$2/,DEFAULT", "Duke/ServiceUsers"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1 of $3, $4/", "Duke of Org, US"),
    ],
)
def test_commas_separate_rules_but_not_within_a_rule(rules: str, user: str) -> None:
    assert ssl_principal_mapper(rules)(SUBJECT) == user


@pytest.mark.behaviour("B281")
@pytest.mark.parametrize(
    ("rule", "rest"),
    [
        ("default", "default"),
        ("DEFAULT/L", "/L"),
        ("DEFAULT/U", "/U"),
        ("RULE:CN=(.*?),OU=ServiceUsers.*/$1", "RULE:CN=(.*?),OU=ServiceUsers.*/$1"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/G", "G"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/LU", "U"),
        ("RULE:a/b/l", "l"),
        ("rule:a/b/", "rule:a/b/"),
    ],
)
def test_an_invalid_rule_is_refused_with_its_invalid_part(rule: str, rest: str) -> None:
    with pytest.raises(MappingRuleError) as caught:
        ssl_principal_mapper(rule)
    assert f"`{rule}`" in str(caught.value) or "," in rule
    assert f"unmatched substring: `{rest}`" in str(caught.value) or "," in rule


@pytest.mark.behaviour("B282", "B283")
def test_the_first_rule_that_matches_gives_the_name_in_the_case_asked_for() -> None:
    rules = (
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, DEFAULT"
    )
    mapper = ssl_principal_mapper(rules)
    assert mapper("CN=Duke,OU=ServiceUsers,O=Org,C=US") == "duke"
    assert mapper("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US") == "duke@sme"
    assert mapper("cn=Duke,OU=JavaSoft,O=Sun Microsystems") == "DUKE"
    assert mapper("OU=JavaSoft,O=Sun Microsystems,C=US") == "OU=JavaSoft,O=Sun Microsystems,C=US"


def test_without_a_rule_that_applies_there_is_no_user() -> None:
    for mapper in (ssl_principal_mapper(""), ssl_principal_mapper("RULE:^CN=x$/y/")):
        with pytest.raises(NoMatchingRuleError, match="no rule applies to `CN=Duke,"):
            mapper(SUBJECT)


@pytest.mark.parametrize("name", ["a" * (MAX_NAME_CHARACTERS + 1), "a\nb", "a\r", "\u2028", "\x85a"])
def test_names_that_are_too_long_or_have_line_breaks_are_refused(name: str) -> None:
    for mapper in (ssl_principal_mapper("DEFAULT"), kerberos_shortener(["DEFAULT"], "")):
        with pytest.raises(NoMatchingRuleError, match=r"longer than 1024|line break"):
            mapper(name)


def test_a_pattern_with_exponential_backtracking_is_fast() -> None:
    mapper = ssl_principal_mapper("RULE:(a+)+b/x/,RULE:(x+x+)+y/x/")
    for letter in "ax":
        with pytest.raises(NoMatchingRuleError):
            mapper(letter * MAX_NAME_CHARACTERS)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a++", "possessive"),
        ("(?=a)", "look-around"),
        (r"(a)\1", r"the escape `\1`"),
        (r"\bx", r"the escape `\b`"),
        ("(a*)*", "repeats what can match nothing"),
        ("[a&&b]", "intersections"),
        ("a{2,1}", "ends below its beginning"),
        ("*a", "nothing to repeat"),
        ("(a", "is not closed"),
        ("a)", "closes no group"),
        ("[a", "not closed"),
        ("a{1001}", "repeats too much"),
        ("a" * 1025, "longer than 1024"),
        ("x{0", "begins no repetition"),
    ],
)
def test_a_pattern_that_cannot_be_matched_as_java_does_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(MappingRuleError, match=words.replace("\\", "\\\\")):
        ssl_principal_mapper(f"RULE:{pattern}/x/")


@pytest.mark.parametrize("replacement", ["$1", "$", "${n}", "a$x", "${n"])
def test_a_replacement_without_its_group_is_refused(replacement: str) -> None:
    with pytest.raises(MappingRuleError, match="the replacement"):
        ssl_principal_mapper(f"RULE:a/{replacement}/")


def test_rules_and_their_number_have_limits() -> None:
    with pytest.raises(MappingRuleError, match="at most 128"):
        ssl_principal_mapper(",".join(["DEFAULT"] * 129))
    with pytest.raises(MappingRuleError, match="at most 128"):
        kerberos_shortener(["DEFAULT"] * 129, "")
    with pytest.raises(MappingRuleError, match="65536"):
        ssl_principal_mapper("RULE:a/" + "b" * 70_000 + "/")


@pytest.mark.behaviour("B285")
def test_kerberos_names_are_read() -> None:
    assert KerberosName.parse("App.service-name/example.com@REALM.COM") == KerberosName(
        "App.service-name", "example.com", "REALM.COM"
    )
    assert KerberosName.parse("App.service-name@REALM.COM") == KerberosName(
        "App.service-name", None, "REALM.COM"
    )
    assert KerberosName.parse("user/x") == KerberosName("user/x")
    assert kerberos_shortener(["RULE:[1:x]"], "R")("user/x") == "user/x"
    with pytest.raises(NoMatchingRuleError, match="malformed Kerberos name: `a/b/c@R`"):
        KerberosName.parse("a/b/c@R")


@pytest.mark.behaviour("B286")
def test_kerberos_rules_change_case_with_and_without_a_substitution() -> None:
    rules = [
        "RULE:[1:$1]/L",
        r"RULE:[2:$1](Test.*)s/ABC///L",
        "RULE:[2:$1](ABC.*)s/ABC/XYZ/g/U",
        "RULE:[2:$1]/U",
        "DEFAULT",
    ]
    shorten = kerberos_shortener(rules, "REALM.COM")
    assert shorten("User@REALM.COM") == "user"
    assert shorten("TestABC/host@FOO.COM") == "test"
    assert shorten("ABC_User_ABC/host@FOO.COM") == "XYZ_USER_XYZ"
    assert shorten("App.SERVICE-name/example.com@REALM.COM") == "APP.SERVICE-NAME"


@pytest.mark.behaviour("B287")
@pytest.mark.parametrize(
    ("rule", "rest"),
    [
        ("default", "default"),
        ("DEFAULT/L", "/L"),
        ("RULE:[1:$1]/l", "l"),
        ("RULE:[1:$1]//L", "/L"),
        ("RULE:[1:$1]L/", "/"),
        ("RULE:[1:$1]/LU", "U"),
        ("RULE:[2:$1](Test.*)s/ABC", "s/ABC"),
        ("RULE:[2:$1]s/A/B/g/L/", "/"),
    ],
)
def test_an_invalid_kerberos_rule_is_refused_with_its_invalid_part(rule: str, rest: str) -> None:
    with pytest.raises(MappingRuleError) as caught:
        kerberos_shortener([rule], "R")
    assert f"invalid rule: `{rule}`, unmatched substring: `{rest}`" in str(caught.value)


@pytest.mark.behaviour("B288")
def test_numbered_parts_are_filled_in_and_others_fail() -> None:
    shorten = kerberos_shortener(["RULE:[2:$2-$1-$0-$$1]s/x/x/".replace("$$1", "$1")], "")
    assert shorten("a/b@C") == "b-a-C-a"
    for text in ("$3", "$", "$1$x", "$99999999999"):
        with pytest.raises(MappingRuleError, match="outside of the valid range 0 to 2"):
            kerberos_shortener([f"RULE:[2:{text}]"], "")
    with pytest.raises(MappingRuleError, match="number of components"):
        kerberos_shortener(["RULE:[:$1]"], "")


def test_a_name_that_a_rule_does_not_make_simple_is_refused() -> None:
    for rule in ("RULE:[1:$1@$0]", "RULE:[1:$1/x]"):
        with pytest.raises(NoMatchingRuleError, match="is not a simple name"):
            kerberos_shortener([rule, "DEFAULT"], "R")("alice@R")


def test_the_name_of_a_certificate_is_written_as_java_writes_it() -> None:
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "US"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Smith, Jones + Sons"),
            x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c"),
            x509.NameAttribute(NameOID.COMMON_NAME, " Ünal#1 "),
        ]
    )
    assert rfc2253_of_der(name.public_bytes()) == (
        r"CN=\ Ünal\#1\ ,1.2.840.113549.1.9.1=#16056140622e63,O=Smith\, Jones \+ Sons,C=US"
    )
    assert rfc2253_of_der(x509.Name([]).public_bytes()) == ""


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x31\x00", b"\x30\x00\x00", b"\x30\x03\x31\x05\x30", b"\x30\x80\x00\x00",
             bytes.fromhex("300b3109300706035504030c00") + b"x",
             bytes.fromhex("300d310b300906035504030c02c328")]
)  # fmt: skip
def test_invalid_names_are_refused(data: bytes) -> None:
    with pytest.raises(NoMatchingRuleError, match="not valid DER, or not UTF-8"):
        rfc2253_of_der(data)
