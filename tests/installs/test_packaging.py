"""What an install brings: the wheel, its metadata, the make targets, and a base that needs no framework."""

from __future__ import annotations

import email.message
import email.parser
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from installs import ROOT, Environment, build_wheel, copy_of_sources, run
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import msprobe_ms

#: Whether the extension in C can be built here.
COMPILER = shutil.which(os.environ.get("CC", "cc")) is not None

#: Parts that work inside a training process, so may import its framework; all others compare dumps without one.
IN_TRAINING = (
    "msprobe_ms.frameworks", "msprobe_ms.recording.hooks", "msprobe_ms.mindspore", "msprobe_ms.pytorch",
    "msprobe_ms.maca", "msprobe_ms.compat.maca", "msprobe_ms.msit", "msprobe_ms.compat.msit",
)  # fmt: skip


@pytest.fixture(scope="module")
def environment(wheel: Path) -> Environment:
    """The wheel is in it, and no framework can be imported."""
    environment = Environment(wheel.parent / "environment")
    environment.pip("install", "--no-deps", wheel)
    environment.borrow()
    (environment.site / "blocked.pth").write_text("import sys; sys.modules.update(mindspore=None, torch=None)\n")
    return environment


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode())


def requirements(metadata: email.message.Message, extra: str = "") -> dict[str, Requirement]:
    """The requirements that ``extra`` adds, or those of the base, by canonical name."""
    found = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    wanted = (r for r in found if (r.marker is None if not extra else r.marker and r.marker.evaluate({"extra": extra})))
    return {canonicalize_name(r.name): r for r in wanted}


def packaged(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_base_install_has_no_framework(metadata: email.message.Message) -> None:
    assert (metadata["Name"], metadata["Version"], metadata["Requires-Python"]) == ("msprobe-ms", "0.1.0", ">=3.10")
    assert set(requirements(metadata)) == {
        "isal", "numpy", "openpyxl", "orjson", "packaging", "pydantic", "pyyaml", "tqdm", "xlsxwriter",
    }  # fmt: skip


def test_an_index_shows_who_made_it_what_changed_and_no_dead_link(metadata: email.message.Message) -> None:
    assert metadata["Author"] == "msprobe_ms contributors"
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changes, re.MULTILINE)
    assert newest is not None and newest[1] == metadata["Version"] == msprobe_ms.__version__
    minors = [each.split(" :: ")[-1] for each in metadata.get_all("Classifier", []) if ":: 3." in each]
    assert minors == ["3.10", "3.11", "3.12", "3.13"]
    readme = metadata.get_payload()
    assert "make demo" in readme and metadata["Description-Content-Type"] == "text/markdown"
    assert [target for target in re.findall(r"\]\(([^)]+)\)", readme) if not target.startswith(("http", "#"))] == []


def test_the_extras_bring_frameworks_that_work(metadata: email.message.Message) -> None:
    mindspore = requirements(metadata, "mindspore")
    assert set(mindspore) == {"mindspore", "numpy"}
    versions = ["2.6.0", "2.7.0", "2.8.0", "2.9.0", "2.10.0", "2.11.0"]
    assert list(mindspore["mindspore"].specifier.filter(versions)) == versions[1:-1]
    for extra in ("mindspore", "test"):
        numpy = requirements(metadata, extra)["numpy"].specifier
        assert "1.26.4" in numpy
        assert "2.0.0" not in numpy
    assert set(requirements(metadata, "pytorch")) == {"torch"}
    # Neither holds numpy back, as PyTorch works with any; what is named beside the extra mindspore does not lift it.
    assert set(requirements(metadata, "dataframe")) == {"pandas"}
    assert set(requirements(metadata, "completion")) == {"shtab"}
    assert set(requirements(metadata, "cluster")) == {"distributed"}
    assert str(requirements(metadata, "test")["torch"].specifier) == "==2.13.0"
    assert str(requirements(metadata, "test")["mindspore"].specifier) == "==2.10.0"


