"""Which settings a session starts with."""

from kustos.pipeline.session import LOCAL_SETTINGS, SETTINGS, SMALL_ROWS, SMALL_SETTINGS, all_settings


def test_a_local_session_over_few_rows_generates_no_code_and_starts_its_jvm_for_a_short_life() -> None:
    assert all_settings({}, SMALL_ROWS, is_local=True) == SETTINGS | LOCAL_SETTINGS | SMALL_SETTINGS
    for rows in (SMALL_ROWS + 1, None):
        assert all_settings({}, rows, is_local=True) == SETTINGS | LOCAL_SETTINGS


def test_a_cluster_keeps_its_own_settings_of_the_jvm() -> None:
    assert all_settings({}, 1, is_local=False) == SETTINGS


def test_what_the_user_sets_replaces_ours() -> None:
    theirs = {"spark.driver.extraJavaOptions": "-Xss4m", "spark.sql.shuffle.partitions": "200"}
    found = all_settings(theirs, 1, is_local=True)
    assert found == SETTINGS | LOCAL_SETTINGS | SMALL_SETTINGS | theirs
