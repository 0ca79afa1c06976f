"""Model of a configuration: its keys, and which values of one fit those of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationInfo,
    field_validator,
)

from msprobe_ms.config.fields import (
    Bounds,
    CallNumbers,
    CheckMode,
    Count,
    DataMode,
    Device,
    FileFormat,
    FilePath,
    FuzzArguments,
    FuzzDevice,
    FuzzLevel,
    FuzzStage,
    GradientLevel,
    HandlerType,
    Level,
    MaxMemory,
    Names,
    Numbers,
    OnlineDisk,
    OnlineWait,
    OverflowNumber,
    Patterns,
    PermissionBits,
    Perturbation,
    Places,
    Port,
    Precision,
    Skip,
    SummaryMode,
    Switch,
    Task,
    Text,
)
from msprobe_ms.config.scope import scope_range
from msprobe_ms.config.values import Rejected
from msprobe_ms.config.vocabulary import (
    API_LEVELS,
    FIXING,
    MODULE_LEVELS,
    ONLINE_KEYS,
    PERTURBATION_TASK,
    SECTION_KEYS,
    TENSOR_TASKS,
)
from msprobe_ms.dump.patterns import Range
from msprobe_ms.support.files import Permissions
from msprobe_ms.support.text import show
from msprobe_ms.support.translation import tr, tr_join


class Config(BaseModel):
    """What one debugger does; `docs/config.md` explains every key. Fields carry the names of the keys.

    ``rank``, ``step``   the selected numbers, empty = all
    ``list``             patterns of entry names (`msprobe_ms.dump.patterns`), any hit selects; empty = all
    ``scope``            the range of entries, None = everything
    ``skip``             n for every n-th call; 0 for all
    ``data_mode``        ``{"all"}`` alone, or some of the other `DATA_MODES` (any hit keeps a field)
    ``places``           of calls among those of the call around each (`msprobe_ms.recording.selection.places`)
    ``tensor_list``      patterns of entries whose tensors are stored as well (task statistics)
    ``api_list``         a yaml file with more APIs to record
    ``acl_config``       a json file of CANN's, by which an Ascend device dumps the kernels that PyTorch runs (level L2)
    ``extra_info``       False: no stack.json, no construct.json
    ``summary_mode``     statistics, md5, or (level L2) the `CATEGORIES` that compiled graphs keep of a tensor
    ``sketch``           False: tensors have no sketch
    ``device``, ``precision``, ``file_format``, ``check_mode``  `KERNEL_KEYS`
    ``overflow_nums``    entries that task overflow_check records before it ends; -1 for all
    ``dump_enable``      False: nothing is recorded; unless None, the file is read again when it changes
    ``async_dump``       tensor files are written by a thread of their own
    ``permissions``      of the files that are written; folders may be entered by whoever may read these
    ``optimizer``        True: what optimizers make of each parameter is recorded
    ``parameters``       False: calls of modules are recorded without their parameters
    ``model_itself``     True: the call of the model has an entry, too, where it has no parameters of its own
    ``layers``           True: a call of one of the framework's own layers is an API's at level L1, with all inside
    ``primitives``       False: at levels L1 and mix operator objects of MindSpore are not recorded
    ``numbers``          by_name: the index of an entry counts the calls of its name, from 0; by_position: all calls of
                         the step, from 1
    ``call_sites``       False: stack.json has no lines
    ``strides``          True: leaves of tensors tell their strides
    ``max_memory``       MiB that one step's recording may hold of its own
    ``grad_level``, ``param_list``, ``bounds``  of task grad_probe: what is written of a gradient, parameters by name
                         (empty = all), and where the intervals of L2 end
    ``online_run_ut``    calls are sent to a server that judges them, in place of being kept: to the shared folder
                         ``nfs_path``, or to ``port`` of ``host``, with the certificates of ``tls_path`` (None: of the
                         working folder, if there are any; "" and ``unencrypted``: without)
    ``online_disk``, ``online_wait``  MiB that may wait to be sent, and seconds that a step waits for room
    `PERTURBATION_KEYS`  of task free_benchmark: what calls of APIs are repeated with (docs/free_benchmark.md)
    ``ignored``          key paths that were given, ask for something, and have no effect here
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Fields are validated in this order: the checks of later ones read `task` and `level`.
    task: Task = "statistics"
    level: Level = "L1"
    dump_path: FilePath
    rank: Numbers = frozenset()
    step: Numbers = frozenset()
    extra_info: Switch = True
    dump_enable: Switch | None = None
    async_dump: Switch = False
    permissions: PermissionBits = Permissions()
    max_memory: MaxMemory = 2048
    optimizer: Switch = False
    parameters: Switch = True
    model_itself: Switch = False
    layers: Switch = False
    primitives: Switch = True
    numbers: CallNumbers = "by_name"
    call_sites: Switch = True
    strides: Switch = False
    api_list: FilePath | None = None
    acl_config: FilePath | None = None
    scope: Range | None = None
    list: Patterns = ()
    skip: Skip = 0
    places: Places = ()
    tensor_list: Patterns = ()
    data_mode: DataMode = frozenset({"all"})
    summary_mode: SummaryMode = "statistics"
    sketch: Switch = True
    overflow_nums: OverflowNumber = 1
    device: Device = "host"
    precision: Precision = "high"
    file_format: FileFormat = "npy"
    check_mode: CheckMode = "all"
    grad_level: GradientLevel = "L1"
    param_list: Names = ()
    bounds: Bounds = (-1, 0, 1)
    online_run_ut: Switch = False
    nfs_path: Text = ""
    host: Text = ""
    port: Port = -1
    tls_path: Text | None = None
    unencrypted: Switch = False
    online_disk: OnlineDisk = 1024
    online_wait: OnlineWait = 60.0
    pert_mode: Perturbation = "improve_precision"
    fuzz_device: FuzzDevice = "npu"
    fuzz_stage: FuzzStage = "forward"
    if_preheat: Switch = False
    handler_type: HandlerType = "check"
    fuzz_level: FuzzLevel = "L1"
    fuzz_args: FuzzArguments = "first"
    preheat_step: Count = 15
    max_sample: Count = 20
    ignored: tuple[str, ...] = ()

    @property
    def stores_files(self) -> bool:
        """Whether tensors themselves may be written, all of them or those that ``tensor_list`` names."""
        return self.task in TENSOR_TASKS or bool(self.tensor_list)

    def asks_for(self, key: str) -> bool:
        """Whether ``key`` has another value than the one that it has where it is not given."""
        return getattr(self, key) != type(self).model_fields[key].default

    @field_validator("scope", mode="plain")
    @classmethod
    def _scope_is_a_range(cls, scope: object, info: ValidationInfo) -> Range | None:
        return scope_range(scope, info.data.get("level"))  # no level when it is itself a mistake

    @field_validator("level")
    @classmethod
    def _exceptions_are_of_kernels(cls, level: str, info: ValidationInfo) -> str:
        if level != "L2" and info.data.get("task") == "exception_dump":
            raise Rejected(((), tr("{level} does not work with task exception_dump; use L2", level=show(level))))
        return level

    @field_validator("level")
    @classmethod
    def _debug_needs_values(cls, level: str, info: ValidationInfo) -> str:
        if level == "debug" and (task := info.data.get("task")) in ("structure", "overflow_check"):
            raise Rejected(
                (
                    (),
                    tr('"debug" does not work with task {task}; use one of L0, L1, mix, or task statistics', task=task),
                )
            )
        return level

    @field_validator("level")
    @classmethod
    def _perturbed_are_apis(cls, level: str, info: ValidationInfo) -> str:
        if level != "L1" and info.data.get("task") == PERTURBATION_TASK:
            raise Rejected(
                (
                    (),
                    tr(
                        "{level} is not supported with task {perturbation_task}; use L1",
                        level=show(level),
                        perturbation_task=PERTURBATION_TASK,
                    ),
                )
            )
        return level

    @field_validator("fuzz_device")
    @classmethod
    def _cpu_is_a_perturbation(cls, device: str, info: ValidationInfo) -> str:
        mode = info.data.get("pert_mode", "to_cpu")
        if device == "cpu" and mode != "to_cpu":
            raise Rejected(
                (
                    (),
                    tr('"cpu" works with pert_mode to_cpu alone, and this is {mode}; use npu, or remove it', mode=mode),
                )
            )
        return device

    @field_validator("handler_type")
    @classmethod
    def _fix_knows_what_is_right(cls, handler: str, info: ValidationInfo) -> str:
        if handler == "check":
            return handler
        found = info.data
        if found.get("pert_mode", FIXING[0]) not in FIXING:
            raise Rejected(
                ((), tr('"fix" works with pert_mode {fixing}; use check', fixing=tr_join(tr(" or "), FIXING)))
            )
        if found.get("fuzz_stage") == "backward" or found.get("if_preheat"):
            raise Rejected(((), tr('"fix" works with fuzz_stage forward and without if_preheat; use check')))
        return handler

    @field_validator("extra_info")
    @classmethod
    def _structure_needs_its_files(cls, extra_info: bool, info: ValidationInfo) -> bool:
        if not extra_info and info.data.get("task") == "structure":
            raise Rejected(
                ((), tr("task structure writes nothing else than these files; use true, or task statistics"))
            )
        return extra_info

    @field_validator("summary_mode")
    @classmethod
    def _summary_fits(cls, mode: str | tuple[str, ...], info: ValidationInfo) -> str | tuple[str, ...]:
        if isinstance(mode, tuple) and info.data.get("level", "L2") != "L2":
            raise Rejected(((), tr("{mode} is for kernels, level L2; use one of statistics, md5", mode=show(mode))))
        if mode != "statistics" and info.data.get("task") == "structure":
            raise Rejected(((), tr("task structure stores no values; use task statistics, or remove this key")))
        return mode

    @field_validator("optimizer")
    @classmethod
    def _updates_are_calls(cls, optimizer: bool, info: ValidationInfo) -> bool:
        if optimizer and (level := info.data.get("level", "L1")) in ("L2", "debug"):
            raise Rejected(
                ((), tr("level {level} records no updates; use one of L0, L1, mix, or remove this key", level=level))
            )
        return optimizer

    @field_validator("model_itself")
    @classmethod
    def _models_are_modules(cls, itself: bool, info: ValidationInfo) -> bool:
        if itself and (level := info.data.get("level", "L0")) not in MODULE_LEVELS:
            raise Rejected(
                ((), tr("level {level} records no modules; use level L0 or mix, or remove this key", level=level))
            )
        return itself

    @field_validator("online_run_ut")
    @classmethod
    def _sent_calls_are_of_apis(cls, online_run_ut: bool, info: ValidationInfo) -> bool:
        if online_run_ut and (level := info.data.get("level", "L1")) not in ("L1", "mix"):
            raise Rejected(((), tr("level {level} records no calls of APIs; use level L1, or false", level=level)))
        return online_run_ut

    @field_validator("layers")
    @classmethod
    def _layers_are_apis(cls, layers: bool, info: ValidationInfo) -> bool:
        if layers and (level := info.data.get("level", "L1")) != "L1":
            raise Rejected(
                ((), tr("level {level} does not take layers for APIs; use level L1, or remove this key", level=level))
            )
        if layers and info.data.get("task") == PERTURBATION_TASK:
            raise Rejected(
                (
                    (),
                    tr(
                        "task {perturbation_task} calls functions again, not layers; remove this key",
                        perturbation_task=PERTURBATION_TASK,
                    ),
                )
            )
        return layers

    @field_validator("primitives")
    @classmethod
    def _primitives_are_called(cls, primitives: bool, info: ValidationInfo) -> bool:
        if not primitives and (level := info.data.get("level", "L1")) not in ("L1", "mix"):
            raise Rejected(((), f"level {level} leaves no primitives out; use level L1 or mix, or remove this key"))
        return primitives

    @field_validator("numbers")
    @classmethod
    def _calls_have_positions(cls, numbers: str, info: ValidationInfo) -> str:
        if numbers == "by_position" and (level := info.data.get("level", "L1")) in ("L2", "debug"):
            raise Rejected(
                ((), tr("level {level} numbers by name; use one of L0, L1, mix, or remove this key", level=level))
            )
        return numbers

    @field_validator("api_list")
    @classmethod
    def _api_list_needs_apis(cls, api_list: Path | None, info: ValidationInfo) -> Path | None:
        if api_list is not None and info.data.get("level", "L1") not in API_LEVELS:
            raise Rejected(
                (
                    (),
                    tr(
                        "level {data} records no APIs; use level L1 or mix, or remove this key", data=info.data["level"]
                    ),
                )
            )
        return api_list

    @field_validator("data_mode")
    @classmethod
    def _parameters_are_of_modules(cls, modes: frozenset[str], info: ValidationInfo) -> frozenset[str]:
        if modes == {"parameters"} and info.data.get("level") in ("L1", "L2") and not info.data.get("layers"):
            raise Rejected(((), tr("level {data} records no parameters; use level L0 or mix", data=info.data["level"])))
        if modes == {"parameters"} and not info.data.get("parameters", True):
            raise Rejected(((), tr("parameters is false, which leaves nothing; use true")))
        return modes

    @field_validator("places")
    @classmethod
    def _places_are_of_calls(cls, places: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if places and info.data.get("level") == "L2":
            raise Rejected(((), tr("level L2 records kernels, which have no places; use one of L0, L1, mix")))
        return places

    @field_validator("scope", "list", "skip", "places", "data_mode")
    @classmethod
    def _debug_records_what_is_saved(cls, value: Any, info: ValidationInfo) -> Any:
        if value and value != {"all"} and info.data.get("level") == "debug":
            raise Rejected(((), tr("level debug records what save() is given, all of it; remove this key")))
        return value

    @field_validator("tensor_list")
    @classmethod
    def _tensor_list_needs_statistics(cls, tensor_list: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        task = info.data.get("task")
        if tensor_list and task == "structure":
            raise Rejected(((), tr("task structure stores no values; use task statistics, or remove this key")))
        if tensor_list and task in TENSOR_TASKS:
            every = tr("every tensor") if task == "tensor" else tr("every tensor of what it records")
            raise Rejected(
                (
                    (),
                    tr(
                        'task {task} stores {every}; use task statistics, or "list" to select entries',
                        task=task,
                        every=every,
                    ),
                )
            )
        return tensor_list


#: The keys of `Config` that stand at the top of a file.
GENERAL_KEYS = tuple(key for key in Config.model_fields if key not in (*SECTION_KEYS, *ONLINE_KEYS, "ignored"))
