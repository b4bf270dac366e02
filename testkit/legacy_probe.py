"""The legacy authorizer of Kafka 2.8, on its ZooKeeper, asked over lines; and ours, asked the same."""

import asyncio
import base64
import hashlib
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.authorizer import AclDeleteResult, AuthorizableRequestContext
from kustos.authorizer.spi.values import AuthorizerError
from kustos.legacy import (
    Acl,
    AuthorizerWrapper,
    MemoryAclStore,
    Resource,
    Session,
    SimpleAclAuthorizer,
    operation_of,
    read_acls,
    resource_of,
    write_acls,
)
from testkit.jars import LEGACY_KAFKA
from testkit.kafka import java
from testkit.kafka.compiled import compiled

Command = tuple[str | None, ...]
"""A verb and its fields."""

PROBE = Path(__file__).with_name("LegacyProbe.java")
ANSWER_TIMEOUT_S = 240


def digest(answers: Iterable[str]) -> str:
    """Return what stands for answers where they are too many to be kept; why of an error is left out."""
    short = (answer.split(" ")[0] if answer.startswith("error") else answer for answer in answers)
    return hashlib.sha256("\n".join(short).encode()).hexdigest()


def encoded(field: str | None) -> str:
    if field is None:
        return "-"
    return base64.b64encode(field.encode()).decode() if field else "."


def decoded(word: str) -> str:
    return "" if word == "." else base64.b64decode(word).decode()


def theirs(commands: Iterable[Command], folder: Path) -> tuple[list[str], list[str]]:
    """Return one answer a command, and the lines of the authorizer's log."""
    lines = [" ".join([verb or "", *map(encoded, fields)]) for verb, *fields in commands]
    log = folder / "authorizer.log"
    logging = "org.slf4j.simpleLogger"
    asked = subprocess.run(
        [
            java.java(), "-Xmx256m", *java.FLAGS,
            f"-D{logging}.defaultLogLevel=off", f"-D{logging}.log.kafka.authorizer.logger=debug",
            f"-D{logging}.logFile={log}", f"-D{logging}.showThreadName=false",
            "-cp", f"{LEGACY_KAFKA.classpath}:{compiled(PROBE, [LEGACY_KAFKA])}", PROBE.stem,
            str(folder / "zookeeper"),
        ],
        input="\n".join(lines) + "\n", capture_output=True, text=True, check=True, timeout=ANSWER_TIMEOUT_S,
    )  # fmt: skip
    told = [line for line in log.read_text().splitlines() if " - Principal = " in line]
    return asked.stdout.splitlines(), told


def shown(acls: Iterable[tuple[Resource, Acl]]) -> str:
    return encoded("\n".join(sorted(f"{resource} {acl}" for resource, acl in acls)))


Fields = tuple[str | None, ...]
NOBODY = AuthorizableRequestContext(KafkaPrincipal("User", "nobody"), "10.0.0.9")


def bindings_of(fields: Fields) -> list[AclBinding]:
    return [
        AclBinding(
            ResourcePattern(ResourceType[kind or ""], name or "", PatternType[pattern or ""]),
            AccessControlEntry(
                principal or "",
                host or "",
                AclOperation[operation or ""],
                AclPermissionType[permission or ""],
            ),
        )
        for kind, name, pattern, principal, host, operation, permission in sevens(fields)
    ]


def filters_of(fields: Fields) -> list[AclBindingFilter]:
    return [
        AclBindingFilter(
            ResourcePatternFilter(ResourceType[kind or ""], name, PatternType[pattern or ""]),
            AccessControlEntryFilter(
                principal, host, AclOperation[operation or ""], AclPermissionType[permission or ""]
            ),
        )
        for kind, name, pattern, principal, host, operation, permission in sevens(fields)
    ]


def sevens(fields: Fields) -> list[Fields]:
    return [fields[start : start + 7] for start in range(0, len(fields), 7)]


