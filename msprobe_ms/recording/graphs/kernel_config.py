"""The configuration files of MindSpore's own kernel dump, what each key of ours becomes there, and how it is found.

Layouts and names are those of the msprobe family, so that its tools know the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from msprobe_ms.support.process import ThisProcess

if TYPE_CHECKING:
    from msprobe_ms.config import Config


import atexit
import os
import re
import tempfile
from pathlib import Path

#: A configuration of the kernel dump, as it is written.
Document = dict[str, Any]

#: The devices of one machine.
_DEVICES = tuple(range(8))
_IO = {"all": 0, "input": 1, "output": 2}
#: Overflow checks of the processor's units: both, vector and cube cores, atomic adds.
_OVERFLOW = {"all": 3, "aicore": 1, "atomic": 2}
_EXCEPTIONS = 4
#: What the framework computes of a tensor where nothing else is asked for, in its words.
DEFAULT_CATEGORIES = ("max", "min", "avg", "l2norm")
#: After this release the framework is told which hash is meant.
_ONE_HASH = Version("2.7.0")

#: So many steps are named one by one.
_MOST_SINGLE = 100

#: The highest number of an iteration; the framework counts with 32 bits. Nothing records it.
NOWHERE = 2**32 - 1


def kernel_dump(config: Config, framework_version: str) -> Document:
    """Tasks statistics and tensor, graphs run kernel by kernel: ``kernel_kbyk_dump.json``."""
    common = _common(config)
    common["statistic_category"] = categories(config, framework_version) if config.task == "statistics" else []
    return {"common_dump_settings": common, "e2e_dump_settings": _end_to_end(config)}


def jit_dump(config: Config, folder: Path, framework_version: str) -> Document:
    """Compiled functions in dynamic graphs: all tensors, of which some are recorded."""
    whole = {"task": "tensor", "list": (), "data_mode": frozenset({"all"}), "async_dump": False}
    document = for_cpu(kernel_dump(config.model_copy(update=whole), framework_version))
    return document | {"common_dump_settings": document["common_dump_settings"] | {"path": str(folder)}}


def graph_dump(config: Config) -> Document:
    """Tasks statistics and tensor, graphs run as a whole: ``kernel_graph_dump.json``."""
    file_format = config.file_format if config.task == "tensor" else "npy"
    return {"common_dump_settings": _common(config) | {"op_debug_mode": 0, "file_format": file_format}}


def overflow_check(config: Config) -> Document:
    """Task overflow_check, graphs run as a whole: ``kernel_graph_overflow_check.json``. ``step`` has no effect."""
    common = _everything(config) | {"saved_data": "full"}
    return {"common_dump_settings": common | {"op_debug_mode": _OVERFLOW[config.check_mode], "file_format": "npy"}}


def exception_check(config: Config) -> Document:
    """Task exception_dump: ``kernel_graph_exception_check.json``. ``step`` has no effect."""
    common = _everything(config) | {"saved_data": "tensor", "op_debug_mode": _EXCEPTIONS, "file_format": "npy"}
    return {"common_dump_settings": common, "e2e_dump_settings": _end_to_end(config)}


def for_cpu(document: Document) -> Document:
    """What does the same where the framework computes no statistics and cannot be stopped: on CPU.

    Tensors are taken, to be reduced afterwards; "all" iterations are all but one, which stands for not recording.
    """
    common = dict(document["common_dump_settings"])
    if common["saved_data"] != "tensor":
        common["saved_data"] = "tensor"
    if common["iteration"] == "all":
        common["iteration"] = f"0-{NOWHERE - 1}"
    return document | {"common_dump_settings": common}


def categories(config: Config, framework_version: str) -> list[str]:
    """The statistics of each tensor that ``summary_mode`` asks for, in the framework's words."""
    mode = config.summary_mode
    if mode == "statistics":
        return list(DEFAULT_CATEGORIES)
    digest = "hash:md5" if Version(framework_version) > _ONE_HASH else "md5"
    words = {"mean": "avg", "md5": digest, "hash": digest}
    asked: Sequence[str] = (mode,) if isinstance(mode, str) else mode
    return list(dict.fromkeys(words.get(name, name) for name in asked))


def passes_graph_launch(document: Document) -> bool:
    """Whether a graph run as a whole needs ``MS_ACL_DUMP_CFG_PATH`` too: all kernels, or those of some steps only."""
    common = document["common_dump_settings"]
    return common["dump_mode"] == 0 and (common["iteration"] != "all" or not common["kernels"])


def _common(config: Config) -> Document:
    (io,) = config.data_mode
    return {
        "dump_mode": 1 if config.list else 0,
        "path": str(config.dump_path),
        "net_name": "Net",
        "iteration": _iterations(sorted(config.step)),
        "saved_data": "tensor" if config.task == "tensor" else "statistic",
        "input_output": _IO[io],
        "kernels": list(config.list),
        "support_device": sorted(config.rank) or list(_DEVICES),
    }


def _iterations(steps: Sequence[int]) -> str:
    """``0|5|6``; of many steps as ranges, ``0-99|200``: the framework reads the text again for every kernel."""
    if len(steps) <= _MOST_SINGLE:
        return "|".join(map(str, steps)) or "all"
    ends = [place for place, step in enumerate(steps) if place + 1 == len(steps) or steps[place + 1] != step + 1]
    begins = [0, *(end + 1 for end in ends[:-1])]
    spans = zip(begins, ends, strict=True)
    return "|".join(f"{steps[a]}" if a == b else f"{steps[a]}-{steps[b]}" for a, b in spans)


def _everything(config: Config) -> Document:
    unfiltered = {"dump_mode": 0, "iteration": "all", "input_output": 0, "kernels": []}
    return _common(config.model_copy(update={"data_mode": frozenset({"all"})})) | unfiltered


def _end_to_end(config: Config) -> Document:
    settings: Document = {"enable": not config.async_dump, "trans_flag": True}
    if config.task in ("statistics", "exception_dump"):
        settings |= {"stat_calc_mode": config.device, "device_stat_precision_mode": config.precision}
    return settings


class Environment:
    """Sets variables of this process, and puts back what was there."""

    def __init__(self) -> None:
        #: Name → the value before, the value set; None for no value.
        self._changed: dict[str, tuple[str | None, str | None]] = {}

    def set(self, name: str, value: str | None) -> None:
        """Give ``name`` this value; None takes it out."""
        before = self._changed[name][0] if name in self._changed else os.environ.get(name)
        self._changed[name] = (before, value)
        _put(name, value)

    def put_back(self) -> None:
        """As before, but for what somebody else has changed meanwhile."""
        changed, self._changed = self._changed, {}
        for name, (before, value) in changed.items():
            if os.environ.get(name) == value:
                _put(name, before)


def _put(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


#: What MindSpore accepts: letters, digits, and these.
_PLAIN = re.compile(r"[A-Za-z0-9_/-]+")


def plain_path(folder: Path) -> Path:
    """``folder`` itself, or a link to it of plain letters, which goes when the process ends.

    Raises OSError when no link can be made.
    """
    if _PLAIN.fullmatch(str(folder)):
        return folder
    beside = Path(tempfile.mkdtemp(prefix="msprobe_"))
    link = beside / "dump"
    try:
        link.symlink_to(folder, target_is_directory=True)
    except OSError:
        beside.rmdir()
        raise
    atexit.register(_remove, link, ThisProcess())
    return link


def _remove(link: Path, process: ThisProcess) -> None:
    # A forked child leaves what its parent uses.
    if process.is_mine and link.is_symlink():
        link.unlink()
        link.parent.rmdir()
