"""Scripts written for msprobe, and mindstudio-probe installed beside us."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from installs import Environment, copy_of_sources, neighbour_wheel

DESCRIBE = "from msprobe_ms.compat.neighbour import describe_conflict as d; import sys; print(d()); \
assert 'msprobe' not in sys.modules"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Only our wheel is in it; not to be changed."""
    environment = Environment(tmp_path_factory.mktemp("installed") / "environment")
    environment.pip("install", "--no-deps", wheel)
    return environment


@pytest.fixture
def changeable(installed: Environment, tmp_path: Path) -> Environment:
    return Environment(tmp_path / "changeable", installed)


@pytest.fixture
def neighbour(tmp_path: Path) -> Path:
    return neighbour_wheel(tmp_path)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


def advised(message: str) -> list[list[str]]:
    """The pip commands a message tells the user to run."""
    return [shlex.split(line)[1:] for line in message.splitlines() if line.startswith("  pip ")]


def test_import_of_msprobe_is_light_and_silent(installed: Environment) -> None:
    done = installed.python(
        "import sys, msprobe; print(msprobe.__file__); "
        "print(sorted({'mindspore', 'torch', 'numpy', 'pydantic', 'yaml'} & set(sys.modules)))"
    )
    assert done.stdout.splitlines() == [str(installed.site / "msprobe" / "__init__.py"), "[]"]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("origin", "aliases"),
    [
        (
            "msprobe_ms.mindspore",
            {
                "msprobe.mindspore": ("PrecisionDebugger", "seed_all"),
                "msprobe.mindspore.common.utils": ("MsprobeInitStep", "MsprobeStep"),
            },
        ),
        ("msprobe_ms.pytorch", {"msprobe.pytorch": ("PrecisionDebugger", "seed_all")}),
        ("msprobe_ms.compat.compare", {"msprobe.pytorch": ("compare", "compare_distributed")}),
    ],
)
def test_scripts_for_msprobe_get_the_very_objects(
    changeable: Environment, origin: str, aliases: dict[str, tuple[str, ...]]
) -> None:
    changeable.borrow()
    code = [f"from {alias} import {', '.join(names)}" for alias, names in aliases.items()]
    code.append(f"import {origin} as origin")
    code += [f"assert {name} is origin.{name}" for names in aliases.values() for name in names]
    done = changeable.python("\n".join([*code, "print('same')"]))
    assert done.stdout.splitlines()[-1] == "same"


def test_alone_there_is_no_conflict(installed: Environment) -> None:
    assert installed.python(DESCRIBE).stdout == "None\n"


def test_installed_after_the_neighbour_the_alias_warns_once(
    environment: Environment, wheel: Path, neighbour: Path
) -> None:
    environment.pip("install", "--no-deps", neighbour)
    environment.pip("install", "--no-deps", wheel)
    message = environment.python(DESCRIBE).stdout
    assert message.splitlines()[:2] == [
        "msprobe-ms 0.1.0 and mindstudio-probe 26.2.0 are both installed, "
        "and both own the import name and the command `msprobe`.",
        f"`import msprobe` gives msprobe-ms 0.1.0 ({environment.site / 'msprobe'}).",
    ]
    warned = environment.python("import msprobe, msprobe_ms.compat.neighbour")
    assert warned.stdout == "", "no file of the neighbour may run"
    assert warned.stderr.count("WARNING") == 1
    first, *further = message.splitlines(keepends=True)
    assert warned.stderr.endswith(first + "".join(f"  {line}" for line in further))


