"""The language of policy statements.

    sentence    principals operations resources [hosts]
    principals  everyone | (everyone | anyone) but principal ... | principal ...
    principal   Type:name, or Type:prefix* for all with this prefix; User:* is everyone, as in Kafka
    operations  READ ... by Kafka's names; ALL is every operation that applies to the type
    resources   topic name ... | topics under prefix ... | every topic | cluster
                also group, transactional-id, delegation-token, user, each with or without an s
    hosts       from host ... | from anywhere [but host ...]; a host is an address or a range

`and`, `or` or a comma joins several items of a kind. A word in backticks or double quotes is taken literally,
even if it contains blanks, ends with `*`, or is a keyword of the language.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final, TypeVar

from kustos.acl import (
    CLUSTER_NAME,
    EVERY_PRINCIPAL,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    ResourceType,
)
from kustos.analysis.by_host import host_pattern, ipv6_text, mapped, summed
from kustos.analysis.host_sets import ANYWHERE, HostSet
from kustos.analysis.name_sets import Site
from kustos.analysis.policy import PolicyPrincipals, PrincipalPattern

SENTENCE_CHARACTERS_MAX: Final = 65_536
"""Longest accepted sentence: enough for a thousand long names, but not for a file that is read by mistake."""

_TOKEN: Final = re.compile(
    r"""\s*(?:`(?P<back>[^`]*)`|"(?P<double>[^"]*)"|(?P<word>[^\s`"]+)|(?P<bad>[`"]))"""
)
_EVERYONE: Final = frozenset({"everyone", "anyone"})
_BUT: Final = frozenset({"but", "except"})
_JOINING: Final = frozenset({"and", "or", ","})
_WORDS: Final = _EVERYONE | _BUT | _JOINING | {"from", "under", "every", "anywhere"}
_NOUNS: Final[dict[str, ResourceType]] = {
    "cluster": ResourceType.CLUSTER,
    **{
        f"{kind.name.lower().replace('_', '-')}{plural}": kind
        for kind in SUPPORTED_OPERATIONS
        for plural in ("", "s")
        if kind is not ResourceType.CLUSTER
    },
}

Item = TypeVar("Item")


class SentenceError(ValueError):
    """A sentence with invalid syntax: the invalid `value` and the `rule` that it violates."""

    def __init__(self, value: str, rule: str) -> None:
        self.value = value
        self.rule = rule
        super().__init__(f"`{value}`: {rule}")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A parsed sentence."""

    principals: PolicyPrincipals
    operations: tuple[AclOperation, ...]
    resource_type: ResourceType
    sites: tuple[Site, ...]
    hosts: HostSet


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    is_quoted: bool


def parse_sentence(text: str) -> Sentence:
    """Return the parsed sentence; raise `SentenceError`."""
    if len(text) > SENTENCE_CHARACTERS_MAX:
        raise SentenceError(f"{text[:32]}...", f"a sentence has at most {SENTENCE_CHARACTERS_MAX} characters")
    reader = _SentenceReader(_tokens(text))
    principals = _principals(reader)
    operations = reader.several(_operation)
    resource_type, sites = _resources(reader)
    hosts = _hosts(reader)
    reader.expect_end()
    return Sentence(principals, _on_type(operations, resource_type), resource_type, sites, hosts)


def _tokens(text: str) -> list[_Word]:
    tokens: list[_Word] = []
    for match in _TOKEN.finditer(text.strip()):
        word = match["word"]
        if match["bad"] is not None:
            raise SentenceError(text[match.start("bad") :], "close the quotation")
        if word is None:
            tokens.append(
                _Word(match["back"] if match["double"] is None else match["double"], is_quoted=True)
            )
            continue
        # a comma joins only at the end of a word: distinguished names contain commas
        bare = word.rstrip(",")
        tokens += [_Word(bare, is_quoted=False)] if bare else []
        tokens += [_Word(",", is_quoted=False)] if bare != word else []
    return tokens


class _SentenceReader:
    def __init__(self, tokens: list[_Word]) -> None:
        self._tokens = tokens
        self._position = 0

    def peek(self) -> _Word | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def word(self) -> str | None:
        """Return the next word in lower case if it is a keyword; None if it is a name."""
        token = self.peek()
        return None if token is None or token.is_quoted else token.text.lower()

    def take(self, what: str) -> _Word:
        token = self.peek()
        if token is None:
            raise SentenceError("end of the sentence", f"here should be {what}")
        self._position += 1
        return token

    def skip(self, words: frozenset[str]) -> bool:
        """Consume the next word if it is one of these."""
        found = self.word() in words
        self._position += found
        return found

    def name(self, what: str) -> _Word:
        """Consume a name; keywords are names only in quotes."""
        token = self.take(what)
        if not token.is_quoted and token.text.lower() in _WORDS:
            raise SentenceError(token.text, f"here should be {what} (put a name of that kind in backticks)")
        return token

    def several(self, one: "Callable[[_SentenceReader], Item]") -> tuple[Item, ...]:
        """Read one or more joined items of a kind."""
        items = [one(self)]
        while self.skip(_JOINING):
            while self.skip(_JOINING):
                pass
            items.append(one(self))
        return tuple(dict.fromkeys(items))

    def expect_end(self) -> None:
        token = self.peek()
        if token is not None:
            raise SentenceError(token.text, "the sentence should end here, or go on with `from`")


