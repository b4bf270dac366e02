"""Output of an explanation: words and tables for people, a document for programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kustos.acl import AclBinding
from kustos.acl.forms import texts_of
from kustos.analysis import ExplainScope, Part, ScopeExplanation, SmallestChange, is_allow, meets
from kustos.authorizer import RuleKind
from kustos.authorizer.index import DECIDES, binding_mask
from kustos.cli.acls.commands import Command, add_command, refusal_of, remove_command
from kustos.cli.acls.output import resource_text
from kustos.cli.broker_settings import BrokerSettings
from kustos.cli.one_resource import likely_prefix
from kustos.cli.output import OutputFormat, print_document, print_lines, print_paragraph, print_table

PARTS_SHOWN_MAX: Final = 8
"""Parts that the text describes; more would not be read, and the document has all of them."""

ACLS_SHOWN_MAX: Final = 40
"""Rows of a table of ACLs, one screen; the document has all of them."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The smallest change, with its commands if they express all of it; `refusal`: why there is none."""

    change: SmallestChange | None = None
    commands: tuple[Command, ...] = ()
    refusal: str | None = None


def proposal_of(explanation: ScopeExplanation, where: Command) -> Proposal:
    """Return the change to propose: only one that `acls add` would make."""
    change = explanation.change
    if change is None:
        return Proposal()
    if likely_prefix(explanation.scope.pattern) is not None:
        return Proposal(refusal="an ACL would name only the resource whose name ends in `*`")
    if change.add is not None:
        refusal = refusal_of(change.add)
        if refusal is not None:
            return Proposal(refusal=refusal)
    commands = [remove_command(binding, where) for binding in change.remove]
    commands += [] if change.add is None else [add_command(change.add, where)]
    expressible = [command for command in commands if command is not None]
    return Proposal(change, tuple(expressible) if len(expressible) == len(commands) else ())


def print_explanation(
    explanation: ScopeExplanation, proposal: Proposal, settings: BrokerSettings, output: OutputFormat
) -> None:
    """Print the explanation for a person, or as one document for a program."""
    if output.is_document:
        document = {**explanation_document(explanation, proposal), "settings": settings.to_json()}
        print_document(document, output)
        return
    print_paragraph(_headline(explanation))
    if len(explanation.parts) == 1:
        print_paragraph(f"because {_reason(explanation, explanation.parts[0])}")
    else:
        _print_parts(explanation)
    _print_acls(explanation)
    _print_proposal(proposal, explanation.scope)


def _headline(explanation: ScopeExplanation) -> str:
    scope = explanation.scope
    what = f"{scope.operation.name} {_names(scope)}"
    who = f"{scope.principal} in {', '.join(scope.client.group_texts)}" if scope.groups else scope.principal
    if explanation.is_denied:
        return f"DENIED: {who} may not {what} from {scope.host or 'anywhere'}"
    if explanation.is_allowed:
        return f"ALLOWED: {who} may {what} from {scope.host or 'anywhere'}"
    hosts = explanation.allowed_hosts
    if scope.is_one_name:
        return f"PARTLY: {who} may {what} from {hosts.text()}, denied elsewhere"
    return f"PARTLY: {who} may {what} in part"


def _names(scope: ExplainScope) -> str:
    kind = scope.pattern.resource_type
    if scope.is_one_name:
        return f"{kind.name.lower().replace('_', ' ')} {scope.pattern.name}"
    return scope.names.text(kind)


def _print_parts(explanation: ScopeExplanation) -> None:
    for part in explanation.parts[:PARTS_SHOWN_MAX]:
        result = part.decision.result.value.lower()
        on = "" if explanation.scope.is_one_name else f" on {part.names.text(part.witness.resource_type)}"
        print_paragraph(
            f"from {part.hosts.text()}{on}: {_reason(explanation, part)}",
            indent="           ",
            first=f"  {result:7}  ",
        )
    more = len(explanation.parts) - PARTS_SHOWN_MAX
    if more > 0:
        print_lines(f"  and {more} more parts, see `-o json`")


def _print_acls(explanation: ScopeExplanation) -> None:
    deciding = {part.decision.rule.binding for part in explanation.parts}
    rows = []
    for binding in explanation.matching:
        word = "allows" if is_allow(binding) else "denies"
        if explanation.overruled is not None:
            is_overruled = binding in explanation.overruled
            if binding in deciding:
                word = "partly" if is_overruled else "decides"
            else:
                word = "overruled" if is_overruled else f"also {word}"
        rows.append((binding, word))
    if rows:
        order = ", in the order in which Kafka visits them" if explanation.scope.is_one_name else ""
        print_lines("", f"ACLs that match{order}:")
        _print_rows("says", rows)
    misses = [(each, ", ".join(_differences(each, explanation.scope))) for each in explanation.unmatched]
    if misses:
        print_lines("", "ACLs for the principal on the resource that do not match:")
        _print_rows("differs in", misses)