def test_overwritten_by_the_neighbour_the_advice_brings_the_alias_back(
    changeable: Environment, neighbour: Path
) -> None:
    changeable.pip("install", "--no-deps", neighbour)
    message = changeable.python(DESCRIBE).stdout
    assert f"`import msprobe` gives mindstudio-probe 26.2.0 ({changeable.site / 'msprobe'})." in message
    assert changeable.python("import msprobe").stdout == "theirs: __init__.py\n"

    uninstall, install = advised(message)
    assert uninstall == ["uninstall", "mindstudio-probe"]
    changeable.pip(*uninstall)
    changeable.pip(*install)
    assert changeable.python(DESCRIBE).stdout == "None\n"
    restored = changeable.python("import msprobe; print(msprobe.__file__)")
    assert (restored.stdout, restored.stderr) == (str(changeable.site / "msprobe" / "__init__.py") + "\n", "")


def test_from_an_index_the_advice_names_the_distribution(
    environment: Environment, wheel: Path, neighbour: Path
) -> None:
    environment.pip("install", "--no-deps", "--find-links", wheel.parent, "msprobe-ms")
    environment.pip("install", "--no-deps", neighbour)
    assert advised(environment.python(DESCRIBE).stdout) == [
        ["uninstall", "mindstudio-probe"],
        ["install", "--force-reinstall", "--no-deps", "msprobe-ms"],
    ]


def test_a_neighbour_that_leaves_some_of_our_files_is_called_a_mixture(changeable: Environment, tmp_path: Path) -> None:
    changeable.pip("install", "--no-deps", neighbour_wheel(tmp_path, files=("mindspore/__init__.py",)))
    gives = f"`import msprobe` gives a mixture of both, which will not work ({changeable.site / 'msprobe'})."
    assert gives in changeable.python(DESCRIBE).stdout
    assert gives in changeable.python("import msprobe").stderr


def test_the_path_decides_between_two_folders(changeable: Environment, neighbour: Path, tmp_path: Path) -> None:
    changeable.pip("install", "--no-deps", "--target", tmp_path / "theirs", neighbour)
    first = changeable.python(DESCRIBE, PYTHONPATH=str(tmp_path / "theirs")).stdout
    assert f"gives mindstudio-probe 26.2.0 ({tmp_path / 'theirs' / 'msprobe'})." in first


def test_when_neither_has_the_name_it_says_so(changeable: Environment, tmp_path: Path) -> None:
    changeable.pip("install", "--no-deps", neighbour_wheel(tmp_path, files=()))
    shutil.rmtree(changeable.site / "msprobe")
    assert "`import msprobe` gives neither: it is not found." in changeable.python(DESCRIBE).stdout


def test_an_editable_install_is_advised_with_its_folder(
    environment: Environment, neighbour: Path, tmp_path: Path
) -> None:
    source = copy_of_sources(tmp_path / "source")
    environment.borrow()
    environment.pip("install", "--no-deps", "--no-build-isolation", "-e", source)
    assert environment.python("import msprobe; print(msprobe.__file__)").stdout.startswith(str(source))

    environment.pip("install", "--no-deps", neighbour)
    message = environment.python(DESCRIBE).stdout
    assert f"gives mindstudio-probe 26.2.0 ({environment.site / 'msprobe'})." in message
    assert advised(message)[1] == ["install", "--force-reinstall", "--no-deps", "-e", source.as_uri()]
    for command in advised(message):
        environment.pip(*command, *(["--no-build-isolation"] if command[0] == "install" else []))
    assert environment.python(DESCRIBE).stdout == "None\n"
    assert environment.python("import msprobe; print(msprobe.__file__)").stdout.startswith(str(source))


def test_packages_of_other_tools_come_before_our_modules_and_lose_nothing(changeable: Environment) -> None:
    """Beside them in one folder: neither is overwritten, whichever is installed last."""
    for name in ("maca_tools", "msit_llm"):
        assert (changeable.site / f"{name}.py").is_file()
        (changeable.site / name).mkdir()
        (changeable.site / name / "__init__.py").write_text("theirs = True")
    done = changeable.python("import maca_tools, msit_llm; print(maca_tools.theirs, msit_llm.theirs)")
    assert done.stdout == "True True\n"