def texts(bindings: Iterable[AclBinding]) -> str:
    return encoded("\n".join(sorted(" ".join(map(str, each_of(binding))) for binding in bindings)))


def each_of(binding: AclBinding) -> tuple[object, ...]:
    pattern, entry = binding.pattern, binding.entry
    return (
        pattern.resource_type, pattern.name, pattern.pattern_type,
        entry.principal, entry.host, entry.operation, entry.permission_type,
    )  # fmt: skip


def deleted_text(result: AclDeleteResult) -> str:
    if result.exception is not None:
        return "no"
    return texts(each.acl_binding for each in result.acl_binding_delete_results)


class Ours:
    """Answers the same commands."""

    def __init__(self) -> None:
        self.store = MemoryAclStore()
        self.authorizer = SimpleAclAuthorizer(self.store)

    def answer(self, command: Command) -> str:
        verb, *fields = command
        try:
            answered = getattr(self, f"answer_{verb}")(*fields)
        except (AuthorizerError, ValueError):
            return "error"
        return str({None: "ok", True: "true", False: "false"}.get(answered, answered))

    def answers(self, commands: Sequence[Command]) -> list[str]:
        return [self.answer(command) for command in commands]

    def answer_open(self, super_users: str | None, everyone: str | None) -> None:
        settings = {"super.users": super_users, "allow.everyone.if.no.acl.found": everyone}
        fresh = SimpleAclAuthorizer(self.store)
        fresh.configure({key: value for key, value in settings.items() if value is not None})
        self.authorizer = fresh

    def answer_clear(self) -> None:
        for resource in self.authorizer.get_acls():
            self.authorizer.remove_acls(resource)

    def answer_add(self, json: str, resource: str) -> None:
        self.authorizer.add_acls(read_acls(json), Resource.parse(resource))

    def answer_remove(self, json: str, resource: str) -> bool:
        return self.authorizer.remove_acls(read_acls(json), Resource.parse(resource))

    def answer_drop(self, resource: str) -> bool:
        return self.authorizer.remove_acls(Resource.parse(resource))

    def answer_ask(self, principal: str, host: str, operation: str, resource: str) -> bool:
        session = Session(KafkaPrincipal.parse(principal), host)
        return self.authorizer.authorize(session, operation_of(operation), Resource.parse(resource))

    def answer_node(self, path: str) -> str:
        return encoded(write_acls(self.authorizer.get_acls(resource_of(path))))

    def answer_acls(self) -> str:
        every = self.authorizer.get_acls()
        return shown((resource, acl) for resource, acls in every.items() for acl in acls)

    def answer_of(self, principal: str) -> str:
        found = self.authorizer.get_acls(KafkaPrincipal.parse(principal))
        return shown((resource, acl) for resource, acls in found.items() for acl in acls)

    def answer_at(self, resource: str) -> str:
        return encoded("\n".join(sorted(map(str, self.authorizer.get_acls(Resource.parse(resource))))))

    def answer_create(self, *fields: str | None) -> str:
        wrapper = AuthorizerWrapper(self.authorizer)
        results = asyncio.run(wrapper.create_acls(NOBODY, bindings_of(fields)))
        return " ".join("yes" if each.exception is None else "no" for each in results)

    def answer_delete(self, *fields: str | None) -> str:
        wrapper = AuthorizerWrapper(self.authorizer)
        return " ".join(map(deleted_text, asyncio.run(wrapper.delete_acls(NOBODY, filters_of(fields)))))

    def answer_list(self, *fields: str | None) -> str:
        return texts(AuthorizerWrapper(self.authorizer).acls(filters_of(fields)[0]))

    def answer_bytype(self, principal: str, host: str, operation: str, kind: str) -> str:
        context = AuthorizableRequestContext(KafkaPrincipal.parse(principal), host)
        wrapper = AuthorizerWrapper(self.authorizer)
        return wrapper.authorize_by_resource_type(context, AclOperation[operation], ResourceType[kind]).value
