"""Text formats of ACLs, read and written without IO: the list of kafka-acls, JSON, JSON lines, YAML, CSV.

The readers also accept the output of other tools: `terraform show -json`, Strimzi's `KafkaUser`, `rpk`,
tables of AKHQ, Kafbat and Kafka Security Manager.

A text that is not completely valid is refused with one error that names the value, the place and the rule.
Each format reads back the ACLs that it writes unchanged, and refuses to write an ACL that it could not read
back.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kustos.acl.forms.commands import AclAction, kafka_acls_commands
from kustos.acl.forms.csv_form import read_csv, write_csv
from kustos.acl.forms.detection import detect_form, form_of_name
from kustos.acl.forms.fields import (
    FIELDS,
    binding_of_fields,
    binding_of_texts,
    check_texts,
    fields_of,
    texts_of,
)
from kustos.acl.forms.json_forms import read_json, read_json_lines, write_json, write_json_lines
from kustos.acl.forms.kafka_acls import read_kafka_acls, write_kafka_acls
from kustos.acl.forms.values import (
    FIELD_BYTES_MAX,
    FILE_BYTES_MAX,
    LINE_CHARACTERS_MAX,
    TEXT_CHARACTERS_MAX,
    AclForm,
    AclFormatError,
    LocatedBinding,
    Place,
)
from kustos.acl.forms.yaml_form import read_yaml, write_yaml
from kustos.acl.values import AclBinding

_READERS: Final[dict[AclForm, Callable[[str, str], Iterator[LocatedBinding]]]] = {
    AclForm.KAFKA_ACLS: read_kafka_acls,
    AclForm.JSON: read_json,
    AclForm.JSON_LINES: read_json_lines,
    AclForm.YAML: read_yaml,
    AclForm.CSV: read_csv,
}

_WRITERS: Final[dict[AclForm, Callable[[Iterable[AclBinding]], str]]] = {
    AclForm.KAFKA_ACLS: write_kafka_acls,
    AclForm.JSON: write_json,
    AclForm.JSON_LINES: write_json_lines,
    AclForm.YAML: write_yaml,
    AclForm.CSV: write_csv,
}


def read_acls(text: str, form: AclForm, name: str) -> list[LocatedBinding]:
    """Return the ACLs of a text in order, duplicates included; error messages use `name` for the text.

    Raises `AclFormatError` for the first mistake, and for a text over its limit.
    """
    if len(text) > TEXT_CHARACTERS_MAX:
        raise AclFormatError(
            Place(name, 1), "", f"the text has more than {TEXT_CHARACTERS_MAX} characters, split it"
        )
    return list(_READERS[form](text, name))


def write_acls(bindings: Iterable[AclBinding], form: AclForm) -> str:
    """Return a text that `read_acls` reads as the same ACLs; raise `AclFormatError` if there is none."""
    return _WRITERS[form](bindings)


__all__ = [
    "FIELDS",
    "FIELD_BYTES_MAX",
    "FILE_BYTES_MAX",
    "LINE_CHARACTERS_MAX",
    "TEXT_CHARACTERS_MAX",
    "AclAction",
    "AclForm",
    "AclFormatError",
    "LocatedBinding",
    "Place",
    "binding_of_fields",
    "binding_of_texts",
    "check_texts",
    "detect_form",
    "fields_of",
    "form_of_name",
    "kafka_acls_commands",
    "read_acls",
    "texts_of",
    "write_acls",
]
