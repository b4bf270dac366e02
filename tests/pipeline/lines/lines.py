"""Random lines of the authorizer's log: true ones, and what a hostile client or a torn write makes of it."""

from random import Random

FRAGMENTS = (
    *(
        "foo",
        "a.b-c_d",
        "CN=bob,OU=x",
        "ü☕",
        " ",
        ":",
        "\t",
        "=",
        "LITERAL:foo",
        "hardcode",
        "\u2028",
        "$1",
        "\\",
        "%",
    ),
    *(
        "Principal = ",
        " is Allowed operation = READ",
        " is Denied Operation = ",
        " from host =",
        " from host = 1.1.1.1",
    ),
    *(
        " on resource = Topic:LITERAL:x",
        " for request = Fetch",
        " for request =",
        " with resourceRefCount = 1",
    ),
    *(
        " based on rule SuperUser",
        " based on rule",
        ", patternType=LITERAL",
        ", principal=User:x",
        ", host=",
        "\x1f",
    ),
    *(
        ", operation=ALL",
        ", permissionType=ALLOW",
        "])",
        "))",
        " (kafka.authorizer.logger)",
        "kafka.authorizer.logger",
    ),
)
PLAIN = ("orders", "payments.eu", "team-a_topic", "__consumer_offsets", "hardcode")
MOMENTS = (
    *(
        "2026-11-21 04:26:55,815",
        "2026-11-21T04:26:55,815",
        "2026-11-21 04:26:55.815",
        "2026-02-30 00:00:00,000",
    ),
    *("2026-11-21T04:26:55,815+0530", "2026-11-21T04:26:55,815Z", "2026-11-21 04:26:55,815-01:00"),
    *(
        "2026-11-21 04:26:55,815+19",
        "1969-12-31 23:59:59,999",
        "2026-11-21 24:00:00,000",
        "9999-12-31 23:59:59,999",
    ),
)


def name(random: Random) -> str:
    """Return a name, now and then one that somebody made to deceive."""
    if random.random() < 0.8:
        return random.choice(PLAIN)
    return "".join(random.choice(FRAGMENTS) for _ in range(random.randint(0, 3)))


def rule(random: Random) -> str:
    """Return the end of a StandardAuthorizer's line."""
    if random.random() < 0.5:
        return random.choice(("SuperUser", "DefaultAllow", "DefaultDeny", "CustomAuthorizer"))
    left, right = random.choice(("[]", "()"))
    return (
        f"MatchingAcl(acl=StandardAcl{left}resourceType=TOPIC, resourceName={name(random)}, "
        f"patternType={random.choice(('LITERAL', 'PREFIXED'))}, principal=User:{name(random)}, "
        f"host={random.choice(('*', '10.0.0.1', name(random)))}, operation=READ, permissionType=ALLOW{right})"
    )


def line(random: Random) -> str:
    """Return a line of any form, whole or damaged."""
    standard = random.random() < 0.5
    operation = random.choice(
        ("READ", "CLUSTER_ACTION") if standard else ("Read", "DescribeConfigs", "WRITE")
    )
    pattern = "" if random.random() < 0.1 else random.choice(("LITERAL:", "PREFIXED:"))
    kind = random.choice(("Topic", "Group", "TransactionalId", "Cluster", "NewThing"))
    time = MOMENTS[0] if random.random() < 0.7 else random.choice(MOMENTS)
    text = (
        f"[{time}] {random.choice(('INFO', 'INFO ', 'DEBUG', 'TRACE'))} "
        f"Principal = {'User' if random.random() < 0.9 else name(random)}:{name(random)} "
        f"is {random.choice(('Allowed', 'Denied'))} {'o' if standard else 'O'}peration = {operation} "
        f"from host = {random.choice(('10.0.0.7', '0:0:0:0:0:0:0:1%lo'))} "
        f"on resource = {kind}:{pattern}{name(random)}"
    )
    if random.random() < 0.85:
        request = random.choice(("Fetch", "TxnOffsetCommit", "-1"))
        text += f" for request = {request} with resourceRefCount = {random.choice((0, 1, 17, 10**8, 10**9))}"
    if random.random() < (0.95 if standard else 0.05):
        text += f" based on rule {rule(random)}"
    if random.random() < 0.7:
        text += " (kafka.authorizer.logger)"
    return damaged(text, random)


def damaged(text: str, random: Random) -> str:
    """Return the text, or what is left of it."""
    fate = random.random()
    place = random.randint(0, len(text))
    if fate < 0.1:
        return text[:place]
    if fate < 0.15:
        return text[place:]
    if fate < 0.2:
        return text[:place] + random.choice(FRAGMENTS) + text[place:]
    return text
