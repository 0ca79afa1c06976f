"""The interface of MetaX's accuracy tool: ``start_record``, ``record``, ``record_switch``, ``gen_report``.

What its options mean here, and what differs: docs/coming_from_metax.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msprobe_ms.comparison.api.compare import compare
from msprobe_ms.comparison.api.compared import Compared
from msprobe_ms.comparison.reporting.files import claimed_timestamp
from msprobe_ms.compat.torch_provider import torch_debugger, torch_framework
from msprobe_ms.dump.names import parse_entry
from msprobe_ms.dump.official_names import entry_of, pattern_of
from msprobe_ms.dump.patterns import is_literal
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Level of ``start_record`` → the task.
_TASKS = {2: "tensor", 1: "statistics", 0: "structure"}
_OPERATOR = '"torch.nn.Conv1d.6.fwd"'


class _Recording(torch_debugger()):  # type: ignore[misc]
    """What one call of ``start_record`` records."""

    #: Folder → recordings that this process has made there; each has a step of its own.
    made: dict[str, int]

    @classmethod
    def begin(cls, settings: dict[str, Any]) -> _Recording:
        """Take the place of the recording that was begun before. Raises ConfigError or UsageError."""
        recording, before = cls(settings=settings), cls._before
        recording.made = {} if before is None else before.made
        if before is not None:
            before.retire()
        folder = str(recording.config.dump_path)
        recording.set_init_step(recording.made.get(folder, 0))
        recording.made[folder] = recording.made.get(folder, 0) + 1
        cls._before = recording
        return recording

    #: The one begun last.
    _before: _Recording | None = None


def start_record(
    enabled: bool = True,
    output_dir: str | os.PathLike[str] = "./record_dir",
    record_level: int = 2,
    record_stack: bool = True,
    record_input: bool = True,
    record_output: bool = True,
    op_range: Sequence[str | None] | None = (),
    op_list: Sequence[str] | None = (),
    skip: int = 0,
    process_group: Any = None,
    ranks: Sequence[int] | None = (),
    *,
    api_list: Sequence[str] | None = None,
    p_list: Sequence[str] | None = None,
) -> None:
    """Record the PyTorch operators that are called from here on, until ``record_switch(False)``.

    ``enabled``       False: nothing is recorded before ``record_switch(True)``
    ``record_level``  2 tensors, 1 their dtype, shape, stride and statistics, 0 names alone
    ``op_range``      two operators, ``["torch.nn.Conv1d.6.fwd", None]``: the first included, the last not; None is open
    ``op_list``       operators, APIs (``torch.nn.ReLU``) or words, ``relu``: all operators called so
                      (the tool's manual calls it ``api_list`` and ``p_list`` as well)
    ``skip``          how many operators are passed over before one is recorded
    ``process_group``, ``ranks``  which of the group's processes record, by their ranks in it; default all of all

    Raises ConfigError or UsageError for what cannot work.
    """
    lists = {"op_list": op_list, "api_list": api_list, "p_list": p_list}
    recording = _Recording.begin(
        {
            "level": "L1",
            "layers": True,
            "numbers": "by_position",
            "dump_path": output_dir,
            "rank": _ranks(process_group, ranks),
            "call_sites": _flag("record_stack", record_stack),
            **_fields(record_level, _flag("record_input", record_input), _flag("record_output", record_output)),
            "scope": _scope(op_range),
            "list": [_pattern(name) for given in lists.items() for name in _texts(*given)],
            "skip": skip + 1 if isinstance(skip, int) and not isinstance(skip, bool) and skip > 0 else skip,
        }
    )
    if _flag("enabled", enabled):
        recording.start()


@contextmanager
def record(*arguments: Any, **options: Any) -> Iterator[None]:
    """Record the block, with the arguments of `start_record`; the files are complete when it ends."""
    start_record(*arguments, **options)
    recording = _Recording.current()
    try:
        yield
    finally:
        if recording is not None:
            recording.stop()
            recording.step()


def record_switch(enabled: bool) -> None:
    """Go on with the recording that `start_record` began, or pause it: its files are up to date then."""
    recording = _Recording.current()
    if recording is None:
        raise UsageError(tr("record_switch: there is nothing to switch; call start_record first"))
    if _flag("enabled", enabled):
        recording.start()
    else:
        recording.stop()


def gen_report(
    dir0: str | os.PathLike[str], dir1: str | os.PathLike[str], output_dir: str | os.PathLike[str] = "./"
) -> None:
    """Compare the recordings of two devices, and write ``accuracy_report_{time}.xlsx`` into ``output_dir``.

    ``dir0`` is the one to trust. Several processes or recordings have a table each, in a folder of that name. The log
    says where the error begins. Raises MsprobeError: what cannot be read, paired or written.
    """
    recording = _Recording.current()
    if recording is not None:
        recording.stop()
    compared = compare(Path(dir1), Path(dir0), profile="maca")
    with claimed_timestamp(Path(output_dir)) as timestamp:
        of_one = isinstance(compared, Compared)
        report = Path(output_dir) / f"accuracy_report_{timestamp}{'.xlsx' if of_one else ''}"
        compared.to_xlsx(report)
    logger.info(tr("{compared}\nreport: {report}", compared=compared, report=report))


def _flag(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise UsageError(
        tr("start_record: {name} {value} is not accepted; give True or False", name=name, value=repr(value))
    )


def _texts(name: str, value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) and each for each in value):
        raise UsageError(
            tr(
                'start_record: {name} {value} is not accepted; give a list of texts, such as ["relu"]',
                name=name,
                value=repr(value),
            )
        )
    return list(value)


def _fields(level: object, inputs: bool, outputs: bool) -> dict[str, Any]:
    """Which values are recorded, as keys of a configuration."""
    if not isinstance(level, int) or isinstance(level, bool) or level not in _TASKS:
        raise UsageError(
            tr(
                "start_record: record_level {level} is not accepted; use 2 (tensors), 1 (dtype, shape, "
                "stride and statistics) or 0 (names)",
                level=repr(level),
            )
        )
    task = _TASKS[level] if inputs or outputs else "structure"
    modes = ["all"] if inputs == outputs else ["input"] if inputs else ["output"]
    return {"task": task, "data_mode": modes, "strides": task == "statistics"}


def _scope(ends: object) -> dict[str, str] | None:
    if ends is None or (isinstance(ends, (list, tuple)) and len(ends) == 0):
        return None
    if not isinstance(ends, (list, tuple)) or len(ends) != 2:
        raise UsageError(
            tr(
                "start_record: op_range {ends} is not accepted; give two ends, [{operator}, None]",
                ends=repr(ends),
                operator=_OPERATOR,
            )
        )
    found = {key: _end(end) for key, end in zip(("from", "until"), ends, strict=True) if end is not None}
    return found or None


def _end(name: object) -> str:
    if isinstance(name, str) and (entry := entry_of(name)) is not None:
        return entry
    if isinstance(name, str) and name and (parse_entry(name) is not None or not is_literal(name)):
        return name
    raise UsageError(
        tr(
            "start_record: op_range: {name} is no operator; give its name, such as {operator}, or None",
            name=repr(name),
            operator=_OPERATOR,
        )
    )


def _pattern(name: str) -> str:
    if (found := entry_of(name) or pattern_of(name)) is not None:
        return found
    return f"class:{name}" if re.fullmatch(r"\w+", name) else name


def _ranks(group: Any, chosen: object) -> list[int]:
    """The ranks in the whole job of those chosen in a group; none for all."""
    if chosen is None:
        chosen = ()
    if not isinstance(chosen, (list, tuple)) or not all(type(rank) is int and rank >= 0 for rank in chosen):
        raise UsageError(
            tr("start_record: ranks {chosen} is not accepted; give a list of numbers from 0 up", chosen=repr(chosen))
        )
    members = torch_framework().group_ranks(group)
    if members is None:
        if group is not None:
            raise UsageError(tr("start_record: process_group is known after torch.distributed.init_process_group"))
        return list(chosen)
    if beyond := [rank for rank in chosen if rank >= len(members)]:
        raise UsageError(
            tr(
                "start_record: ranks {beyond} are not accepted; the group has {count} processes",
                beyond=beyond,
                count=len(members),
            )
        )
    if group is None and not chosen:
        return []
    return [members[rank] for rank in chosen] if chosen else list(members)
