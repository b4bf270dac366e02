"""Detects keys of other programs in a properties file for Kafka's clients, with Kafka's equivalent keys.

Kafka ignores unknown keys, because one file is often used by several programs. So a foreign key is a mistake
only if Kafka's equivalent key is not set: then the login would differ from the intention of the file.
"""

import re
from collections.abc import Mapping
from typing import Final

from kustos.client.errors import SettingsError
from kustos.runtime import did_you_mean

_OF_LIBRDKAFKA: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.grant.type": "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.assertion.private.key.pem": "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.jwt.template.file": "sasl.oauthbearer.assertion.template.file",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.key.location": "ssl.keystore.location",
}
_OF_SPRING: Final = re.compile(r"spring\.kafka\.(?:(?:admin|consumer|producer|streams)\.)?(?:properties\.)?")
_ABOUT_LOGIN: Final = ("security.", "sasl.", "ssl.")
_DECISIVE: Final = ("security.protocol", "sasl.mechanism", "sasl.jaas.config")
"""The keys that determine the login: misspelled ones are refused, because the login would differ from the
intention of the file."""

_SPELLINGS: Final = ("key-store", "keystore"), ("trust-store", "truststore"), ("-", ".")


def kafkas_key(key: str) -> tuple[str, str] | None:
    """Return the program that the key belongs to, and Kafka's equivalent; None for keys of Kafka and unknown
    keys."""
    if key in _OF_LIBRDKAFKA:
        return "librdkafka", _OF_LIBRDKAFKA[key]
    spring = _OF_SPRING.match(key)
    if spring is None or not key[spring.end() :].startswith(_ABOUT_LOGIN):
        return None
    rest = key[spring.end() :]
    for theirs, ours in _SPELLINGS:
        rest = rest.replace(theirs, ours)
    return "Spring", rest


def refuse_foreign_keys(properties: Mapping[str, str]) -> None:
    """Raise `SettingsError` naming each foreign or misspelled key whose equivalent is not set."""
    problems: list[str] = []
    unset = [key for key in _DECISIVE if key not in properties]
    for key in properties:
        foreign = kafkas_key(key)
        if foreign is not None and foreign[1] not in properties:
            problems.append(f"`{key}` is a key of {foreign[0]}, Kafka's key for it is `{foreign[1]}`")
        elif foreign is None and (hint := did_you_mean(key, unset)):
            problems.append(f"`{key}` is not a key of Kafka, {hint}")
    if problems:
        raise SettingsError("; ".join(problems))


def refuse_quoted(properties: Mapping[str, str]) -> None:
    """Raise `SettingsError` for a login setting with a quoted value; passwords may be quoted."""
    for key, value in properties.items():
        text = value.strip()
        if not key.startswith(_ABOUT_LOGIN) or key.endswith(("password", "secret", "passphrase")):
            continue
        if is_quoted(text):
            raise SettingsError(f"the value of `{key}` is {IN_QUOTES}")


IN_QUOTES: Final = "in quotes, which belong to the value in a properties file; leave them out"


def is_quoted(text: str) -> bool:
    """Return whether a value begins and ends with the same quote."""
    return len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]
