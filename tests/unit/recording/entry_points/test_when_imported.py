"""Imports that are told of: each package once, when it has run, however it was looked for before."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from msprobe_ms.recording.entry_points.when_imported import WhenImported


@pytest.fixture(params=["folder", "archive"])
def packages(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Packages ``watched_one``, which imports a part of itself and ``beside``, and ``watched_two``; what was told."""
    sources = {
        "watched_one/__init__.py": "import beside, builtins as b\nfrom watched_one import part\nassert b.told == []\n",
        "watched_one/part.py": "",
        "beside.py": "",
        "watched_two.py": "import builtins\nif not builtins.allowed: raise RuntimeError\n",
    }
    told = list[str]()
    monkeypatch.setattr("builtins.told", told, raising=False)
    monkeypatch.setattr("builtins.allowed", False, raising=False)
    place = tmp_path / ("packages" if request.param == "folder" else "packages.zip")
    if request.param == "folder":
        for name, source in sources.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(source)
    else:
        with zipfile.ZipFile(place, "w") as archive:
            for name, source in sources.items():
                archive.writestr(name, source)
    monkeypatch.syspath_prepend(place)
    finder = WhenImported(["watched_one", "watched_two", "not_there"], told.append)
    finder.install()
    yield told
    finder.remove()
    for name in ("watched_one", "watched_one.part", "watched_two", "beside"):
        sys.modules.pop(name, None)


def test_a_package_that_is_looked_for_first_is_told_when_it_has_run(packages: list[str]) -> None:
    for _ in range(2):
        assert importlib.util.find_spec("watched_one") is not None
        assert importlib.util.find_spec("not_there") is None
    import beside  # noqa: F401

    assert packages == []
    one = importlib.import_module("watched_one")
    assert packages == ["watched_one"]
    assert "exec_module" not in vars(one.__spec__.loader)
    importlib.reload(sys.modules["beside"])
    packages.clear()
    importlib.reload(one)
    assert packages == []


def test_one_that_fails_is_told_when_it_succeeds(packages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError):
        importlib.import_module("watched_two")
    assert packages == []
    monkeypatch.setattr("builtins.allowed", True)
    importlib.import_module("watched_two")
    assert packages == ["watched_two"]


def test_a_spec_that_a_script_runs_itself_is_told(packages: list[str]) -> None:
    spec = importlib.util.find_spec("watched_one")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["watched_one"] = module
    spec.loader.exec_module(module)
    assert packages == ["watched_one"]
