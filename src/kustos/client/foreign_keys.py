"""Keys of other programs in a file for Kafka's clients, and the keys that Kafka has in their place.

Kafka ignores unknown keys, since one file often serves several programs. So a foreign key is a mistake only
where it sets what Kafka's own key leaves open: then we would log in otherwise than the file says.
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
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.key.location": "ssl.keystore.location",
}
_OF_SPRING: Final = re.compile(r"spring\.kafka\.(?:(?:admin|consumer|producer|streams)\.)?(?:properties\.)?")
_ABOUT_LOGIN: Final = ("security.", "sasl.", "ssl.")
_DECISIVE: Final = ("security.protocol", "sasl.mechanism", "sasl.jaas.config")
"""The keys without which a client logs in otherwise than its file means: misspelled ones are refused."""

_SPELLINGS: Final = ("key-store", "keystore"), ("trust-store", "truststore"), ("-", ".")


def kafkas_key(key: str) -> tuple[str, str] | None:
    """Return whose key this is and Kafka's key for it, None for a key of Kafka and an unknown one."""
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
    """Raise `SettingsError` naming each foreign or misspelled key that takes the place of an unset one."""
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
    """Raise `SettingsError` for a value about the login that is in quotes; passwords may have them."""
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
