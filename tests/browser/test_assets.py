"""The script and the style in the package are those that the sources make, and hold to the rules of the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.browser.web import PACKAGE, WEB, node

#: What would make text into markup or code; the page's policy forbids it as well.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|\beval\b|\bFunction\(|document\.write|dangerouslySet"
    r"|setAttribute\(\s*[\"'`](?:on|style|href|src)|\blocalStorage\b|(?:push|replace)State|\bfetch\(|XMLHttp|import\("
)
SOURCES = sorted((WEB / "src").iterdir())


def test_the_sources_make_the_committed_assets(tmp_path: Path) -> None:
    done = node("build.mjs", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for name in ("report.js", "report.css", "check.js", "check.css"):
        assert (tmp_path / name).read_bytes() == (PACKAGE / name).read_bytes(), f"npm run build makes another {name}"


def test_the_types_are_right() -> None:
    done = node("node_modules/typescript/bin/tsc", "--noEmit")
    assert done.returncode == 0, done.stdout


def test_the_tests_of_the_script_pass() -> None:
    done = node("test.mjs")
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_text_becomes_markup_or_code(source: Path) -> None:
    assert FORBIDDEN.findall(source.read_text("utf-8")) == []


def test_the_assets_end_no_element_and_load_nothing() -> None:
    for name in ("report.js", "report.css", "check.js", "check.css"):
        text = (PACKAGE / name).read_text("ascii")
        assert not re.search(r"</(?:script|style)|<!--", text, re.IGNORECASE)
        assert not re.search(r"https?://(?!www\.w3\.org/)|@import|url\(", text)
    assert len((PACKAGE / "report.js").read_bytes()) < 100_000


def test_the_sources_stay_small() -> None:
    report = [source for source in SOURCES if source.stem != "check"]  # which is a page of its own
    lines = [line.strip() for source in report for line in source.read_text("utf-8").splitlines()]
    assert len([line for line in lines if line and not line.startswith(("//", "/*", "*"))]) <= 3_100


def test_the_lock_names_few_packages_for_both_machines() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text("utf-8"))["packages"]
    wanted = {"axe-core", "esbuild", "preact", "typescript"}
    assert set(lock[""]["devDependencies"]) == wanted
    names = {name.removeprefix("node_modules/") for name in lock if name}
    assert {name for name in names if not name.startswith(("@esbuild/", "@typescript/"))} == wanted
    assert {"@esbuild/linux-x64", "@esbuild/linux-arm64"} <= names
    assert all(each.get("integrity") for name, each in lock.items() if name)
