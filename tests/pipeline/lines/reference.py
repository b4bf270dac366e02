"""What a line of `kafka.authorizer.logger` says: the slow version, which tries every way to read it."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone

LOGGER = " (kafka.authorizer.logger)"
HEAD = re.compile(
    r"\[(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3})(Z|[+-]\d\d(?::?\d\d)?)?\] (TRACE|DEBUG|INFO)  ?",
    re.ASCII,
)
PHRASES = [
    *("Principal = ", " from host = ", " on resource = ", " for request = ", " with resourceRefCount = "),
    *(" based on rule ", ", patternType=", ", principal=", ", host=", ", operation=", ", permissionType="),
    *(f" is {result} {letter}peration = " for result in ("Allowed", "Denied") for letter in "oO"),
    LOGGER,
]
WORD, ENUM, COUNT, FREE = r"[A-Za-z]+", "[A-Z_]+", r"\d{1,9}", None
PRINCIPAL = [("Principal = ", r"[^:]*"), (":", FREE)]
AFTER_RESULT = [("", "[A-Za-z_]+"), (" from host = ", r"[0-9A-Za-z.:%_\-]+"), (" on resource = ", WORD)]
REQUEST = [(" for request = ", r"[A-Za-z_0-9\-]+"), (" with resourceRefCount = ", COUNT)]
ACL = [
    *((" based on rule MatchingAcl(acl=StandardAcl{resourceType=", ENUM), (", resourceName=", FREE)),
    *((", patternType=", ENUM), (", principal=", FREE), (", host=", FREE), (", operation=", ENUM)),
    (", permissionType=", ENUM),
]
PLAIN_RULES = ("SuperUser", "DefaultAllow", "DefaultDeny", "CustomAuthorizer")
Step = tuple[str, str | None]
Event = dict[str, object]


def readings(text: str, steps: Sequence[Step]) -> Iterator[list[str]]:
    """Yield the pieces of every way to read a text as these words, each followed by a piece of its kind."""
    if not steps:
        if not text:
            yield []
        return
    (word, kind), *rest = steps
    if not text.startswith(word):
        return
    text = text[len(word) :]
    for end in range(len(text) + 1):
        if rest and not text.startswith(rest[0][0], end):
            continue
        if not rest and end < len(text):
            continue
        if kind is FREE or re.fullmatch(kind, text[:end], re.ASCII | re.DOTALL):
            yield from ([text[:end], *others] for others in readings(text[end:], rest))


def forms(message: str) -> Iterator[tuple[list[Step], str, str, str, str]]:
    """Yield the grammars a message may follow: steps, result, rule kind, text less its end, brackets."""
    ended = message.removesuffix(LOGGER)
    for result in ("Allowed", "Denied"):
        for letter in "oO":
            steps: list[Step] = [*PRINCIPAL, (f" is {result} {letter}peration = ", AFTER_RESULT[0][1])]
            steps += AFTER_RESULT[1:]
            named: list[Step] = [*steps, (":", ENUM), (":", FREE)]
            if letter == "O":
                yield [*named, *REQUEST], result, "", ended, ""
                if message.endswith(LOGGER):
                    yield named, result, "", ended, ""
                    yield [*steps, (":", FREE)], result, "", ended, ""
                continue
            for rule in PLAIN_RULES:
                if ended.endswith(end := f" based on rule {rule}"):
                    yield [*named, *REQUEST], result, rule, ended.removesuffix(end), ""
            for bracket, end in (("[", "])"), ("(", "))"), ("[", "))"), ("(", "])")):
                if ended.endswith(end):
                    acl = [(ACL[0][0].replace("{", bracket), ACL[0][1]), *ACL[1:]]
                    yield [*named, *REQUEST, *acl], result, "MatchingAcl", ended[: -len(end)], bracket


def parse(line: str) -> Event | None:
    """Return what a line tells, None where it is not to be taken for an event."""
    head = HEAD.match(line)
    if head is None or "\x1f" in line:
        return None
    message = line[head.end() :]
    found: list[tuple[list[Step], list[str], str, str]] = []
    for steps, result, rule, text, _ in forms(message):
        found += [(steps, pieces, result, rule) for pieces in readings(text, steps)]
    # `Topic:LITERAL:foo` is never the name `LITERAL:foo` of a 1.1 broker
    found = [one for one in found if not (_is_unnamed(one[0]) and re.match(f"{ENUM}:", one[1][5]))]
    found = [one for one in found if not _deceives(one[0], one[1])]
    if len(found) != 1:
        return None
    steps, pieces, result, rule = found[0]
    time_ms = _time_ms(head)
    event = None if time_ms is None else _event(steps, pieces, result, rule, head[5], time_ms)
    return event if event is not None and _is_kafkas(event) else None


RESOURCE_TYPES = {"TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"}
OPERATIONS = {
    *("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS"),
    *("ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
}
WORDS = {
    "resource_type": RESOURCE_TYPES,
    "operation": OPERATIONS,
    "pattern_type": {"LITERAL", "PREFIXED"},
    "permission_type": {"ALLOW", "DENY"},
}


def _is_kafkas(event: Event) -> bool:
    """Whether all words are Kafka's own."""
    rule = event["rule"]
    assert isinstance(rule, dict)
    return all(
        fields[name] is None or fields[name] in known
        for fields in (event, rule)
        for name, known in WORDS.items()
        if name in fields
    )