def test_the_wheel_holds_every_module_and_data_file_once(source: Path, wheel: Path) -> None:
    extensions = "arrays/_one_pass", "dump/reading/_members", "dump/writing/_records", "dump/writing/_whole_files"
    built = [f"msprobe_ms/{name}.abi3.so" for name in extensions]
    expected = set(built if COMPILER else [])
    assert "msprobe_ms/config/samples/config.json" in packaged(wheel)
    for file in (source / "msprobe_ms").rglob("*"):
        if file.suffix in {".py", ".pyi", ".yaml", ".json", ".js", ".css", ".mo"} or file.name == "py.typed":
            name = file.relative_to(source).as_posix().replace("msprobe_ms/compat/msprobe/", "msprobe/")
            expected.add(name.removeprefix("msprobe_ms/compat/modules/"))
    assert packaged(wheel) == expected
    assert {
        "msprobe/mindspore/common/utils.py", "msprobe_ms/py.typed", "msprobe/py.typed", "maca_tools.py"
    } <= expected  # fmt: skip
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())
        (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert archive.read(entry_points).decode().split("\n")[:3] == [
            "[console_scripts]",
            "msit = msprobe_ms.cli.msit:main",
            "msprobe = msprobe_ms.cli:main",
        ]


def test_the_sdist_of_setup_py_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    source = copy_of_sources(tmp_path / "source")
    run(sys.executable, "setup.py", "-q", "sdist", cwd=source)
    (sdist,) = (source / "dist").iterdir()
    assert packaged(build_wheel(sdist, tmp_path / "wheel")) == packaged(wheel)


def test_without_a_compiler_numpy_computes_figures(source: Path, tmp_path: Path) -> None:
    """The install succeeds, and what records says once that it takes longer."""
    wheel = build_wheel(copy_of_sources(tmp_path / "source"), tmp_path / "wheel", {"CC": "/nonexistent/cc"})
    assert not any(name.endswith(".so") for name in packaged(wheel))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    script = (
        "import numpy as np\n"
        "from msprobe_ms.arrays import one_pass, statistics\n"
        "assert '/installed/' in one_pass.__file__\n"
        "one_pass.say_if_missing(), one_pass.say_if_missing()\n"
        "print(one_pass.is_built(), *statistics.statistics(np.arange(5)))\n"
    )
    done = run(
        sys.executable, "-c", script, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    )
    assert done.stdout.split() == ["False", "4.0", "0.0", "2.0", str(30**0.5)]
    assert done.stderr.count("C compiler") == 1


def test_everything_offline_imports_without_a_framework(environment: Environment) -> None:
    done = environment.python(
        "import importlib, pkgutil, sys\n"
        "sys.modules.update(dict.fromkeys(('mindspore', 'torch', 'pandas')))  # importing one of them raises\n"
        "import msprobe_ms, pydoc\n"
        "assert dir(msprobe_ms) == ['__version__', 'assert_consistent', 'compare', 'load'], dir(msprobe_ms)\n"
        "assert 'load' in pydoc.render_doc(msprobe_ms)\n"
        "for module in pkgutil.walk_packages(msprobe_ms.__path__, 'msprobe_ms.', onerror=lambda name: None):\n"
        f"    if not module.name.startswith(({', '.join(map(repr, IN_TRAINING))}, 'msprobe_ms.__main__')):\n"
        "        importlib.import_module(module.name)\n"
        "        print(module.name)\n"
    )
    assert {"msprobe_ms.dump.names", "msprobe_ms.comparison.model", "msprobe_ms.dump.model"} <= set(done.stdout.split())


def test_a_type_checker_sees_through_the_import_name_of_msprobe(environment: Environment, tmp_path: Path) -> None:
    calls = ["PrecisionDebugger(level='L0', step=[0])", "PrecisionDebugger(levl='L0')", "seed_all(mode='yes')"]
    (tmp_path / "script.py").write_text(
        "\n".join(["from msprobe.mindspore import PrecisionDebugger, seed_all", *calls]) + "\n"
    )
    checked = [sys.executable, "-m", "mypy", "--strict", "--python-executable", environment.folder / "bin" / "python"]
    done = subprocess.run([*checked, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.findall(r"^script\.py:(\d+): error: (\w+ \"\w+\")", done.stdout, re.MULTILINE) == [
        ("3", 'Argument "levl"'), ("4", 'Argument "mode"'),
    ], done.stdout  # fmt: skip


@pytest.mark.parametrize("command", [("bin/msprobe",), ("bin/msit",), ("bin/python", "-m", "msprobe_ms")])
def test_the_command_line_starts_without_a_framework(
    environment: Environment, tmp_path: Path, command: tuple[str, ...]
) -> None:
    done = run(environment.folder / command[0], *command[1:], "--help", cwd=tmp_path)
    assert "compare" in done.stdout
    samples = run(environment.folder / command[0], *command[1:], "config", "--list", cwd=tmp_path)
    assert str(environment.site / "msprobe_ms" / "config" / "samples") in samples.stdout
    run(environment.folder / command[0], *command[1:], "config", "overflow", "-o", "config.json", cwd=tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["task"] == "overflow_check"


def test_the_doctor_of_a_laptop_finds_nothing_wrong(environment: Environment, tmp_path: Path) -> None:
    done = run(environment.folder / "bin" / "msprobe", "doctor", cwd=tmp_path)
    assert "--  MindSpore is not installed\n      to record it: pip install" in done.stdout
    assert done.stdout.endswith("nothing has to be put right\n")
    assert not any(tmp_path.iterdir())


def test_every_dependency_is_explained(metadata: email.message.Message) -> None:
    """docs/dependencies.md has one line for each requirement of the base, the extras and the page, and no other."""
    sections = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").split("\n## ")[1:]
    explained = {
        section.split("\n")[0].lower(): {
            canonicalize_name(name) for name in re.findall(r"^\| (\S+) \|", section, re.MULTILINE) if name != "package"
        }
        for section in sections
    }
    extras = set().union(*(requirements(metadata, extra) for extra in metadata.get_all("Provides-Extra", [])))
    extras.remove("msprobe-ms")  # an extra that brings another
    page = set(json.loads((ROOT / "web" / "package.json").read_text("utf-8"))["devDependencies"])
    assert explained == {"base": set(requirements(metadata)), "extras": extras, "the script of the report page": page}


@pytest.mark.parametrize("target", ["demo", "test", "lint"])
def test_make_installs_again_only_when_the_metadata_changed(source: Path, target: str) -> None:
    def installs() -> bool:
        return "pip install" in run("make", "-n", target, cwd=source).stdout

    (source / ".venv").mkdir(exist_ok=True)
    assert installs()
    extras = "mindspore", "lint", "test-tools", "frameworks", "test"
    for order, stamp in enumerate(("created", *(f"installed-{each}" for each in extras))):
        (source / ".venv" / stamp).touch()
        os.utime(source / ".venv" / stamp, (2e9 + order, 2e9 + order))
    assert not installs()
    os.utime(source / "pyproject.toml", (2.1e9, 2.1e9))
    assert installs()
    os.utime(source / "pyproject.toml", (1e9, 1e9))
    for stamp in (source / ".venv").iterdir():
        stamp.unlink()


def test_make_refuses_an_interpreter_mindspore_has_no_wheels_for(source: Path, tmp_path: Path) -> None:
    newer = tmp_path / "python3.13"
    newer.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'import sys; sys.version_info = (3, 13); exec(sys.argv[2])' \"$@\"\n"
    )
    newer.chmod(0o755)
    done = subprocess.run(["make", "demo", f"PYTHON={newer}"], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "MindSpore needs Python 3.10, 3.11 or 3.12" in done.stderr
    assert "is 3.13. Choose another: make PYTHON=python3.11" in done.stderr
