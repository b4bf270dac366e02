"""Why an action is allowed or denied: the authorizer's own verdict, and its verdict on each ACL alone.

An ACL matches exactly when it decides on its own: so each one is given to an authorizer that holds
nothing else, and no second statement of the matching rules is needed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any
from uuid import UUID

from kustos.acl import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.authorizer import Decision, InvalidActionError, RuleKind, StandardAuthorizer, parse_super_users
from kustos.cli.acls.mapping import sorted_bindings
from kustos.cli.acls.rendering import binding_document, resource_text
from kustos.cli.failures import usage_error
from kustos.cli.output import OutputFormat, print_json, print_lines, print_table


@dataclass(frozen=True, slots=True)
class Question:
    """Who asks to do what on which resource; `host` in any textual form of an address."""

    principal: KafkaPrincipal
    host: str
    operation: AclOperation
    resource_type: ResourceType
    resource_name: str

    def asked_filter(self) -> AclBindingFilter:
        """Return the filter for every ACL that governs the resource, for whomever."""
        return AclBindingFilter(
            ResourcePatternFilter(self.resource_type, self.resource_name, PatternType.MATCH)
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision and how the ACLs of the resource stand to it.

    `overruled`: matching ACLs that the decision goes against. `unmatched`: ACLs on the resource for
    this principal that another host or operation keeps from matching.
    """

    question: Question
    decision: Decision
    matching: tuple[AclBinding, ...]
    overruled: tuple[AclBinding, ...]
    unmatched: tuple[AclBinding, ...]


def load_acls(
    question: Question, bootstrap_server: str | None, metadata_dir: Path | None, command_config: Path | None
) -> list[AclBinding]:
    """Return the ACLs that govern the resource, from a cluster or from a metadata directory."""
    if (bootstrap_server is None) == (metadata_dir is None):
        raise usage_error("say where the ACLs are: `--bootstrap-server` or `--metadata-dir`, one of them")
    asked = question.asked_filter()
    if metadata_dir is not None:
        from kustos.metadata.format import describe_directory

        image = describe_directory(metadata_dir).image
        return [binding for binding in image.acls.values() if asked.matches(binding)]
    from kustos.cli.session import ask_cluster

    return ask_cluster(
        bootstrap_server or "", command_config, lambda admin: admin.describe_acls(asked), "reading ACLs"
    )


def explain_action(
    question: Question, bindings: Iterable[AclBinding], *, super_users: str, allow_everyone: bool
) -> Explanation:
    """Return the decision with every ACL that speaks to it; raise a usage error for no question."""
    governing = sorted_bindings(bindings)
    authorizer = StandardAuthorizer(
        super_users=parse_super_users(super_users), allow_everyone_if_no_acl_found=allow_everyone
    )
    authorizer.load_snapshot((UUID(int=number), binding) for number, binding in enumerate(governing))
    authorizer.complete_initial_load()
    try:
        decision = _decide(authorizer, question)
    except InvalidActionError as error:
        raise usage_error(str(error)) from error
    matching = tuple(binding for binding in governing if _matches_alone(question, binding))
    opposite = AclPermissionType.DENY if decision.allowed else AclPermissionType.ALLOW
    return Explanation(
        question,
        decision,
        matching,
        tuple(binding for binding in matching if binding.entry.permission_type is opposite),
        tuple(b for b in governing if b not in matching and _is_near(question, b)),
    )


def _decide(authorizer: StandardAuthorizer, question: Question) -> Decision:
    session = authorizer.session(question.principal, java_host(question.host))
    return session.decide(question.operation, question.resource_type, question.resource_name)


def _matches_alone(question: Question, binding: AclBinding) -> bool:
    alone = StandardAuthorizer()
    alone.load_snapshot([(UUID(int=0), binding)])
    alone.complete_initial_load()
    return _decide(alone, question).rule.kind is RuleKind.MATCHING_ACL


def _is_near(question: Question, binding: AclBinding) -> bool:
    return binding.entry.principal in {str(question.principal), "User:*"}


def java_host(text: str) -> str:
    """Return an address as Java's `getHostAddress()` writes it, the form that ACLs are compared in."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        raise usage_error(f"`{text}` is no IP address; ACLs know no host names, give an address") from None
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    words = address.packed
    joined = ":".join(f"{words[at] << 8 | words[at + 1]:x}" for at in range(0, 16, 2))
    return f"{joined}%{address.scope_id}" if address.scope_id else joined


def print_explanation(explanation: Explanation, output: OutputFormat) -> None:
    """Print it for a person, or as one document for a program."""
    if output is OutputFormat.JSON:
        print_json(explanation_document(explanation))
        return
    question, decision = explanation.question, explanation.decision
    verb = "may" if decision.allowed else "may not"
    resource = question.resource_type.name.lower().replace("_", " ")
    print_lines(
        f"{decision.result.value}: {question.principal} {verb} {question.operation.name} "
        f"{resource} {question.resource_name} from {question.host}",
        f"because {_reason(decision)}",
    )
    for title, bindings in (
        ("ACLs that match", explanation.matching),
        ("of these overruled", explanation.overruled),
        ("ACLs for the principal that do not match (other host or operation)", explanation.unmatched),
    ):
        if bindings:
            print_lines("", f"{title}:")
            _print_rows(bindings)


def _print_rows(bindings: Sequence[AclBinding]) -> None:
    print_table(
        ("permission", "principal", "host", "operation", "resource"),
        [
            (b.entry.permission_type.name, b.entry.principal, b.entry.host, b.entry.operation.name, text)
            for b, text in ((b, resource_text(b)) for b in bindings)
        ],
    )


def _reason(decision: Decision) -> str:
    binding = decision.rule.binding
    if binding is not None:
        entry = binding.entry
        return (
            f"an ACL says {entry.permission_type.name} {entry.operation.name} to {entry.principal} from "
            f"host {entry.host} on {resource_text(binding)}"
        )
    return {
        RuleKind.SUPER_USER: "the principal is a super user",
        RuleKind.DEFAULT_ALLOW: "no ACL names the resource, and the default then is to allow",
        RuleKind.DEFAULT_DENY: "no ACL allows it, and the default is to deny",
    }[decision.rule.kind]


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """Return the document that `-o json` prints."""
    question, rule = explanation.question, explanation.decision.rule
    return {
        "principal": str(question.principal),
        "host": question.host,
        "operation": question.operation.name,
        "resource_type": question.resource_type.name,
        "resource_name": question.resource_name,
        "result": explanation.decision.result.value,
        "rule": {
            "kind": rule.kind.value,
            "acl": binding_document(rule.binding) if rule.binding is not None else None,
        },
        "matching": [binding_document(binding) for binding in explanation.matching],
        "overruled": [binding_document(binding) for binding in explanation.overruled],
        "unmatched": [binding_document(binding) for binding in explanation.unmatched],
    }
