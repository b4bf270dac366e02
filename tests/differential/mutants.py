# ruff: noqa: E501 (a mutant reads best on one line)
"""Authorizers with one seeded fault each: what the comparison must be able to see.

A mutant is a replacement in the source of one module, so it is the real code with one thing wrong. The
replaced text must occur exactly once: a mutant that no longer applies fails its test.
"""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from kustos.authorizer import StandardAuthorizer

MODULES = ("cells", "prefixes", "coverage", "index", "by_type", "session", "standard")
"""In the order in which they import each other."""


@dataclass(frozen=True, slots=True)
class Mutant:
    fault: str
    module: str
    old: str
    new: str


MUTANTS = [
    Mutant("an ALLOW implies nothing", "cells", "0 if implied is None else ALLOWS[implied]", "0"),
    Mutant(
        "a DENY implies",
        "cells",
        "operation: written_mask(operation) << _DENY_SHIFT",
        "operation: _allow_mask(operation) << _DENY_SHIFT",
    ),
    Mutant("ALL is an operation like others", "cells", "return EVERY_ALLOW if operation is", "return 4 if operation is"),
    Mutant("hosts are ignored", "cells", "0 if entry.host == WILDCARD else HOSTED", "0"),
    Mutant("entries with a host match nobody", "cells", "if host_matches(binding.entry.host, host)]", "if 0]"),
    Mutant(
        "ranges are ignored",
        "cells",
        "if host_matches(binding.entry.host, host)]",
        'if binding.entry.host in ("*", host)]',
    ),
    Mutant("the first ALLOW is named", "cells", "return matching[-1] if bit", "return matching[0] if bit"),
    Mutant("the last DENY is named", "cells", "else matching[0]", "else matching[-1]"),
    Mutant("the longest ALLOW prefix is named", "cells", "cell = having[-1] if bit", "cell = having[0] if bit"),
    Mutant("the shortest DENY prefix is named", "cells", "else having[0]", "else having[-1]"),
    Mutant("shorter prefixes are ignored", "cells", "else self.own_mask | self.parent.mask", "else self.own_mask"),
    Mutant("made decisions outlive their ACL", "cells", "self.sole = self._decisions = self._views = None", "pass"),
    Mutant("entries are in the order of arrival", "cells", "return bisect_left(self.bindings, entry_order(binding), key=entry_order)", "return self.bindings.index(binding) if binding in self.bindings else len(self.bindings)"),
    Mutant("a prefix is a literal, by name", "index", "not name.startswith(prefix.name)", "name != prefix.name"),
    Mutant("only the nearest prefix is tried, by name", "index", "                prefix = prefix.parent", "                prefix = None"),
    Mutant("a new entry is not seen", "cells", "        self._grow(binding_mask(binding))\n", ""),
    Mutant("the only binding speaks for all", "cells", "return self.parent is None and len(self.bindings) == 1", "return len(self.bindings) == 1"),
    Mutant("a prefix is a literal", "prefixes", "not name.startswith(cell.name)", "name != cell.name"),
    Mutant("only the nearest prefix is tried", "prefixes", "            cell = cell.parent\n        return cell", "            cell = None\n        return cell"),
    Mutant(
        "longer prefixes do not learn of a new one",
        "prefixes",
        "self._relink(position, fresh, fresh.parent, fresh)",
        "pass",
    ),
    Mutant(
        "longer prefixes do not learn of a removed one",
        "prefixes",
        "self._relink(position, cell, cell, cell.parent)",
        "pass",
    ),
    Mutant("`*` is ignored", "index", "        wildcard = self.wildcard\n", "        wildcard = None\n"),
    Mutant("`*` stands for every name", "index", "if wildcard is not None and name[:1] == WILDCARD:", "if False:"),
    Mutant("`User:*` is ignored", "index", "        self._nodes[EVERY_PRINCIPAL] = self.every\n", ""),
    Mutant(
        "ALLOW comes first",
        "index",
        "    denied, allowed = DENIES[operation], ALLOWS[operation]\n",
        "    denied, allowed = DENIES[operation], ALLOWS[operation]\n"
        "    for cell in (wildcard, prefix, literal):\n"
        "        if cell is not None and cell.mask & allowed:\n"
        "            return cell.decide(allowed)\n",
    ),
    Mutant("ALLOW of `User:*` comes first", "index", "return every if own.allowed else own", "return own if own.allowed else every"),
    Mutant("`*` is visited first", "index", "return in_wildcard_section, -len", "return not in_wildcard_section, -len"),
    Mutant("short names are visited first", "index", "-len(pattern.name), pattern", "len(pattern.name), pattern"),
    Mutant("the last of equals is named", "index", "return own if is_mine_first is not own.allowed", "return own if is_mine_first is own.allowed"),
    Mutant(
        "default-allow holds for named resources too",
        "index",
        "return coverage is not None and coverage.covers(name)",
        "return False",
    ),
    Mutant("removed ACLs still name their resource", "coverage", "counter[key] += step", "counter[key] += abs(step)"),
    Mutant("prefixes name no resource", "coverage", "return any(", "return False and any("),
    Mutant("by type, operations imply", "by_type", "entry.operation in self._operations", "True"),
    Mutant("by type, a DENY on `*` is ignored", "by_type", "for find in (self._denying, self._allowing)", "for find in (self._allowing,)"),
    Mutant("by type, an ALLOW on `*` is ignored", "by_type", "for find in (self._denying, self._allowing)", "for find in (self._denying,)"),
    Mutant("by type, prefixes dominate nothing", "by_type", "prefix is not None and prefix.mask & self._denied", "False"),
    Mutant("by type, literals dominate nothing", "by_type", "and not self._denies(name) and", "and"),
    Mutant("by type, hosts are ignored", "by_type", "host_matches(entry.host, self._host)", "True"),
    Mutant("by type, answers are kept for ever", "session", "known[0] != stamps", "False"),
    Mutant("decisions are kept for ever", "session", "        self._decisions.clear()\n        self._nodes.clear()", "        self._nodes.clear()"),
    Mutant("the index is looked at once", "session", "self._version != self._authorizer.version", "self._version < 0"),
    Mutant("decisions are kept for any operation", "session", "key = (name, operation, resource_type)", "key = (name, AclOperation.READ, resource_type)"),
    Mutant("decisions are kept for any type", "session", "key = (name, operation, resource_type)", "key = (name, operation, ResourceType.TOPIC)"),
    Mutant("super users are nobody", "session", "SUPER_USER if str(self.principal) in", "None if str(self.principal) in"),
    Mutant("by default all is allowed", "session", "else DEFAULT_DENY)", "else DEFAULT_ALLOW)"),
    Mutant("removing does not count as a change", "standard", '            raise UnknownAclIdError(f"no ACL has the id `{acl_id}`")\n        self.version += 1\n', '            raise UnknownAclIdError(f"no ACL has the id `{acl_id}`")\n'),
    Mutant("a snapshot changes nothing", "standard", "        self._bindings = bindings\n        self.version += 1\n", "        self._bindings = bindings\n"),
]  # fmt: skip


def seeded(mutant: Mutant) -> type[StandardAuthorizer]:
    """Return the authorizer with this fault; the real modules stay as they are."""
    names = [f"kustos.authorizer.{module}" for module in MODULES]
    real = {name: sys.modules[name] for name in names}
    try:
        for name, module in zip(names, MODULES, strict=True):
            sys.modules[name] = _executed(name, mutant if module == mutant.module else None)
        authorizer: type[StandardAuthorizer] = vars(sys.modules[names[-1]])["StandardAuthorizer"]
        return authorizer
    finally:
        sys.modules.update(real)


def _executed(name: str, mutant: Mutant | None) -> ModuleType:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    if mutant is not None:
        assert source.count(mutant.old) == 1, f"mutant `{mutant.fault}` no longer applies"
        source = source.replace(mutant.old, mutant.new)
    module = importlib.util.module_from_spec(spec)
    exec(compile(source, spec.origin, "exec"), vars(module))
    return module
