"""Types of a configuration's keys: what each accepts, and what it says of anything else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from msprobe_ms.config.values import (
    Rejected,
    bounds,
    call_place,
    counting,
    numbers,
    one_of,
    pattern,
    skip_count,
)
from msprobe_ms.config.vocabulary import CATEGORIES, OTHER_TASKS, PERTURBATIONS, TASKS
from msprobe_ms.support.files import Permissions
from msprobe_ms.support.text import show
from msprobe_ms.support.translation import tr, tr_list

#: Owners read and write, nobody else writes but a group, nobody executes.
_FILE_MODE = re.compile("06(?:00|40|44|60|64)")

#: The largest ``max_memory``, in MiB: 16 TiB.
MOST_MEMORY = 1 << 24

DATA_MODES = ("all", "input", "output", "forward", "backward", "parameters")


def _data_mode(value: frozenset[str]) -> frozenset[str]:
    if not value:
        raise Rejected(
            ((), tr("[] is not accepted; use a list of one or more of {data_modes}", data_modes=tr_list(DATA_MODES)))
        )
    return frozenset({"all"}) if "all" in value else value


def _summary_mode(value: object) -> object:
    if not isinstance(value, (list, tuple)):
        return one_of("statistics", "md5", elsewhere={"xor": tr("is not supported")})(value)
    if not value:
        raise Rejected(
            ((), tr("[] is not accepted; use statistics, md5, or {categories}", categories=tr_list(CATEGORIES)))
        )
    checked = one_of(*CATEGORIES)
    mistakes = []
    for place, member in enumerate(value):
        try:
            checked(member)
        except Rejected as rejected:
            mistakes += [((place, *inside), text) for inside, text in rejected.mistakes]
    if mistakes:
        raise Rejected(*mistakes)
    return tuple(dict.fromkeys(value))


def _overflow_number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and (value == -1 or value > 0):
        return value
    raise Rejected(((), tr("{value} is not accepted; use an integer of 1 or more, or -1 for all", value=show(value))))


def _permissions(value: object) -> Permissions:
    if isinstance(value, Permissions):
        return value
    if isinstance(value, str) and _FILE_MODE.fullmatch(value):
        return Permissions.of_files(int(value, 8))
    accepted = tr('the octal mode of files as a text: "0600", "0640", "0644", "0660", or "0664"')
    raise Rejected(((), tr("{value} is not accepted; use {accepted}", value=show(value), accepted=accepted)))


def _max_memory(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_MEMORY:
        return value
    raise Rejected(
        (
            (),
            tr(
                "{value} is not accepted; use a whole number of MiB from 1 to {most_memory}, such as 2048",
                value=show(value),
                most_memory=MOST_MEMORY,
            ),
        )
    )


def number_from(low: int, high: int, nothing: int | None = None) -> Callable[[object], int | float]:
    """Return what checks a number within bounds; ``nothing`` stands for none."""

    def check(value: object) -> int | float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and (low <= value <= high or value == nothing):  # type: ignore[operator]
            return value  # type: ignore[return-value]
        raise Rejected(
            (
                (),
                tr("{value} is not accepted; use a number from {low} to {high}", value=show(value), low=low, high=high),
            )
        )

    return check


def _path(value: object) -> object:
    text = str(value) if isinstance(value, (str, Path)) else None
    if text is not None and (not text.strip() or "\0" in text):
        raise Rejected(((), tr("{value} is not accepted; use a path", value=show(value))))
    return value


Task = Annotated[
    Literal["statistics", "tensor", "structure", "overflow_check", "exception_dump", "grad_probe", "free_benchmark"],
    BeforeValidator(one_of(*TASKS, elsewhere=OTHER_TASKS)),
]
Level = Annotated[Literal["L0", "L1", "mix", "L2", "debug"], BeforeValidator(one_of("L0", "L1", "mix", "L2", "debug"))]
SummaryMode = Annotated[Literal["statistics", "md5"] | tuple[str, ...], BeforeValidator(_summary_mode)]
DataMode = Annotated[
    frozenset[Annotated[str, BeforeValidator(one_of(*DATA_MODES))]],
    AfterValidator(_data_mode),
]
Numbers = Annotated[frozenset[int], PlainValidator(numbers)]
Patterns = tuple[Annotated[str, AfterValidator(pattern)], ...]
Skip = Annotated[int, PlainValidator(skip_count)]
Places = tuple[Annotated[str, AfterValidator(call_place)], ...]
Switch = Annotated[bool, Field(strict=True)]
CheckMode = Annotated[Literal["all", "aicore", "atomic"], BeforeValidator(one_of("all", "aicore", "atomic"))]
FileFormat = Annotated[Literal["npy", "bin"], BeforeValidator(one_of("npy", "bin"))]
Device = Annotated[Literal["host", "device"], BeforeValidator(one_of("host", "device"))]
Precision = Annotated[Literal["high", "low"], BeforeValidator(one_of("high", "low"))]
OverflowNumber = Annotated[int, PlainValidator(_overflow_number)]
CallNumbers = Annotated[Literal["by_name", "by_position"], BeforeValidator(one_of("by_name", "by_position"))]
PermissionBits = Annotated[Permissions, PlainValidator(_permissions)]
MaxMemory = Annotated[int, PlainValidator(_max_memory)]
GradientLevel = Annotated[Literal["L0", "L1", "L2"], BeforeValidator(one_of("L0", "L1", "L2"))]
Names = tuple[Annotated[str, Field(strict=True, min_length=1)], ...]
Bounds = Annotated[tuple[float, ...], PlainValidator(bounds)]
FilePath = Annotated[Path, BeforeValidator(_path)]
Text = Annotated[str, Field(strict=True)]
Port = Annotated[int, PlainValidator(number_from(1, 65535, nothing=-1))]
OnlineDisk = Annotated[int, PlainValidator(number_from(1, MOST_MEMORY))]
OnlineWait = Annotated[float, PlainValidator(number_from(0, 86400))]
Perturbation = Annotated[str, BeforeValidator(one_of(*PERTURBATIONS))]
FuzzDevice = Annotated[Literal["npu", "cpu"], BeforeValidator(one_of("npu", "cpu"))]
FuzzStage = Annotated[Literal["forward", "backward"], BeforeValidator(one_of("forward", "backward"))]
FuzzArguments = Annotated[Literal["first", "all"], BeforeValidator(one_of("first", "all"))]
HandlerType = Annotated[Literal["check", "fix"], BeforeValidator(one_of("check", "fix"))]
FuzzLevel = Annotated[Literal["L1"], BeforeValidator(one_of("L1"))]
Count = Annotated[int, PlainValidator(counting)]
