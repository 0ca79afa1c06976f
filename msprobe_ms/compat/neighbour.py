"""Detect that mindstudio-probe is installed too, which also owns the import name ``msprobe``.

pip lets the later install overwrite the earlier one's files without a word, so either may be the one a script gets.
"""

from __future__ import annotations

import json
import sys
from importlib import util
from pathlib import Path

from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

OURS = "msprobe-ms"
THEIRS = "mindstudio-probe"

_METADATA = "mindstudio[-_]probe-*"

#: What the alias package gives. Each of ours imports ``msprobe_ms``, which no file of the neighbour does.
_ALIASES = ("__init__.py", "mindspore/__init__.py", "mindspore/common/utils.py", "pytorch/__init__.py")


def describe_conflict() -> str | None:
    """Return what a user has to know when mindstudio-probe is installed too; ``None`` when it is not.

    Names both versions, which of the two ``import msprobe`` gives and how to choose. Imports neither.
    """
    if not _is_there():
        return None
    from importlib import metadata  # here, as it takes a tenth of the time that a small command takes

    try:
        theirs = f"{THEIRS} {metadata.version(THEIRS)}"
    except metadata.PackageNotFoundError:
        return None
    try:
        ours = f"{OURS} {metadata.version(OURS)}"
    except metadata.PackageNotFoundError:
        ours = tr("{ours} (not installed, run from {parents})", ours=OURS, parents=Path(__file__).parents[1])
    return tr(
        "{ours} and {theirs} are both installed, and both own the import name and the command "
        "`msprobe`.\n`import msprobe` gives {whose_alias}.\nTo keep only {other_ours}:\n  pip uninstall "
        "{other_theirs}\n  pip install --force-reinstall --no-deps {our_requirement}\nTo keep both, "
        "write `from msprobe_ms.mindspore import PrecisionDebugger` (or `msprobe_ms.pytorch`) and "
        "run\n`python -m msprobe_ms`: these are always {other_ours}.",
        ours=ours,
        theirs=theirs,
        whose_alias=_whose_alias(ours, theirs),
        other_ours=OURS,
        other_theirs=THEIRS,
        our_requirement=_our_requirement(),
    )


def _is_there() -> bool:
    """Whether any folder of modules holds what pip leaves of the neighbour."""
    return any(any(Path(folder).glob(_METADATA)) for folder in sys.path)


def warn_of_conflict() -> None:
    """Log `describe_conflict` as one warning, if there is a conflict."""
    if conflict := describe_conflict():
        logger.warning("%s", conflict)


def _whose_alias(ours: str, theirs: str) -> str:
    try:
        spec = util.find_spec("msprobe")
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return tr("neither: it is not found")
    folder = Path(next(iter(spec.submodule_search_locations)))
    owners = {_is_ours(folder / name) for name in _ALIASES}
    if owners == {True}:
        return f"{ours} ({folder})"
    if owners == {False}:
        return f"{theirs} ({folder})"
    return tr("a mixture of both, which will not work ({folder})", folder=folder)


def _is_ours(file: Path) -> bool:
    try:
        return b"msprobe_ms" in file.read_bytes()
    except OSError:
        return False


def _our_requirement() -> str:
    """What ``pip install`` takes to install this distribution again: its name, or the place it came from."""
    from importlib import metadata

    try:
        origin = json.loads(metadata.distribution(OURS).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return OURS
    if "url" not in origin:
        return OURS
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    scheme = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f"{editable}{scheme}{origin['url']}"
