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

MODULES = (
    "index.host_views",
    "index.cells",
    "index.prefixes",
    "index.joints",
    "index.index",
    "index.views",
    "index.by_type",
    "session",
    "standard",
)
"""In the order in which they import each other."""


@dataclass(frozen=True, slots=True)
class Mutant:
    fault: str
    module: str
    old: str
    new: str


MUTANTS = [
    Mutant("an ALLOW implies nothing", "index.cells", "0 if implied is None else ALLOWS[implied]", "0"),
    Mutant(
        "a DENY implies",
        "index.cells",
        "operation: written_mask(operation) << DENY_SHIFT",
        "operation: _allow_mask(operation) << DENY_SHIFT",
    ),
    Mutant("ALL is an operation like others", "index.cells", "return EVERY_ALLOW if operation is", "return 4 if operation is"),
    Mutant("hosts are ignored", "index.cells", "return mask if entry.host == WILDCARD else mask | HOSTED", "return mask"),
    Mutant("entries with a host match nobody", "index.host_views", "patterns = {WILDCARD: None, host: None}", "patterns = {WILDCARD: None}"),
    Mutant("entries without a host match nobody", "index.host_views", "patterns = {WILDCARD: None, host: None}", "patterns = {host: None}"),
    Mutant("ranges are ignored", "index.host_views", "if size == bits and network in self._networks:", "if False:"),
    Mutant("a network holds its neighbours", "index.host_views", "return found.bits, open_bits, found.highest >> open_bits", "return found.bits, open_bits, (found.highest >> open_bits) ^ 1"),
    Mutant("views outlive their ACL", "index.host_views", "        self.known.clear()\n\n\ndef", "        pass\n\n\ndef"),
    Mutant("a new host is not seen", "index.cells", "            self._views.add(binding)\n", "            pass\n"),
    Mutant("the first ALLOW is named", "index.cells", "return decision_of(matching[-1] if bit", "return decision_of(matching[0] if bit"),
    Mutant("the last DENY is named", "index.cells", "else matching[0]", "else matching[-1]"),
    Mutant("the longest ALLOW prefix is named", "index.prefixes", "cell = having[-1] if bit", "cell = having[0] if bit"),
    Mutant("the shortest DENY prefix is named", "index.prefixes", "else having[0]", "else having[-1]"),
    Mutant("shorter prefixes are ignored", "index.prefixes", "else self._own_mask | self.parent.mask", "else self._own_mask"),
    Mutant("made decisions outlive their ACL", "index.cells", "self.sole = self._decisions = None", "pass"),
    Mutant("entries are in the order of arrival", "index.cells", "held.insert(position, binding)", "held.append(binding)"),
    Mutant("a prefix is a literal, where only prefixes are", "session", "not name.startswith(prefix.name)", "name != prefix.name"),
    Mutant("only the nearest prefix is tried, where only prefixes are", "session", "                    prefix = prefix.parent", "                    prefix = None"),
    Mutant("a literal never learns of a longer prefix", "index.prefixes", "        self.by_name[name] = fresh\n        self.stamp += 1\n", "        self.by_name[name] = fresh\n"),
    Mutant("a literal keeps a prefix that is gone", "index.prefixes", "            del self.by_name[name]\n            self.stamp += 1\n", "            del self.by_name[name]\n"),
    Mutant("what prefixes say of a literal is ignored", "index.views", "LiteralAndPrefix(exact, longest)", "exact"),
    Mutant("a new entry is not seen", "index.cells", "        self._grow(binding_mask(binding))\n", ""),
    Mutant("the only binding speaks for all", "index.prefixes", "return self.parent is None and super()._is_single()", "return super()._is_single()"),
    Mutant("a prefix is a literal", "index.prefixes", "not name.startswith(cell.name)", "name != cell.name"),
    Mutant("only the nearest prefix is tried", "index.prefixes", "            cell = cell.parent\n        return cell", "            cell = None\n        return cell"),
    Mutant(
        "longer prefixes do not learn of a new one",
        "index.prefixes",
        "self._relink(position, fresh, fresh.parent, fresh)",
        "pass",
    ),
    Mutant(
        "longer prefixes do not learn of a removed one",
        "index.prefixes",
        "self._relink(position, cell, cell, cell.parent)",
        "pass",
    ),
    Mutant("`*` is ignored", "index.views", "self._wildcard = None if wildcard is NOTHING else wildcard", "self._wildcard = None"),
    Mutant("`*` stands for every name", "index.views", "if name[:1] == WILDCARD:", "if False:"),
    Mutant("`User:*` is ignored", "index.index", "        self._nodes[EVERY_PRINCIPAL] = self.every\n", ""),
    Mutant("ALLOW comes first", "session", "return cell.decide(denied if cell.mask & denied else allowed)", "return cell.decide(allowed if cell.mask & allowed else denied)"),
    Mutant("the last DENY of several cells is named", "index.joints", "if bit <= EVERY_ALLOW else self._cells:", "if bit else self._cells:"),
    Mutant("the first ALLOW of several cells is named", "index.joints", "if bit <= EVERY_ALLOW else self._cells:", "if not bit else self._cells:"),
    Mutant("of a literal and its prefixes the literal's ALLOW is named", "index.joints", "        if bit <= EVERY_ALLOW:\n            first", "        if False:\n            first"),
    Mutant("of a literal and its prefixes the prefix's DENY is named", "index.joints", "        if bit <= EVERY_ALLOW:\n            first", "        if True:\n            first"),
    Mutant("what is said of everybody counts less", "index.joints", "self.mask = first.mask | second.mask", "self.mask = first.mask or second.mask"),
    Mutant("`*` is visited first", "index.joints", "return in_wildcard_section, -len", "return not in_wildcard_section, -len"),
    Mutant("short names are visited first", "index.joints", "-len(pattern.name), pattern", "len(pattern.name), pattern"),
    Mutant("the last of equals is named", "index.joints", "return one if is_visited_first is not one.allowed", "return one if is_visited_first is one.allowed"),
    Mutant(
        "default-allow holds for named resources too",
        "index.index",
        "return coverage is not None and coverage.covers(name)",
        "return False",
    ),
    Mutant("removed ACLs still name their resource", "index.index", "counter[key] += step", "counter[key] += abs(step)"),
    Mutant("prefixes name no resource", "index.index", "return any(", "return False and any("),
    Mutant("by type, operations imply", "index.by_type", "entry.operation in self._operations", "True"),
    Mutant("by type, a DENY on `*` is ignored", "index.by_type", "for find in (self._denying, self._allowing)", "for find in (self._allowing,)"),
    Mutant("by type, an ALLOW on `*` is ignored", "index.by_type", "for find in (self._denying, self._allowing)", "for find in (self._denying,)"),
    Mutant("by type, prefixes dominate nothing", "index.by_type", "if self._has_denying_prefix(node)]", "if False]"),
    Mutant("by type, hosts of prefixes are ignored", "index.by_type", "return bool(prefix.at(self._host).mask & self._denied)", "return True"),
    Mutant("by type, literals dominate nothing", "index.by_type", "and not self._denies(name):", "and True:"),
    Mutant("by type, a cell dominates itself whatever the host", "index.by_type", "if mask & HOSTED:", "if False:"),
    Mutant("by type, hosts are ignored", "index.by_type", "in cell.bindings_at(self._host)", "in cell.bindings"),
    Mutant("by type, answers are kept for ever", "index.by_type", "or known[0] != stamps", "or False"),
    Mutant("by type, answers are kept for any host", "index.by_type", "known = keeper.by_type.get((operation, host, groups))", "known = next(iter(keeper.by_type.values()), None)"),
    Mutant("decisions are kept for ever", "session", "        self._views.clear()\n", ""),
    Mutant("the index is looked at once", "session", "if resource_type is not self._type or self._version != self._authorizer.version:", "if resource_type is not self._type or self._version < 0:"),
    Mutant("decisions are kept for any type", "session", "view = self._views.get(resource_type)", "view = next(iter(self._views.values()), None)"),
    Mutant("super users are nobody", "session", "self._is_super_user = str(self.principal) in authorizer.super_users", "self._is_super_user = False"),
    Mutant("by default all is allowed", "index.views", "if cell is NOTHING and not index.covers(kind, name) else cell", "if cell is NOTHING else cell"),
    Mutant("nothing is allowed by default", "index.views", "if cell is NOTHING and not index.covers(kind, name) else cell", "if False else cell"),
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
