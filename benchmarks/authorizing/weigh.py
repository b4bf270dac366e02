"""How much the resident memory of a process grows when it loads the ACLs of a file.

Every text is recreated for each ACL and every id is a random number, as a reader of a log has them.
"""

import gc
import random
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import StandardAuthorizer


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def acls(file: Path) -> Iterator[tuple[UUID, AclBinding]]:
    """Read the lines by which the oracle keeps ACLs."""
    rng = random.Random(0)
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            _, _, kind, name, pattern_type, principal, host, operation, permission = line.rstrip("\n").split(
                "\t"
            )
            pattern = ResourcePattern(ResourceType[kind], name, PatternType[pattern_type])
            entry = AccessControlEntry(
                principal, host, AclOperation[operation], AclPermissionType[permission]
            )
            yield UUID(int=rng.getrandbits(128)), AclBinding(pattern, entry)


def main() -> None:
    authorizer = StandardAuthorizer()
    gc.collect()
    before = resident_bytes()
    authorizer.load_snapshot(acls(Path(sys.argv[1])))
    gc.collect()
    print(resident_bytes() - before)


if __name__ == "__main__":
    main()
