"""ACLs as commands of kafka-acls: each text is one argument of a shell, or the ACL is refused."""

import shlex

import pytest

from kustos.acl.forms import AclAction, AclFormatError, kafka_acls_commands
from testkit.review_rows import acl


def test_a_command_names_one_acl_in_quotes() -> None:
    evil = acl("User:$(rm -rf ~)", "ALL", "GROUP", "-a'; echo", prefixed=True, host="10.0.0.0/8", deny=True)
    cluster = acl("User:CN=x, O=y", "ALTER", "CLUSTER", "kafka-cluster")
    first, second = kafka_acls_commands([evil, cluster], AclAction.REMOVE, command_config="a b")
    assert shlex.split(first) == [
        "kafka-acls.sh", "--bootstrap-server", "$BOOTSTRAP_SERVER", "--command-config", "a b",
        "--remove", "--force", "--group=-a'; echo", "--resource-pattern-type=prefixed", "--operation=All",
        "--deny-principal=User:$(rm -rf ~)", "--deny-host=10.0.0.0/8",
    ]  # fmt: skip
    assert "--cluster" in shlex.split(second)
    (added,) = kafka_acls_commands([cluster], AclAction.ADD, bootstrap_server="$(x)")
    assert shlex.split(added)[2:4] == ["$(x)", "--add"]
    assert "'$(x)'" in added
    for name in (" a", "a\n--force", "a\0"):
        with pytest.raises(AclFormatError, match="cannot take"):
            kafka_acls_commands([acl("User:a", "READ", "TOPIC", name)], AclAction.ADD)


def test_an_acl_that_no_form_holds_is_never_half_written() -> None:
    for unknown in (acl("User:a", "UNKNOWN", "TOPIC", "a"), acl("User:a", "CREATE_TOKENS", "TOPIC", "a")):
        with pytest.raises(AclFormatError, match="use another form"):
            kafka_acls_commands([unknown], AclAction.REMOVE)
