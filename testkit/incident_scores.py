"""Scores the detectors on the stories of `testkit.incidents`: `python -m testkit.incident_scores`.

`--seed N` (may be repeated) takes other stories, `--explain` names each miss and each false finding. The
stories know nothing of kinds of findings, so this says which of them answer to what happened. A finding about
the victim of an attack, on its days or the day after, is right whatever its kind, but for one that calls it a
mistake; all others are false, also those about what looks odd.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from testkit.incidents import Incident, Story, rollup_of, security_of, told

STORIES_AT_ONCE: Final = 2
"""For so few rows planning takes longer than the work, and each thread plans its own."""
SMALL: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",  # planning again after each stage costs more than it saves
    "spark.sql.codegen.wholeStage": "false",  # so does compiling
}

SEEDS: Final = tuple(range(101, 107))
"""First told when the detectors were done; they were developed on 1 to 8."""
MISTAKE: Final = "MISSING_RIGHT"
ANSWERS: Final[Mapping[str, tuple[str, ...]]] = {
    "sprayed passwords": ("PASSWORD_SPRAYING",),
    "guessed a password": ("PASSWORD_GUESSING", "LOGIN_AFTER_FAILURES"),
    "guessed a password slowly": ("PASSWORD_GUESSING", "LOGIN_AFTER_FAILURES"),
    "a stolen credential": ("NEW_HOST",),
    "swept over names": ("SWEEP", "TOPIC_ENUMERATION", "BRUTE_FORCE"),
    "read out at once": ("TOPIC_ENUMERATION", "FIRST_SEEN_ACCESS"),
    "read out slowly": ("TOPIC_ENUMERATION", "FIRST_SEEN_ACCESS"),
    "looked around slowly": ("TOPIC_ENUMERATION", "FIRST_SEEN_ACCESS"),
    "a woken account": ("DORMANT_WAKING",),
    "probed its rights": ("PRIVILEGE_PROBING", "BRUTE_FORCE", "SWEEP"),
    "abused the brokers' credential": ("SUPER_USER_USE",),
    "a right that is missing": (MISTAKE,),
    "ACLs that were lost": (MISTAKE,),
}
"""The kinds that name what happened; an incident that is not here should have no finding."""
UNASKED: Final = frozenset({"ACLs that were lost"})
"""Need not be found, for they may be short."""


class Seen(NamedTuple):
    """A finding as far as it is scored; `day` counts from the story's first one."""

    kind: str
    who: str | None
    host: str | None
    day: int


@dataclass(slots=True)
class Score:
    """Incidents that were found and missed, by what happened; findings right and false, by kind."""

    found: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    false: Counter[str] = field(default_factory=Counter)
    causes: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: "Score") -> None:
        """Add another story's score."""
        for name in self.__slots__:
            getattr(self, name).update(getattr(other, name))

    def recall(self) -> float:
        """Return the share of incidents that were found, 1 without any."""
        found, missed = self.found.total(), self.missed.total()
        return found / (found + missed) if found + missed else 1.0

    def precision(self) -> float:
        """Return the share of findings that are right, 1 without any."""
        right, false = self.right.total(), self.false.total()
        return right / (right + false) if right + false else 1.0

    def tables(self) -> str:
        """Return recall by what happened, precision and recall by kind, and false findings, as Markdown.

        An incident counts to the kind that names it best, the first one of its `ANSWERS`.
        """
        lines = ["| what happened | incidents | found | recall |", "|---|---|---|---|"]
        for what in sorted(self.found | self.missed):
            found, missed = self.found[what], self.missed[what]
            lines.append(f"| {what} | {found + missed} | {found} | {found / (found + missed):.2f} |")
        total = self.found.total() + self.missed.total()
        lines.append(f"| **all** | {total} | {self.found.total()} | {self.recall():.2f} |")
        lines += ["", "| kind | findings | right | precision | incidents | found | recall |"]
        lines.append("|---|---|---|---|---|---|---|")
        best = {what: kinds[0] for what, kinds in ANSWERS.items()}
        for kind in sorted({*self.right, *self.false, *(best[what] for what in self.found | self.missed)}):
            right, false = self.right[kind], self.false[kind]
            found = sum(count for what, count in self.found.items() if best[what] == kind)
            missed = sum(count for what, count in self.missed.items() if best[what] == kind)
            lines.append(f"| `{kind}` | {_shares(right, false)} | {_shares(found, missed)} |")
        all_findings = _shares(self.right.total(), self.false.total())
        all_incidents = _shares(self.found.total(), self.missed.total())
        lines.append(f"| **all** | {all_findings} | {all_incidents} |")
        lines += ["", "| false finding | cause | count |", "|---|---|---|"]
        lines += [f"| `{kind}` | {cause} | {n} |" for (kind, cause), n in self.causes.most_common()]
        return "\n".join(lines)