def _print_proposal(proposal: Proposal, scope: ExplainScope) -> None:
    if proposal.refusal is not None:
        print_lines("")
        print_paragraph(f"No change is proposed: {proposal.refusal}")
    change = proposal.change
    if change is None:
        return
    rows = [(binding, "remove") for binding in change.remove]
    if change.add is not None:
        rows.append((change.add, "add"))
    edits = "one edit" if change.size == 1 else f"{change.size} edits"
    everywhere = " from anywhere" if scope.host is None else ""
    print_lines("", f"The smallest change that would allow it{everywhere}, {edits}:")
    _print_rows("edit", rows)
    if proposal.commands:
        print_lines("")
    for command in proposal.commands[:ACLS_SHOWN_MAX]:
        print_lines(*command)


def _differences(binding: AclBinding, scope: ExplainScope) -> list[str]:
    words = {
        "host": not meets(binding, scope.hosts),
        "operation": not binding_mask(binding) & DECIDES[scope.operation],
    }
    return [word for word, differs in words.items() if differs]


def _print_rows(first: str, rows: Sequence[tuple[AclBinding, str]]) -> None:
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
            for binding, word in rows[:ACLS_SHOWN_MAX]
        ],
    )
    if len(rows) > ACLS_SHOWN_MAX:
        print_lines(f"and {len(rows) - ACLS_SHOWN_MAX} more, see `-o json`")


def _reason(explanation: ScopeExplanation, part: Part) -> str:
    scope, rule = explanation.scope, part.decision.rule
    if rule.kind is RuleKind.SUPER_USER:
        return "the principal is a super user"
    example = "" if scope.is_one_name else f"for example on {part.witness.name} "
    if rule.binding is not None:
        entry = rule.binding.entry
        return (
            f"{example}an ACL says {entry.permission_type.name} {entry.operation.name} to {entry.principal} "
            f"from host {entry.host} on {resource_text(rule.binding)}"
        )
    if rule.kind is RuleKind.DEFAULT_ALLOW:
        return f"{example}no ACL names the resource, and the default then is to allow"
    return _nothing_allows(explanation)


def _nothing_allows(explanation: ScopeExplanation) -> str:
    if not explanation.naming:
        return "no ACL names the resource, and the default is to deny"
    if not explanation.scope.is_one_name:
        return "no ACL allows it"
    if explanation.naming == 1:
        return "the only ACL on the resource does not allow it"
    return f"none of the {explanation.naming} ACLs on the resource allows it"


def explanation_document(explanation: ScopeExplanation, proposal: Proposal) -> dict[str, Any]:
    """Return the document that `-o json` prints, without the settings."""
    scope, parts = explanation.scope, explanation.parts
    result = "ALLOWED" if explanation.is_allowed else "DENIED" if explanation.is_denied else "PARTLY"
    overruled, change = explanation.overruled, proposal.change
    denying = [binding for binding in explanation.matching if not is_allow(binding)]
    by = [binding for binding in denying if overruled and binding not in overruled]
    return {
        "principal": scope.principal,
        "groups": list(scope.groups),
        "host": scope.host,
        "operation": scope.operation.name,
        "resource_type": scope.pattern.resource_type.name,
        "resource_name": scope.pattern.name,
        "pattern_type": scope.pattern.pattern_type.name,
        "likely_prefix": likely_prefix(scope.pattern),
        "result": result,
        "rule": _rule(parts[0]) if len(parts) == 1 else None,
        "parts": [
            {
                "result": part.decision.result.value,
                "hosts": part.hosts.to_json(),
                "names": part.names.to_json(),
                "rule": _rule(part),
                "witness": part.witness.to_json(),
            }
            for part in parts
        ],
        "matching": [texts_of(binding) for binding in explanation.matching],
        "overruled": None if overruled is None else [texts_of(binding) for binding in overruled],
        "overruled_by": [texts_of(binding) for binding in by],
        "unmatched": [
            {"differs_in": _differences(binding, scope), "acl": texts_of(binding)}
            for binding in explanation.unmatched
        ],
        "change": None
        if change is None
        else {
            "edits": change.size,
            "remove": [texts_of(binding) for binding in change.remove],
            "add": texts_of(change.add) if change.add is not None else None,
            "commands": ["\n".join(command) for command in proposal.commands],
        },
        "no_change": proposal.refusal,
    }


def _rule(part: Part) -> dict[str, Any]:
    rule = part.decision.rule
    return {
        "kind": rule.kind.value,
        "acl": texts_of(rule.binding) if rule.binding is not None else None,
    }
