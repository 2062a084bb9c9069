"""What docs/reference/stability.md promises is as it was released; a change of it is seen and meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import stable

NAMES = ("cli", "cli-json", "http", "parquet", "python", "store")


@pytest.fixture(scope="module")
def promises() -> dict[str, list[str]]:
    return stable.promises()


def check(name: str, now: list[str], folder: Path) -> None:
    """Fail with what to do where a promised line is gone."""
    promised = (folder / f"{name}.txt").read_text().splitlines()
    gone, new = sorted(set(promised) - set(now)), sorted(set(now) - set(promised))
    if gone:
        pytest.fail(
            f"{name}: docs/reference/stability.md promises these lines, and they are gone or others:\n  "
            + "\n  ".join(gone)
            + ("\nThese are new:\n  " + "\n  ".join(new) if new else "")
            + "\nKeep the old beside the new, or write an entry under `Changed` or `Removed` into CHANGELOG.md, as the"
            " page says, and run `make promises`."
        )


@pytest.mark.parametrize("name", NAMES)
def test_what_is_promised_is_kept(name: str, promises: dict[str, list[str]]) -> None:
    assert len(promises[name]) > 20
    check(name, promises[name], stable.FOLDER)


def test_every_promise_is_compared(promises: dict[str, list[str]]) -> None:
    assert set(promises) == set(NAMES) == {path.stem for path in stable.FOLDER.glob("*.txt")}


def test_a_field_that_is_renamed_is_a_broken_promise(promises: dict[str, list[str]], tmp_path: Path) -> None:
    (tmp_path / "http.txt").write_text("\n".join(promises["http"]) + "\n")
    renamed = [line.replace("FoundSession.title:", "FoundSession.name:") for line in promises["http"]]
    assert renamed != promises["http"]
    with pytest.raises(pytest.fail.Exception, match=r"(?s)gone or others:\n  FoundSession\.title.*make promises"):
        check("http", renamed, tmp_path)


def test_a_new_field_breaks_none(promises: dict[str, list[str]], tmp_path: Path) -> None:
    (tmp_path / "http.txt").write_text("\n".join(promises["http"]) + "\n")
    check("http", [*promises["http"], "FoundSession.colour: string"], tmp_path)
