"""Real installs for tests: the project's wheel, bare environments, and a stand-in for mindstudio-probe."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

from repository import ROOT

#: What ``pip --python`` runs by another interpreter, which begins without pip; asking pip for it would start it twice.
_PIP = Path(sysconfig.get_path("purelib")) / "pip" / "__pip-runner__.py"


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that has to succeed."""
    done = subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} exited with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def copy_of_sources(folder: Path) -> Path:
    """What a build reads, copied so that it leaves nothing in the working tree and finds nothing left there."""
    folder.mkdir()
    for name in ("setup.py", "pyproject.toml", "LICENSE", "README.md", "Makefile"):
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder)
    shutil.copytree(ROOT / "msprobe_ms", folder / "msprobe_ms", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return folder


def build_wheel(source: Path, folder: Path, env: dict[str, str] | None = None) -> Path:
    """The wheel of ``source`` (a tree or an sdist), built by pip without a network; ``env`` adds to the environment."""
    options = ("--no-deps", "--no-index", "--no-build-isolation", "-q", "-w")
    everything = {**os.environ, **(env or {})}
    run(sys.executable, "-m", "pip", "wheel", *options, folder, source, cwd=folder.parent, env=everything)
    (wheel,) = folder.glob("*.whl")
    return wheel


class Environment:
    """A virtual environment without packages, or with those of another; ``borrow`` lets it import the tests' own.

    The scripts of a copy start the interpreter of the other.
    """

    def __init__(self, folder: Path, other: Environment | None = None) -> None:
        self.folder = folder
        if other is None:
            run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
        else:
            shutil.copytree(other.folder, folder, symlinks=True)
        self.interpreter = folder / "bin" / "python"
        (self.site,) = folder.glob("lib/python*/site-packages")

    def borrow(self) -> None:
        (self.site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def pip(self, *arguments: str | Path) -> None:
        """``pip`` with ``arguments`` on this environment, without a network; questions are answered with yes."""
        if arguments[0] == "install":
            arguments = (*arguments, "--no-index", "--no-compile")
        elif arguments[0] == "uninstall":
            arguments = (*arguments, "--yes")
        run(self.interpreter, _PIP, *arguments, "-q", cwd=self.folder)

    def python(self, code: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run ``code`` outside the working tree, with nothing but ``env`` in the environment."""
        return run(self.interpreter, "-c", code, cwd=self.folder, env=env)


#: Modules that both distributions have.
SHARED = ("__init__.py", "mindspore/__init__.py", "mindspore/common/utils.py", "pytorch/__init__.py")


def neighbour_wheel(folder: Path, files: tuple[str, ...] = SHARED) -> Path:
    """A wheel named mindstudio-probe with modules where the real one has them; each prints that it was imported."""
    wheel = folder / "mindstudio_probe-26.2.0-py3-none-any.whl"
    info = "mindstudio_probe-26.2.0.dist-info"
    contents = {f"msprobe/{name}": f"print('theirs: {name}')\n" for name in files}
    contents[f"{info}/METADATA"] = "Metadata-Version: 2.1\nName: mindstudio-probe\nVersion: 26.2.0\n"
    contents[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*contents, f"{info}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
    return wheel