def _principals(reader: _SentenceReader) -> PolicyPrincipals:
    if not reader.skip(_EVERYONE):
        patterns = reader.several(_principal)
        if any(pattern.text == "" for pattern in patterns):
            return PolicyPrincipals((), is_everyone_but=True)
        return PolicyPrincipals(patterns)
    if not reader.skip(_BUT):
        return PolicyPrincipals((), is_everyone_but=True)
    patterns = reader.several(_principal)
    if any(pattern.text == "" for pattern in patterns):
        raise SentenceError(EVERY_PRINCIPAL, "excluding everyone leaves no principal, name principals")
    return PolicyPrincipals(patterns, is_everyone_but=True)


def _principal(reader: _SentenceReader) -> PrincipalPattern:
    token = reader.name("a principal such as `User:alice` or `User:pay-*`, or `everyone`")
    kind, colon, _ = token.text.partition(":")
    if not colon or WILDCARD in kind:
        raise SentenceError(token.text, "a principal is written `User:name` or `User:prefix*`")
    if token.is_quoted:
        if token.text == EVERY_PRINCIPAL:
            raise SentenceError(token.text, "no principal can have this name, write `everyone`")
        return PrincipalPattern(token.text, is_prefix=False)
    stem = token.text.removesuffix(WILDCARD)
    if WILDCARD in stem:
        raise SentenceError(
            token.text, "a `*` is allowed only at the end (put a name that contains one in backticks)"
        )
    if token.text == EVERY_PRINCIPAL:
        return PrincipalPattern("", is_prefix=True)
    return PrincipalPattern(stem, is_prefix=stem != token.text)


def _operation(reader: _SentenceReader) -> AclOperation:
    token = reader.take("an operation such as `READ`")
    operation = AclOperation.from_text(token.text)
    if token.is_quoted or operation in {AclOperation.UNKNOWN, AclOperation.ANY}:
        raise SentenceError(
            token.text, "this is not an operation, write one such as `READ`, `WRITE` or `ALL`"
        )
    return operation


def _on_type(operations: tuple[AclOperation, ...], resource_type: ResourceType) -> tuple[AclOperation, ...]:
    supported = SUPPORTED_OPERATIONS[resource_type]
    if AclOperation.ALL in operations:
        return supported
    for operation in operations:
        if operation not in supported:
            names = ", ".join(str(one) for one in supported)
            raise SentenceError(str(operation), f"does not apply to {resource_type}, use one of {names}")
    return operations


def _resources(reader: _SentenceReader) -> tuple[ResourceType, tuple[Site, ...]]:
    reader.skip(frozenset({"on"}))
    is_every = reader.skip(frozenset({"every"}))
    reader.skip(frozenset({"the"}))
    token = reader.take("a kind of resource such as `topic`")
    resource_type = None if token.is_quoted else _NOUNS.get(token.text.lower())
    if resource_type is None:
        raise SentenceError(token.text, f"here should be a kind of resource: {', '.join(_NOUNS)}")
    if resource_type is ResourceType.CLUSTER:
        return resource_type, (Site(CLUSTER_NAME, is_literal=True),)
    if is_every:
        return resource_type, (Site("", is_literal=False),)
    return resource_type, reader.several(_site)


def _site(reader: _SentenceReader) -> Site:
    is_prefix = reader.skip(frozenset({"under"}))
    token = reader.name("a name, or `under` and a prefix (for all of them write `every topic`)")
    if token.text == WILDCARD and not is_prefix:
        raise SentenceError(token.text, "this is the name of nothing, write `every topic`")
    if not token.is_quoted and WILDCARD in token.text:
        raise SentenceError(token.text, "write `under` and a prefix (put a name that holds `*` in backticks)")
    if is_prefix and not token.text:
        raise SentenceError("under", "the prefix is empty, write `every topic`")
    return Site(token.text, is_literal=not is_prefix)


def _hosts(reader: _SentenceReader) -> HostSet:
    if not reader.skip(frozenset({"from"})):
        return ANYWHERE
    if not reader.skip(frozenset({"anywhere"})):
        return _host_set(reader.several(_host))
    if not reader.skip(_BUT):
        return ANYWHERE
    without = _host_set(reader.several(_host))
    return HostSet(mapped(without.member, lambda member: 1 - member))


def _host_set(hosts: tuple[str, ...]) -> HostSet:
    return HostSet(summed(dict.fromkeys(hosts, 1), lambda bits: bits))


def _host(reader: _SentenceReader) -> str:
    text = reader.name("an address, a range such as `10.0.0.0/8`, or `anywhere`").text
    if text == WILDCARD:
        raise SentenceError(text, "write `anywhere`")
    if host_pattern(text).matches_nobody:
        raise SentenceError(text, f"no client has this address, {_address_remedy(text)}")
    return text


def _address_remedy(text: str) -> str:
    try:
        return f"write it as Kafka does: `{ipv6_text(int(IPv6Address(text)))}`"
    except ValueError:
        return "write one such as `10.1.2.3` or `10.0.0.0/8`"
