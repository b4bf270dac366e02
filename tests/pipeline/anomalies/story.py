"""One story for each kind of anomaly, and one beside it that only looks like it."""

from typing import Any

from kustos.pipeline.anomalies import Window
from tests.pipeline.anomalies.rows import START, Use

FIRST, END = 42, 56
"""Six weeks of history, two weeks to be judged."""
WINDOW = Window(START.fromordinal(START.toordinal() + FIRST), START.fromordinal(START.toordinal() + END))
NIGHT = (1, 2)


def service(name: str, team: str, net: str, days: range, **more: Any) -> list[Use]:
    """Return a service's ordinary days."""
    return [
        Use(
            day=day,
            principal=f"User:{name}",
            host=f"{net}.{day % 5}",
            resource_name=f"{team}.{topic}",
            **more,
        )
        for day in days
        for topic in ("created", "deleted")
    ]


def ordinary() -> list[Use]:
    """Return teams at work, one of them by day only, a monthly job, brokers, and one who is always denied."""
    uses = []
    every = range(END)
    for team in range(4):
        for number in range(3):
            name, net = f"team{team}-{number}", f"10.{team}.1"
            uses += service(name, f"team{team}", net, every, hours=tuple(range(24)))
    uses += service("office", "team0", "10.0.1", every, hours=tuple(range(8, 18)))
    uses += service("monthly", "team1", "10.1.1", range(4, END, 30), hours=(4,))
    broker = Use(
        day=0, principal="User:broker", host="10.9.9.9", operation="CLUSTER_ACTION", resource_type="CLUSTER",
        resource_name="kafka-cluster", rule="SuperUser", hours=tuple(range(24)), count=900,
    )  # fmt: skip
    for day in every:
        uses.append(Use(**{name: getattr(broker, name) for name in broker.__slots__} | {"day": day}))
        count = 500 + 37 * (day % 5)
        uses.append(
            Use(
                day=day,
                principal="User:team3-2",
                host="10.3.1.1",
                operation="WRITE",
                decision="DENIED",
                rule="DefaultDeny",
                resource_name="legacy.topic",
                count=count,
                hours=tuple(range(24)),
            )
        )
    return uses


def look_alikes() -> list[Use]:
    """Return a new pod, a pool that grew, a deploy with new topics, a long evening, a blip, a newcomer.

    And a person on a Saturday, one back from leave, two on call, a retry at night, and monitoring that may
    not describe all that it asks for.
    """
    new_topics = [
        Use(day=day, principal="User:team1-0", host="10.1.1.1", resource_name=f"team1.new{n}")
        for day in range(50, END)
        for n in range(20)
    ]
    denied: dict[str, Any] = {"decision": "DENIED", "rule": "DefaultDeny"}
    return [
        Use(day=45, principal="User:team0-0", host="10.0.1.200", resource_name="team0.created"),
        Use(day=46, principal="User:team0-1", host="10.0.2.9", resource_name="team0.created"),
        *new_topics,
        Use(day=47, principal="User:office", host="10.0.1.1", resource_name="team0.created", hours=(18, 19)),
        Use(
            day=47,
            principal="User:team2-0",
            host="10.2.1.1",
            resource_name="team2.created",
            count=25,
            **denied,
        ),
        *service("newcomer", "team2", "10.2.1", range(44, END)),
        *people(),
        Use(day=49, principal="User:office", host="10.0.1.1", hours=NIGHT, count=25, **denied),
        *(
            Use(
                day=day,
                principal="User:team3-0",
                host="10.3.1.1",
                resource_name=f"hidden{n}",
                **denied | {"count": 2},
            )
            for day in range(47, END)
            for n in range(20)
        ),
    ]


def people() -> list[Use]:
    """Return people who stay away on a day now and then: it tells them from programs."""
    uses = []
    for name in ("ann", "ben", "cat"):
        days = [day for day in range(END) if day % 7 < 5 and day % 9 != 4]
        if name == "ann":
            days = [day for day in days if day not in range(15, 45)]
        if name == "ben":
            days.append(47)
        for day in days:
            hours = (*range(8, 16), *(NIGHT if day == 53 and name != "ann" else ()))
            uses += [
                Use(
                    day=day,
                    principal=f"User:{name}",
                    host="10.0.1.9",
                    resource_name=f"team0.{topic}",
                    hours=hours,
                )
                for topic in ("created", "deleted")
            ]
    return uses


def anomalies() -> dict[tuple[str, str, int], list[Use]]:
    """Return for each expected finding (kind, principal, day) the uses behind it."""
    denied = {"decision": "DENIED", "rule": "DefaultDeny", "count": 90}
    operations = ("READ", "WRITE", "ALTER", "DELETE")

    def use(principal: str, **more: Any) -> Use:
        team = principal[9] if principal[9].isdigit() else "0"
        given: dict[str, Any] = {"host": f"10.{team}.1.1", "resource_name": f"team{team}.created"} | more
        return Use(principal=principal, **given)

    return {
        ("FIRST_SEEN_ACCESS", "User:team0-0", 48): [
            use("User:team0-0", day=48, resource_name="team3.created")
        ],
        ("NEW_HOST", "User:team0-1", 49): [use("User:team0-1", day=49, host="203.0.113.9")],
        ("BRUTE_FORCE", "User:team0-2", 50): [
            use("User:team0-2", day=50, operation=operation, resource_name=f"team{team}.deleted", **denied)
            for operation in operations
            for team in (1, 2, 3)
        ],
        ("MISSING_RIGHT", "User:team1-1", 50): [
            use("User:team1-1", day=50, hours=(5, 6, 7, 8), **denied),
        ],
        ("UNUSUAL_HOURS", "User:office", 51): [use("User:office", day=51, hours=NIGHT)],
        ("TOPIC_ENUMERATION", "User:team2-1", 52): [
            use(
                "User:team2-1",
                day=52,
                operation="DESCRIBE",
                resource_name=f"guess{n}",
                **denied | {"count": 2},
            )
            for n in range(40)
        ],
        ("TOPIC_ENUMERATION", "User:team3-1", 46): [
            use(
                "User:team3-1",
                day=44 + n // 5,
                operation="DESCRIBE",
                resource_name=f"slow{n}",
                **denied | {"count": 2},
            )
            for n in range(25)
        ],
        ("SUPER_USER_USE", "User:broker", 53): [
            use("User:broker", day=53, host="10.9.9.9", rule="SuperUser", resource_name="team1.created")
        ],
        ("DORMANT_WAKING", "User:sleeper", 54): [use("User:sleeper", day=54)],
    }


def sleeper() -> list[Use]:
    """Return the days of a credential before it went silent."""
    return service("sleeper", "team0", "10.0.1", range(24), hours=(9, 10))
