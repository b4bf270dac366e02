"""How an explanation looks: in words and one table for people, as a document for programs."""

from typing import Any

from kustos.acl import AclBinding
from kustos.acl.forms import texts_of
from kustos.analysis.explain import Explanation, NearMiss
from kustos.authorizer import RuleKind
from kustos.cli.acls.rendering import resource_text
from kustos.cli.output import OutputFormat, print_json, print_lines, print_table


def print_explanation(explanation: Explanation, output: OutputFormat) -> None:
    """Print it for a person, or as one document for a program."""
    if output is OutputFormat.JSON:
        print_json(explanation_document(explanation))
        return
    probe, decision = explanation.probe, explanation.decision
    verb = "may" if decision.allowed else "may not"
    resource = probe.resource_type.name.lower().replace("_", " ")
    print_lines(
        f"{decision.result.value}: {probe.principal} {verb} {probe.operation.name} "
        f"{resource} {probe.name} from {probe.host}",
        f"because {_reason(explanation)}",
    )
    _print_acls(explanation)
    _print_change(explanation)


def _print_acls(explanation: Explanation) -> None:
    roles = {each.binding: "overruled" for each in explanation.overruled}
    decision = explanation.decision
    if decision.rule.binding is not None:
        roles[decision.rule.binding] = "decides"
    also = "also allows" if decision.allowed else "also denies"
    rows = [(binding, roles.get(binding, also)) for binding in explanation.matching]
    if rows:
        print_lines("", "ACLs that match, in the order in which Kafka visits them:")
        _print_rows("says", rows)
    misses = [(miss.binding, ", ".join(_differences(miss))) for miss in explanation.near_misses]
    if misses:
        print_lines("", "ACLs for the principal on the resource that do not match:")
        _print_rows("differs in", misses)


def _print_change(explanation: Explanation) -> None:
    change = explanation.change
    if change is None:
        return
    rows = [(binding, "remove") for binding in change.remove]
    if change.add is not None:
        rows.append((change.add, "add"))
    edits = "one edit" if change.size == 1 else f"{change.size} edits"
    print_lines("", f"The smallest change that would allow it, {edits}:")
    _print_rows("edit", rows)


def _differences(miss: NearMiss) -> list[str]:
    words = (("host", miss.other_host), ("operation", miss.other_operation))
    return [word for word, differs in words if differs]


def _print_rows(first: str, rows: list[tuple[AclBinding, str]]) -> None:
    print_table(
        (first, "permission", "principal", "host", "operation", "resource"),
        [
            (
                word,
                binding.entry.permission_type.name,
                binding.entry.principal,
                binding.entry.host,
                binding.entry.operation.name,
                resource_text(binding),
            )
            for binding, word in rows
        ],
    )


def _reason(explanation: Explanation) -> str:
    rule = explanation.decision.rule
    if rule.binding is not None:
        entry = rule.binding.entry
        return (
            f"an ACL says {entry.permission_type.name} {entry.operation.name} to {entry.principal} from "
            f"host {entry.host} on {resource_text(rule.binding)}"
        )
    if rule.kind is RuleKind.SUPER_USER:
        return "the principal is a super user"
    if rule.kind is RuleKind.DEFAULT_ALLOW:
        return "no ACL names the resource, and the default then is to allow"
    if explanation.naming == 1:
        return "the only ACL on the resource does not allow it"
    if explanation.naming:
        return f"none of the {explanation.naming} ACLs on the resource allows it"
    return "no ACL names the resource, and the default is to deny"


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """Return the document that `-o json` prints."""
    probe, rule, change = explanation.probe, explanation.decision.rule, explanation.change
    by = dict.fromkeys(by for each in explanation.overruled for by in each.by)
    return {
        **probe.to_json(),
        "result": explanation.decision.result.value,
        "rule": {
            "kind": rule.kind.value,
            "acl": texts_of(rule.binding) if rule.binding is not None else None,
        },
        "matching": [texts_of(binding) for binding in explanation.matching],
        "overruled": [texts_of(each.binding) for each in explanation.overruled],
        "overruled_by": [texts_of(binding) for binding in by],
        "unmatched": [
            {"differs_in": _differences(miss), "acl": texts_of(miss.binding)}
            for miss in explanation.near_misses
        ],
        "change": None
        if change is None
        else {
            "edits": change.size,
            "remove": [texts_of(binding) for binding in change.remove],
            "add": texts_of(change.add) if change.add is not None else None,
        },
    }
