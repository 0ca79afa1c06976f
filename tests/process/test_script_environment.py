"""``msprobe run`` is python itself to a script: what it sees, what it raises and how it ends."""

from __future__ import annotations

import compileall
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from processes import interruptible
from repository import ROOT

from msprobe_ms.recording.calls import _frame_text

SHOWS = Path(__file__).with_name("environment_of_a_script.py")
OURS = "-m", "msprobe_ms", "run"

#: What differs, as it must: the modules that read the command line and the configuration are there; one finder more
#: sees frameworks being imported; our frames are below the script's.
DIFFERING = {"modules", "finders", "frames"}


def python(folder: Path, *arguments: str, **more: Any) -> CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONUNBUFFERED": "",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        **more.pop("env", {}),
    }
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=100,
        check=False, **more,
    )  # fmt: skip


def both(folder: Path, *arguments: str, **more: Any) -> tuple[CompletedProcess[str], CompletedProcess[str]]:
    """What python makes of them, and what ``msprobe run`` does, but for its word that nothing was recorded."""
    alone, ours = python(folder, *arguments, **more), python(folder, *OURS, *arguments, **more)
    said = [line for line in ours.stderr.splitlines(keepends=True) if "msprobe run: nothing is recorded" not in line]
    ours.stderr = "".join(said)
    return alone, ours


def as_a_file(folder: Path) -> list[str]:
    shutil.copy(SHOWS, folder / "show.py")
    return ["show.py"]


def by_a_longer_path(folder: Path) -> list[str]:
    (folder / "inner").mkdir()
    as_a_file(folder)
    return ["./inner/../show.py"]


def by_its_whole_path(folder: Path) -> list[str]:
    return [str(folder / as_a_file(folder)[0])]


def by_a_link(folder: Path) -> list[str]:
    (folder / "inner").mkdir()
    shutil.copy(SHOWS, folder / "inner" / "other.py")
    (folder / "show.py").symlink_to("inner/other.py")
    return ["show.py"]


def compiled(folder: Path) -> list[str]:
    as_a_file(folder)
    compileall.compile_file(folder / "show.py", quiet=1, legacy=True)
    return ["show.pyc"]


def as_a_module(folder: Path) -> list[str]:
    as_a_file(folder)
    return ["-m", "show"]


def as_a_package(folder: Path) -> list[str]:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("import sys; sys.first_argument = sys.argv[0]")
    shutil.copy(SHOWS, folder / "package" / "__main__.py")
    return ["-m", "package"]


def as_a_folder(folder: Path) -> list[str]:
    (folder / "whole").mkdir()
    shutil.copy(SHOWS, folder / "whole" / "__main__.py")
    return ["whole"]


def as_an_archive(folder: Path) -> list[str]:
    with zipfile.ZipFile(folder / "whole.zip", "w") as file:
        file.write(SHOWS, "__main__.py")
    return ["whole.zip"]


FORMS: list[Callable[[Path], list[str]]] = [
    as_a_file, by_a_longer_path, by_its_whole_path, by_a_link, compiled, as_a_module, as_a_package, as_a_folder,
    as_an_archive,
]  # fmt: skip


def told(result: CompletedProcess[str]) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(re.sub(r" at 0x[0-9a-f]+", "", result.stdout))
    return found


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_script_sees_what_python_shows_it(form: Callable[[Path], list[str]], tmp_path: Path) -> None:
    arguments = [*form(tmp_path), "--lr", "1", "-m", "--", "-h"]
    alone, ours = map(told, both(tmp_path, *arguments))
    assert {key for key in alone if ours[key] != alone[key]} <= DIFFERING, {
        key: (alone[key], ours[key]) for key in alone if ours[key] != alone[key] and key not in DIFFERING
    }
    assert set(alone["modules"]) <= set(ours["modules"])
    assert "numpy" not in ours["modules"], "what records is imported with a framework"
    assert ours["finders"][1:] == alone["finders"]
    assert ours["frames"][-len(alone["frames"]) :] == alone["frames"]
    assert not any("msprobe" in frame for frame in alone["frames"])


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "latin-1:xmlcharrefreplace", "PYTHONUNBUFFERED": "1"},
        {"PYTHONWARNINGS": "error", "PYTHONSAFEPATH": "1", "PYTHONHASHSEED": "7", "PYTHONOPTIMIZE": "2"},
        {"PYTHONUTF8": "1", "PYTHONDEVMODE": "1"},
    ],
    ids=" ".join,
)
def test_and_what_the_environment_says(environment: dict[str, str], tmp_path: Path) -> None:
    alone, ours = map(told, both(tmp_path, *as_a_file(tmp_path), env=environment))
    assert {key for key in alone if ours[key] != alone[key]} <= DIFFERING