def _deceives(steps: Sequence[Step], pieces: Sequence[str]) -> bool:
    """Whether a name holds a phrase that connects the parts of a line."""
    free = [pieces[0], *(piece for (_, kind), piece in zip(steps, pieces, strict=True) if kind is FREE)]
    return any(phrase in f"{piece} " for piece in free for phrase in PHRASES)


def _is_unnamed(steps: Sequence[Step]) -> bool:
    return len(steps) == len(PRINCIPAL) + len(AFTER_RESULT) + 1


def _time_ms(head: re.Match[str]) -> int | None:
    date, time, milliseconds, zone, _ = head.groups()
    try:
        moment = datetime.fromisoformat(f"{date}T{time}.{milliseconds}")
        digits = (zone or "Z").replace(":", "")
        if digits != "Z":
            minutes = int(digits[1:3]) * 60 + int(digits[3:5] or 0)
            if minutes > 18 * 60 or int(digits[3:5] or 0) > 59:
                return None
            moment = moment.replace(
                tzinfo=timezone(timedelta(minutes=minutes if digits[0] == "+" else -minutes))
            )
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    difference = moment - datetime(1970, 1, 1, tzinfo=UTC)
    result = difference // timedelta(milliseconds=1)
    return result if 0 <= result <= 253_402_300_799_999 else None


def _enum(word: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", word).upper()


def _event(
    steps: Sequence[Step], pieces: list[str], result: str, rule: str, level: str, time_ms: int
) -> Event:
    principal_type, name, operation, host, resource_type, *others = pieces
    pattern = [] if _is_unnamed(steps) else [others.pop(0)]
    resource = others.pop(0)
    api, count = (others[0], int(others[1])) if others else (None, None)
    acl = others[2:] if pattern and len(others) > 2 else []
    keys = (
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    return {
        "time_ms": time_ms,
        "principal_type": principal_type,
        "principal_name": name,
        "host": host,
        "api_name": api,
        "resource_type": _enum(resource_type),
        "resource_name": None if resource == "hardcode" and count == 0 else resource,
        "operation": _enum(operation),
        "decision": result.upper(),
        "rule": {
            "kind": rule or None,
            **dict.fromkeys(keys),
            **{k: v or None for k, v in zip(keys, acl, strict=False)},
        },
        "reference_count": count,
        "log_if_allowed": level == "DEBUG" if result == "Allowed" else None,
        "log_if_denied": level == "INFO" if result == "Denied" else None,
        "access": "LISTING" if level == "TRACE" else "ACCESS",
    }
