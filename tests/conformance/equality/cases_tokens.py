"""Delegation tokens: made for oneself and for others, renewed, ended, and seen by whom they concern."""

from dataclasses import replace
from typing import Any

from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Said, Step, Story
from tests.conformance.equality.world import ALL, ELSEWHERE, MIXED, NOBODY, READER, SOME, SUPER, ZED

CREATE, RENEW = ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN
EXPIRE, DESCRIBE = ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN

SECRET = {"delegation.token.secret.key": "one-secret-for-both"}
LONGEST = 2**63 - 1


def principal(text: str) -> dict[str, Any]:
    """Return a principal as messages have it."""
    kind, _, name = text.partition(":")
    return {"principal_type": kind, "principal_name": name}


def owner(text: str | None) -> dict[str, Any]:
    """Return the owner in CreateDelegationToken."""
    kind, _, name = (text or "").partition(":")
    return {"owner_principal_type": kind or None, "owner_principal_name": name or None}


def creation(
    *renewers: str, of: str | None = None, user: str | None = None, lifetime_ms: int = -1, **fields: Any
) -> Step:
    """Return a CreateDelegationToken; its older versions have no owner but who asks."""
    asked = {"renewers": [principal(each) for each in renewers], "max_lifetime": lifetime_ms}
    return Step(api=CREATE, fields=asked | owner(of) | fields, user=user)


def known(made_at: int) -> Step:
    """Return what is asked until Kafka's controller knows a token, too; it changes nothing."""
    return Step(
        api=RENEW, fields={"hmac": Said(made_at, ("hmac",)), "renew_period": -1}, user=READER, settles=True
    )


def seen(user: str | None, *owners: str, everybody: bool = False) -> Step:
    """Return a look at tokens, taken until both sides have come to rest."""
    asked = None if everybody else [principal(each) for each in owners]
    return Step(api=DESCRIBE, fields={"owners": asked}, user=user, settles=True)


def created(title: str, users: tuple[str, ...], made: Step, versions: tuple[int, int] | None = None) -> Story:
    """Return a story of one CreateDelegationToken, and of what its maker sees then."""
    return Story(title=title, steps=(made, seen(None, everybody=True)), users=users, versions=versions)


MAKERS = (SUPER, ALL, NOBODY, SOME, ELSEWHERE)
NEWEST = (3, 3)
CREATED = (
    created("for oneself", MAKERS, creation()),
    created("with renewers", (SUPER, NOBODY), creation("User:zed", "User:some")),
    created("with a group as renewer", (SUPER, NOBODY), creation("User:zed", "Group:some")),
    created("with a nameless renewer", (NOBODY,), creation("User:")),
    created("with one renewer twice", (NOBODY,), creation("User:zed", "User:zed")),
    created("for another", MAKERS, creation("User:some", of="User:zed"), NEWEST),
    created("for a prefix", (SUPER, SOME), creation(of="User:zebra"), NEWEST),
    created("for oneself by name", (NOBODY,), creation(of="User:nobody"), NEWEST),
    created("for a group", (SUPER, ALL, NOBODY), creation(of="Group:zed"), NEWEST),
    created("for an odd type", (SUPER, NOBODY), creation(of="a:b:c"), NEWEST),
    created("for another with a group as renewer", MAKERS, creation("Group:x", of="User:zed"), NEWEST),
    created(
        "for an owner without a type",
        (SUPER, NOBODY),
        creation(owner_principal_type=None, owner_principal_name="zed"),
        NEWEST,
    ),
    created(
        "for an owner of no type",
        (SUPER, NOBODY),
        creation(owner_principal_type="", owner_principal_name="zed"),
        NEWEST,
    ),
    created(
        "for a type without an owner",
        (NOBODY,),
        creation(owner_principal_type="User", owner_principal_name=""),
        NEWEST,
    ),
    *[
        created(f"to live {lifetime_ms} ms", (NOBODY,), creation(lifetime_ms=lifetime_ms))
        for lifetime_ms in (-(2**63), 0, 60_000, LONGEST)
    ],
)

CHANGERS = (ZED, SOME, SUPER, NOBODY)
"""The owner, a renewer, the requester, a stranger."""
NOTHING = {"hmac": b"no token at all", "renew_period": -1, "expiry_time_period": 1}
MADE = replace(creation("User:some", of="User:zed", user=SUPER), version=NEWEST[1])


def changed(title: str, api: ApiKey, period_ms: int, users: tuple[str, ...] = CHANGERS) -> Story:
    """Return a story of a token made for it, changed once, and what its owner sees then."""
    period = "renew_period" if api == RENEW else "expiry_time_period"
    asked = Step(api=api, fields={"hmac": Said(1, ("hmac",)), period: period_ms})
    first = Step(api=api, fields={"hmac": NOTHING["hmac"], period: NOTHING[period]})
    steps = (first, MADE, known(1), asked, seen(ZED, everybody=True))
    return Story(title=title, steps=steps, users=users)


PERIODS = (-(2**63), -1, 0, 60_000, LONGEST)
CHANGED = (
    *[changed(f"by {period_ms} ms", RENEW, period_ms) for period_ms in PERIODS],
    *[changed(f"in {period_ms} ms", EXPIRE, period_ms) for period_ms in PERIODS],
    *[
        Story(
            title=f"of {len(hmac)} bytes that are no token's",
            steps=(Step(api=api, fields={"hmac": hmac, period: -1}),),
            users=(SUPER, NOBODY),
        )
        for api, period in ((RENEW, "renew_period"), (EXPIRE, "expiry_time_period"))
        for hmac in (b"", b"x" * 64)
    ],
)


def late(title: str, api: ApiKey, period_ms: int) -> Story:
    """Return a story of a token that has expired when it is changed."""
    period = "renew_period" if api == RENEW else "expiry_time_period"
    first = Step(api=api, fields={"hmac": NOTHING["hmac"], period: NOTHING[period]})
    made = replace(MADE, fields={**MADE.fields, "max_lifetime": 1})
    asked = Step(api=api, fields={"hmac": Said(1, ("hmac",)), period: period_ms})
    return Story(title=title, steps=(first, made, known(1), asked), users=CHANGERS)


LATE = (
    late("of an expired one", RENEW, -1),
    late("of an expired one", EXPIRE, 1000),
    late("of an expired one at once", EXPIRE, -1),
)

SEERS = (SUPER, ALL, NOBODY, SOME, MIXED, READER, ELSEWHERE, ZED)


def described(title: str, users: tuple[str, ...], *owners: str, everybody: bool = False) -> Story:
    """Return a story of one DescribeDelegationToken."""
    return Story(title=title, steps=(seen(None, *owners, everybody=everybody),), users=users)


DESCRIBED = (
    described("all", SEERS, everybody=True),
    described("of nobody", SEERS),
    described("of one", SEERS, "User:zed"),
    described("of several", SEERS, "User:nobody", "User:some", "User:ghost"),
    described("of a ghost", (SUPER, NOBODY), "User:ghost"),
    described("of a group", (SUPER, ALL, NOBODY), "Group:zed"),
    described("of an odd type", (SUPER, NOBODY), "a:b:c"),
    described("of everybody by name", (SUPER, NOBODY), "User:*"),
)

STORIES = CREATED + CHANGED + LATE + DESCRIBED
