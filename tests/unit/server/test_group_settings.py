"""Settings that give clients groups, and their errors."""

import pytest

from kustos.auth.callbacks import OAuthBearerValidatorCallbackHandler
from kustos.auth.jwt import UnsecuredTokenRules
from kustos.auth.mechanisms.oauthbearer import AcceptedToken
from kustos.client.errors import SettingsError
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.oauth import SignedTokenSettings
from kustos.server.settings.plugins import UNSECURED_HANDLER
from tests.unit.server.test_oauth_settings import HANDLER, KEYS, OWN, oauth_of
from tests.unit.server.test_settings import LEAST

PATH = "kustos.sasl.oauthbearer.groups.claim.path"
RULES = "kustos.ssl.group.mapping.rules"


class OwnTokens(OAuthBearerValidatorCallbackHandler):
    """A handler that a test names."""

    def validate(self, token: str) -> AcceptedToken:
        return AcceptedToken(token, 1)


def test_without_the_keys_no_client_has_groups() -> None:
    settings = settings_from(KEYS, {})
    oauth = oauth_of(settings)
    assert isinstance(oauth, SignedTokenSettings)
    assert oauth.rules.groups_claim_path is None
    assert settings.listeners[0].principals.ssl_group_mapping_rules == ""


@pytest.mark.parametrize("key", [PATH, OWN + PATH, "listener.name.clients." + PATH])
def test_the_path_to_the_claim_is_for_all_listeners_or_for_one(key: str) -> None:
    oauth = oauth_of(settings_from(KEYS | {key: "realm_access.roles"}, {}))
    assert isinstance(oauth, SignedTokenSettings)
    assert oauth.rules.groups_claim_path == ("realm_access", "roles")
    unsecured = oauth_of(settings_from(KEYS | {HANDLER: UNSECURED_HANDLER, key: "[a.b]"}, {}))
    assert unsecured == UnsecuredTokenRules(groups_claim_path=("a.b",))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({PATH: "a..b"}, "a path such as `realm_access.roles`"),
        ({RULES: "DEFAULT"}, "would make a group of every field"),
        ({RULES: "RULE:(/x/"}, "cannot be used"),
        (
            {HANDLER: f"{__name__}.OwnTokens", PATH: "groups"},
            "its callback handler returns the groups of clients, leave out",
        ),
    ],
)
def test_keys_that_give_no_groups_are_refused(given: dict[str, str], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        settings_from(KEYS | given, {})


def test_a_group_among_the_super_users_is_warned_about_where_clients_have_groups() -> None:
    super_users = {"super.users": "User:root;Group:admins"}

    def warnings(given: dict[str, str]) -> list[str]:
        return [each for each in settings_from(given | super_users, {}).warnings if "Group:admins" in each]

    assert warnings(LEAST) == []
    for given in (KEYS | {PATH: "groups"}, LEAST | {RULES: "RULE:OU=(.*)/$1/"}):
        [warning] = warnings(given)
        assert "no group makes its clients super users" in warning
