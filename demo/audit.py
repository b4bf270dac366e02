"""The last chapter: audit events, metrics, a restart, and Spark's report on all of it."""

import json
from typing import Any

from demo import clients
from demo.cast import LATE_RECORDS, ORDERS
from demo.programs import Said
from demo.stage import Call, Program, Stage

DENIED_USERS = "alice, bob, carol, mallory"
FAILED_LOGINS = 'kafka_server_socket_server_metrics_failed_authentication_total{mechanism="SCRAM-SHA-256"}'


def look_at_events(stage: Stage) -> None:
    """Count the events and show one."""
    shown: list[str] = []
    told: list[str] = []

    def do() -> str:
        events = stage.place.audit_events()
        denied = sorted({each["principal_name"] for _, each in events if each["decision"] == "DENIED"})
        shown.extend(line for line, each in events if _is_carols_denial(each))
        refused = sum(each["decision"] == "DENIED" for _, each in events)
        told.append(f"{len(events)} events so far, {refused} of them denials")
        return ", ".join(denied)

    stage.step(
        "The audit trail: who was denied something",
        Call(shown=f"reading {stage.place.audit_folder}", expected=DENIED_USERS, do=do),
    )
    for line in told:
        stage.say.note(line)
    if shown:
        stage.say.note("one of them, the DENY that overruled:")
        stage.say.json_line(shown[0])


def _is_carols_denial(event: dict[str, Any]) -> bool:
    is_carols: bool = event["principal_name"] == "carol"
    return is_carols and bool(event["rule"]["permission_type"] == "DENY")


def look_at_metrics(stage: Stage) -> None:
    """Show what the metrics page says of the failed logins."""
    place = stage.place
    lines: list[str] = []

    def do() -> str:
        lines.append(place.metric(FAILED_LOGINS))
        count = float(lines[0].rpartition(" ")[2])
        return "two or more" if count >= 2 else f"{count:.0f}"

    stage.step(
        "The metrics page counted the failed logins (clients may try again)",
        Call(shown=f"GET {place.http}/metrics", expected="two or more", do=do),
    )
    for line in lines:
        stage.say.exact(line)


def restart(stage: Stage) -> None:
    """Stop and start kustos: users and ACLs are on disk, and the audit file is closed."""
    place = stage.place
    stage.step(
        "A restart: users and ACLs are in the metadata log, audit files are closed",
        Call(shown="SIGTERM to kustos", expected="exit code 0", do=place.stop_kustos),
    )
    stage.say.blank()
    stage.play(
        Call(
            shown=f"kustos serve {place.properties_file}",
            expected="/ready answers 200",
            do=place.start_kustos,
        ),
        vital=True,
    )
    stage.say.blank()
    stage.play(
        Call(
            shown="confluent-kafka as alice: 1 record to orders",
            expected="1 acknowledged",
            do=lambda: clients.produce(place.login("alice"), ORDERS, LATE_RECORDS),
        )
    )


def report(stage: Stage) -> None:
    """Run the Spark job over the closed audit files and compare its figures with a count of ours."""
    place = stage.place
    closed = place.closed_audit_events()
    denied = sum(event["decision"] == "DENIED" and not _is_probe(event) for event in closed)
    words = ["kustos", "pipeline", "report", "--audit", str(place.audit_folder)]
    words += ["--out", str(place.report_folder), "--output", "json"]
    stage.step("PySpark studies the audit files (a Spark start takes some seconds)")
    stage.say.command(words)
    with stage.say.busy("Spark starts, reads, counts and draws"):
        outcome = stage.outcome_of(
            Program(words=words, expected=_figures(len(closed), denied, 0), heard=_told)
        )
    stage.say.outcome(outcome)
    stage.say.exact(f"report: {place.report_page}")


def _is_probe(event: dict[str, Any]) -> bool:
    """Return whether a denial refused nothing, since another question decided."""
    is_named = event["resource_name"] is not None
    return event["access"] == "ACCESS" and not event["log_if_denied"] and is_named


def _told(said: Said) -> str:
    if said.exit_code:
        return said.outcome
    summary = json.loads(said.stdout)
    return _figures(summary["events"], summary["denied"], summary["quarantined"])


def _figures(events: int, denied: int, quarantined: int) -> str:
    return f"{events} events, {denied} of them denied, {quarantined} lines not understood"
