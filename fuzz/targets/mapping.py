"""Rules that turn names of certificates and of Kerberos into users, and the names themselves.

The first byte chooses; NUL separates the rules, the name and the default realm.
"""

from collections.abc import Callable, Iterator
from typing import Final

from fuzz.targets import require
from kustos.auth import MappingRuleError, NoMatchingRuleError
from kustos.auth.mapping import kerberos_shortener, rfc2253_of_der, ssl_principal_mapper
from kustos.auth.mapping.kerberos import KerberosName

INPUT_MAX_BYTES: Final = 2_048
MAPPED_MAX_CHARACTERS: Final = 4_000_000
"""A name of 1,024 characters, and a replacement that repeats all of it for each letter of a rule."""

DER_FACTOR: Final = 32
"""A byte of a name may be written as an escape; an identifier as numbers with points."""

_REFUSALS: Final = (MappingRuleError, NoMatchingRuleError)


def check(data: bytes) -> None:
    """Raise if rules are not one function, or if a user has a name that he must not have."""
    kinds = {b"s": certificate, b"k": kerberos, b"d": distinguished, b"n": parts_of_kerberos}
    kinds.get(data[:1], certificate)(data[1:])


def texts(data: bytes) -> tuple[str, str, str]:
    """Return three texts."""
    rules, name, realm, *_ = (*data.decode("utf-8", "replace").split("\0", 2), "", "")
    return rules, name, realm


def mapped(make: Callable[[], Callable[[str], str]], name: str) -> str | None:
    """Return the user of a name, None for nobody; the same rules made anew must say the same."""
    said: list[str | None] = []
    for _ in range(2):
        try:
            said.append(make()(name))
        except _REFUSALS:
            said.append(None)
    require(said[0] == said[1], "the same rules say two things")
    if said[0] is not None:
        require(len(said[0]) <= MAPPED_MAX_CHARACTERS, "a user has an endless name")
    return said[0]


def certificate(data: bytes) -> None:
    """Map a distinguished name."""
    rules, name, _ = texts(data)
    user = mapped(lambda: ssl_principal_mapper(rules), name)
    if rules.strip() in {"", "DEFAULT"} and user is not None:
        require(user == name, "no rule changes a name")


def kerberos(data: bytes) -> None:
    """Map a principal of Kerberos; a user's name is simple, so that nobody gets that of another realm."""
    rules, name, realm = texts(data)
    user = mapped(lambda: kerberos_shortener(rules.split(","), realm), name)
    if user is not None and "@" in name:
        require(not any(character in user for character in "/@"), "a user has a host or a realm")
    if rules == "DEFAULT" and user is not None:
        require(
            name in {user, f"{user}@{realm}"} or name.startswith(f"{user}/"), "the default invents a user"
        )


def distinguished(data: bytes) -> None:
    """Write a Name of DER as text."""
    try:
        text = rfc2253_of_der(data)
    except NoMatchingRuleError:
        return
    require(len(text) <= DER_FACTOR * (len(data) + 1), "a text is much longer than its bytes")
    require(rfc2253_of_der(data) == text, "the same bytes are two texts")
    require("\0" not in text or b"\0" in data, "a text has what its bytes have not")


def parts_of_kerberos(data: bytes) -> None:
    """Take a name of Kerberos apart and put it together."""
    text = data.decode("utf-8", "replace")
    try:
        name = KerberosName.parse(text)
    except NoMatchingRuleError:
        return
    require(all(part in text for part in name.components), "a part was not in the name")
    require(len("".join(name.components)) <= len(text), "the parts are longer than the name")


def seeds() -> Iterator[bytes]:
    """Yield the questions that Kafka's own classes have answered, and names in DER."""
    from cryptography import x509

    from testkit.mapping_probe import draw

    for kind, *words in draw(1, 400):
        if kind == "x500":
            yield b"d" + words[0].encode("latin-1")
        elif kind == "ssl":
            yield b"s" + "\0".join(words[:2]).encode("utf-8", "replace")
        else:
            end = 2 + int(words[1])
            yield b"k" + "\0".join((",".join(words[2:end]), words[end], words[0])).encode("utf-8", "replace")
    for name in ("alice@EXAMPLE.COM", "kafka/host@EXAMPLE.COM", "a/b/c@R"):
        yield b"n" + name.encode()
    yield b"d" + x509.Name.from_rfc4514_string("CN=Duke\\, the,OU=J+L=x,O=Sun,C=US").public_bytes()