ENDS = {
    "a status": "import sys; sys.exit(7)",
    "a text": "import sys; sys.exit('no data')",
    "at once": "import os; print('lost'); os._exit(3)",
    "an exception": "def f():\n    1 / 0\nf()",
    "a group": "raise ExceptionGroup('both', [ValueError('a'), TypeError('b')])",
    "no syntax": "def f(:\n    pass",
    "an interrupt": "raise KeyboardInterrupt",
    "a broken pipe": "raise BrokenPipeError(32, 'Broken pipe')",
    "an error of ours": "from msprobe_ms.support.errors import UsageError\nraise UsageError('mine')",
    "a hook": "import sys\nsys.excepthook = lambda *found: print(found[0], found[2].tb_next)\n1 / 0",
    "functions at the end": "import atexit\nprint('a')\natexit.register(print, 'c')\natexit.register(print, 'b')",
    "what was last": "import atexit, sys, traceback\n"
    "atexit.register(lambda: traceback.print_exception(sys.last_type, sys.last_value, sys.last_traceback))\n1 / 0",
    "a thread": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(.3), print('later'))).start()\nprint('now')",
    "main at the end": "import atexit, sys\natexit.register(lambda: print(sys.modules['__main__'].x))\nx = 3",
    "a folder": "import os\nos.chdir('/')\nprint(open(os.path.join(os.path.dirname(__file__), 'data')).read())",
    "hints": "'''mine'''\nfrom __future__ import annotations\nimport dataclasses, typing\nx: int = 1\n"
    "@dataclasses.dataclass\nclass D:\n    a: 'int' = 3\nprint(typing.get_type_hints(D), __doc__, __annotations__)",
}


@pytest.mark.parametrize("code", ENDS.values(), ids=ENDS)
def test_a_script_ends_as_it_does_with_python(code: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(code)
    (tmp_path / "data").write_text("beside it")
    alone, ours = both(tmp_path, "train.py")
    assert (ours.returncode, ours.stdout, ours.stderr) == (alone.returncode, alone.stdout, alone.stderr)


@pytest.mark.parametrize("target", [["-m", "absent"], ["-m", "package"], ["-m", "os.absent"], ["empty"]])
def test_what_python_cannot_run_ends_as_with_python(target: list[str], tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "empty").mkdir()
    alone, ours = both(tmp_path, *target)
    assert (ours.returncode, ours.stdout, ours.stderr) == (alone.returncode, alone.stdout, alone.stderr)


@pytest.mark.parametrize("handled", [False, True])
def test_an_interrupt_from_outside_ends_it_by_the_signal(handled: bool, tmp_path: Path) -> None:
    code = "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt:\n"
    code += "    print('handled')" if handled else "    raise"
    (tmp_path / "train.py").write_text(code)
    ends = []
    for arguments in (["train.py"], [*OURS, "train.py"]):
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=interruptible,
        )  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        ends.append((process.returncode, output, errors.split("Traceback")[-1].splitlines()[-1:]))
    assert ends[0][0] == (0 if handled else -signal.SIGINT)
    if handled:  # the log says that nothing was recorded
        ends = [end[:2] for end in ends]  # type: ignore[misc]
    assert ends[1] == ends[0]


def test_what_is_printed_arrives_when_it_would(tmp_path: Path) -> None:
    """A pipe is buffered in blocks, and what is in them at the end is written."""
    (tmp_path / "train.py").write_text("import os\nprint('buffered')\nos.write(1, b'first\\n')")
    alone, ours = both(tmp_path, "train.py")
    assert ours.stdout == alone.stdout == "first\nbuffered\n"


def test_a_script_from_a_pipe_is_run(tmp_path: Path) -> None:
    """As a shell makes of ``<(command)``."""
    os.mkfifo(tmp_path / "train.py")
    process = subprocess.Popen(
        [sys.executable, *OURS, "train.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    (tmp_path / "train.py").write_text("print('ran')")
    assert process.communicate(timeout=100)[0] == "ran\n"


def test_a_source_in_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nothing is left in it for the text of a call site."""
    os.mkfifo(tmp_path / "train.py")
    signal.alarm(20)
    try:
        assert (
            _frame_text(str(tmp_path / "train.py"), 1, "<module>")
            == f"File {tmp_path}/train.py, line 1, in <module>, \n "
        )
    finally:
        signal.alarm(0)
