import pytest

from turnlog.aisdk import FEATURES, NEWEST, SdkVersion, sdk_version, supports


def test_a_bare_major_means_the_newest_release_that_is_known() -> None:
    assert [sdk_version(major) for major in (5, 6, 7)] == list(NEWEST.values())
    assert sdk_version("6") == sdk_version(6)


def test_an_exact_release_is_taken_as_it_is() -> None:
    assert sdk_version("6.0.100") == SdkVersion(6, 0, 100)
    assert sdk_version(SdkVersion(5, 0, 7)) == SdkVersion(5, 0, 7)
    assert str(sdk_version("6.0.100")) == "6.0.100"


@pytest.mark.parametrize("version", [4, 8, "4.3.1", "six", "6.0", "6.0.x", "", "6.0.100.1", "٦"])
def test_other_versions_are_refused(version: int | str) -> None:
    with pytest.raises(ValueError, match="AI SDK"):
        sdk_version(version)


def test_support_is_a_question_of_feature_and_release() -> None:
    assert not supports("5.0.6", "tool-input-error")
    assert supports("5.0.7", "tool-input-error")
    assert supports("6.0.0", "approvals")
    assert not supports(5, "approvals")
    assert supports("7.0.163", "steering-messages")
    assert not supports("7.0.162", "steering-messages")


def test_5_knows_no_approvals_and_6_no_custom_parts() -> None:
    """R-S14."""
    assert set(FEATURES["approvals"]) == {6, 7}
    assert set(FEATURES["custom-content"]) == set(FEATURES["reasoning-file"]) == {7}
