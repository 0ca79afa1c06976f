"""Words of a configuration: its tasks, its levels and what they mean to the rest of the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from msprobe_ms.support.translation import tr

#: The tasks and levels that work, as types: an editor proposes them, a type checker refuses all others.
TaskName: TypeAlias = Literal["statistics", "tensor", "structure", "overflow_check", "exception_dump", "grad_probe"]
LevelName: TypeAlias = Literal["L0", "L1", "mix", "L2", "debug"]

#: Tasks of the msprobe family that record nothing → what does that work; each may have its section in a file.
OTHER_TASKS = {
    "run_ut": tr("is a command, msprobe run_ut"),
    "online_run_ut": tr("is a key of the section tensor"),
    "acc_check": tr("is a command, msprobe acc_check"),
    "diff_check": tr("is not supported"),
    "nan_check": tr("is not supported, overflow_check is"),
}

#: Tasks that write a dump, and those of them that store whole tensors.
DUMP_TASKS = ("statistics", "tensor", "structure", "overflow_check", "exception_dump")
TENSOR_TASKS = ("tensor", "overflow_check")
#: Those that record only what is found wrong: where they record nothing, nothing is.
CHECKS = ("overflow_check", "exception_dump")

#: The task that writes gradients at each call of an optimizer, the one that calls APIs again; and all that work.
GRADIENT_TASK = "grad_probe"
PERTURBATION_TASK = "free_benchmark"
TASKS = (*DUMP_TASKS, GRADIENT_TASK, PERTURBATION_TASK)

#: Levels at which modules, and at which APIs, are recorded.
MODULE_LEVELS = ("L0", "mix")
API_LEVELS = ("L1", "mix", "L2")

#: Levels at which a selected module or API opens what runs inside it.
CASCADING_LEVELS = ("mix", "L2")

#: What a list as ``summary_mode`` may name (level L2, compiled graphs), as the msprobe family writes it.
CATEGORIES = (
    "max",
    "min",
    "mean",
    "l2norm",
    "count",
    tr("negative zero count"),
    tr("positive zero count"),
    "zero count",
    "nan count",
    tr("negative inf count"),
    tr("positive inf count"),
    "hash",
    "md5",
)

#: Keys of a task's section that compiled graphs heed at level L2 → the tasks whose kernels they concern.
KERNEL_KEYS = {
    "device": ("statistics", "exception_dump"),
    "precision": ("statistics", "exception_dump"),
    "file_format": ("tensor",),
    "check_mode": ("overflow_check",),
}

#: Keys of task free_benchmark alone.
PERTURBATION_KEYS = (
    "pert_mode", "fuzz_device", "fuzz_stage", "handler_type", "fuzz_level", "fuzz_args", "if_preheat", "preheat_step",
    "max_sample",
)  # fmt: skip

#: What ``pert_mode`` may be; the last two are one.
PERTURBATIONS = (
    "improve_precision", "add_noise", "bit_noise", "no_change", "to_cpu", "change_value", "exchange_value",
)  # fmt: skip

#: Those whose results may stand in the place of the API's own.
FIXING = ("improve_precision", "to_cpu")

#: Keys that stand in the section of a task → the tasks whose section may hold them; others stand at the top of a file.
SECTION_KEYS = {
    **dict.fromkeys(("scope", "list"), (*DUMP_TASKS, PERTURBATION_TASK)),
    **dict.fromkeys(("skip", "places", "tensor_list", "data_mode", "summary_mode", "sketch"), DUMP_TASKS),
    "overflow_nums": ("overflow_check",),
    **dict.fromkeys(("grad_level", "param_list", "bounds"), (GRADIENT_TASK,)),
    **dict.fromkeys(PERTURBATION_KEYS, (PERTURBATION_TASK,)),
    **KERNEL_KEYS,
}

#: Keys of a task's section that say where its calls are sent, if ``online_run_ut`` is true; else they have no effect.
ONLINE_KEYS = (
    "online_run_ut", "nfs_path", "host", "port", "tls_path", "unencrypted", "online_disk", "online_wait",
)  # fmt: skip


class Selection(TypedDict, total=False):
    """The keys of a configuration that ``record`` takes besides its own arguments, as types; docs/config.md has all."""

    rank: Sequence[int | str]
    extra_info: bool
    async_dump: bool
    permissions: str
    max_memory: int
    optimizer: bool
    parameters: bool
    model_itself: bool
    layers: bool
    primitives: bool
    numbers: Literal["by_name", "by_position"]
    call_sites: bool
    strides: bool
    api_list: str
    acl_config: str
    scope: Sequence[str | None] | Mapping[str, str | None]
    list: Sequence[str]
    skip: int
    places: Sequence[Any]
    tensor_list: Sequence[str]
    data_mode: Sequence[str]
    summary_mode: str | Sequence[str]
    sketch: bool
    overflow_nums: int
    device: Literal["host", "device"]
    precision: Literal["high", "low"]
    file_format: Literal["npy", "bin"]
    check_mode: Literal["all", "aicore", "atomic"]