def _shares(good: int, bad: int) -> str:
    """Return cells of a table: all, the good ones, and their share."""
    return f"{good + bad} | {good} | {good / (good + bad):.2f}" if good + bad else "0 | 0 | "


def is_about(incident: Incident, seen: Seen) -> bool:
    """Return whether a finding is about an incident, whatever it calls it."""
    is_near = any(seen.day in (day, day + 1) for day in incident.days)
    is_his = seen.who == incident.who if incident.who is not None else seen.host == incident.host
    return is_near and is_his


def is_right(incident: Incident, seen: Seen) -> bool:
    """Return whether a finding about an incident says what it was: an attack, or a mistake."""
    if incident.is_attack:
        return seen.kind != MISTAKE
    return seen.kind in ANSWERS.get(incident.what, ())


def score_of(incidents: Iterable[Incident], findings: Iterable[Seen], *, is_explained: bool = False) -> Score:
    """Return the score of one story; several findings of a kind and day about one principal count once."""
    score, incidents, findings = Score(), list(incidents), sorted(set(findings), key=str)
    for incident in incidents:
        answers = ANSWERS.get(incident.what)
        if answers is None or incident.what in UNASKED:
            continue
        is_found = any(seen.kind in answers and is_about(incident, seen) for seen in findings)
        (score.found if is_found else score.missed)[incident.what] += 1
        if is_explained and not is_found:
            print("missed", incident.what, incident.who, sorted(incident.days), incident.host)
    for seen in findings:
        about = [incident for incident in incidents if is_about(incident, seen)]
        if any(is_right(incident, seen) for incident in about):
            score.right[seen.kind] += 1
            continue
        score.false[seen.kind] += 1
        score.causes[seen.kind, about[0].what if about else "an ordinary day"] += 1
        if is_explained:
            print("false ", *seen, "|", *(incident.what for incident in about))
    return score


def searched(spark: Any, story: Story, folder: Path, seed: int) -> list[Seen]:
    """Return the detectors' findings in a story."""
    import pyarrow.parquet
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import DateType, StructField, StructType

    from kustos.pipeline.anomalies import Window, find_anomalies, kept
    from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA, SECURITY_EVENTS_SCHEMA

    security = StructType([*SECURITY_EVENTS_SCHEMA.fields, StructField("day", DateType())])
    frames = []
    for name, rows, schema in (
        ("rollup", rollup_of(story.ledger, story.start), AUDIT_ROLLUP_SCHEMA),
        ("security", security_of(story.ledger, story.start), security),
    ):
        path = folder / f"{name}-{seed}.parquet"
        table = pyarrow.Table.from_pylist(list(rows), schema=to_arrow_schema(schema, timezone="UTC"))
        pyarrow.parquet.write_table(table, path, coerce_timestamps="us")
        frames.append(spark.read.parquet(str(path)))
    found = find_anomalies(
        spark,
        window=Window(story.judged, story.end),
        rollup=frames[0],
        security_events=frames[1],
        keep=kept,
    ).collect()
    return [
        Seen(row["kind"], row["principal"], json.loads(row["evidence"]).get("host"), story.day(row["day"]))
        for row in found
    ]


def run(seeds: Iterable[int], *, is_explained: bool) -> Score:
    """Return the score over the stories of these seeds, and print each story's."""
    from kustos.pipeline.session import open_session

    total, seeds = Score(), tuple(seeds)
    with TemporaryDirectory() as folder, open_session("stories", master="local[2]", settings=SMALL) as spark:

        def one(seed: int) -> tuple[Story, list[Seen]]:
            story = told(seed)
            return story, searched(spark, story, Path(folder), seed)

        with ThreadPoolExecutor(STORIES_AT_ONCE) as pool:
            for seed, (story, found) in zip(seeds, pool.map(one, seeds), strict=True):
                score = score_of(story.ledger.incidents, found, is_explained=is_explained)
                total.add(score)
                figures = f"precision {score.precision():.2f}, recall {score.recall():.2f}"
                print(f"story {seed}: {len(story.ledger.incidents)} incidents, {figures}", flush=True)
    return total


def main() -> None:
    """Print the score's tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--explain", action="store_true", help="name each miss and each false finding")
    parser.add_argument("--seed", type=int, action="append", help="this story (may be repeated)")
    chosen = parser.parse_args()
    print(f"\n{run(chosen.seed or SEEDS, is_explained=chosen.explain).tables()}")


if __name__ == "__main__":
    main()
