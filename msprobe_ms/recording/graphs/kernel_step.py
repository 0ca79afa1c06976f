"""Level L2 in compiled graphs: MindSpore's kernel dump, run for the steps of a recording, and the index of each."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.config.vocabulary import CHECKS
from msprobe_ms.dump.kernels.index import write_index
from msprobe_ms.dump.kernels.kernel_files import KernelFile, read_kernel_files
from msprobe_ms.dump.kernels.reduce import reduce
from msprobe_ms.dump.writing.writer import vacate, warn_of_owner
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.compiled_call import ExecutionMode
from msprobe_ms.frameworks.kernel_dump import KernelDumpControl
from msprobe_ms.recording.graphs import kernel_config
from msprobe_ms.recording.graphs.kernel_config import NOWHERE, Document, Environment, plain_path
from msprobe_ms.recording.hooks.apis import ApiHooks
from msprobe_ms.recording.progress import Status
from msprobe_ms.recording.quotas import Quotas
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.recording.start_arguments import TokenRange
from msprobe_ms.recording.step import Dumper, Step
from msprobe_ms.support.errors import MsprobeError, UsageError
from msprobe_ms.support.files import Permissions, replacing
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_list

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class KernelStep(Step):
    """Lets the framework dump between start and stop, and indexes at the end what it wrote."""

    def __init__(
        self,
        config: Config,
        framework: Framework,
        dump: KernelDumpControl,
        folder: Path,
        data_folder: Path,
        step: int,
        categories: Sequence[str] | None,
        status: Status,
    ) -> None:
        """``categories`` are the statistics to which tensors are reduced; None keeps what the framework wrote."""
        super().__init__(config, framework, status)
        self._dump = dump
        self._opened = Folder(folder)
        self._data_folder = data_folder
        self._step = step
        self._categories = categories
        self._cells: dict[str, str] = {}
        self._recording = False
        self._is_empty = True

    @property
    def folder(self) -> Path:
        return self._opened.path

    @property
    def is_empty(self) -> bool:
        return self._is_empty

    def start(self, model: Any, token_range: TokenRange | None) -> None:
        if token_range is not None:
            raise UsageError(
                tr("start: token_range counts calls of the model, which compiled graphs do not show; leave it")
            )
        models = model if isinstance(model, (list, tuple)) else [] if model is None else [model]
        for each in models:
            for name, module in self._framework.named_modules(each):
                self._cells.setdefault(name, type(module).__name__)
        self._recording = True
        self._dump.record(self._step)

    def _pause(self) -> None:
        if self._recording and self._process.is_mine:
            self._dump.pause(NOWHERE)
            self._recording = False

    def _complete(self, unused: UnusedSettings) -> None:
        try:
            self._index()
        except (OSError, MsprobeError) as error:
            whole = os.path.exists(self._data_folder)
            where = tr("its raw files are whole") if whole else tr("no raw files are there")
            logger.warning(
                tr(
                    "{folder}: step {step} has no index: {error}; {where}",
                    folder=self.folder,
                    step=self._step,
                    error=error,
                    where=where,
                )
            )
        finally:
            self._opened.close()

    def _index(self) -> None:
        config = self._config
        files = read_kernel_files(self._data_folder.glob(f"*/{self._step}/*"))
        self._is_empty = all(file.is_parameter for file in files)
        if self.is_empty and config.task in CHECKS:
            return self._forget(files)
        entries = write_index(
            self.folder,
            files,
            task=config.task,
            level=config.level,
            cells=self._cells or None,
            data_folder=self._data_folder,
            extra_info=config.extra_info,
            permissions=config.permissions,
        )
        if self._categories is not None:
            self._reduce(files, self._categories)
        if self.is_empty:
            self._warn_of_emptiness()
        self.status.end(self.folder, entries)

    def _reduce(self, files: Sequence[KernelFile], categories: Sequence[str]) -> None:
        try:
            reduce(files, categories, self._config.permissions)
        except OSError as error:
            logger.warning(
                tr("{folder}: raw files of step {step} stay: {error}", folder=self.folder, step=self._step, error=error)
            )

    def _forget(self, files: Sequence[KernelFile]) -> None:
        """Nothing was wrong: the parameters, which are dumped all the same, say nothing."""
        for file in files:
            file.path.unlink(missing_ok=True)
        self.folder.rmdir()

    def _warn_of_emptiness(self) -> None:
        named = tr(" that list names") if self._config.list else ""
        logger.warning(
            tr(
                "{folder}: nothing was recorded: no kernel of a compiled graph{named} ran between start and "
                "stop, or MindSpore had run a graph before PrecisionDebugger was constructed: it reads one "
                "dump configuration, at its first graph",
                folder=self.folder,
                named=named,
            ),
        )


#: Where MindSpore looks for the configuration, and where a device that runs graphs as a whole looks.
CONFIGURATION = "MINDSPORE_DUMP_CONFIG"
DEVICE_CONFIGURATION = "MS_ACL_DUMP_CFG_PATH"


class KernelDumper(Dumper):
    """Has MindSpore dump the kernels of the steps that are recorded, and none of others."""

    in_graphs = True

    def __init__(self, config: Config, framework: Framework, apis: ApiHooks | None, quotas: Quotas) -> None:
        """Configure the framework; it must not have run a graph yet. Raises UsageError for what cannot work."""
        super().__init__(config, framework, apis, quotas)
        mode = framework.execution_mode()
        if mistakes := _mistakes(config, mode):
            raise UsageError("\n".join(tr("PrecisionDebugger: {mistake}", mistake=mistake) for mistake in mistakes))
        self._dump = framework.kernel_dump()
        self._name, self._document = _configuration(config, mode, self._dump.version)
        self._reduces = config.task == "statistics" and self._dump.on_cpu
        #: Raw files go below it, whatever the configuration says later.
        self._root = config.dump_path
        self._environment = Environment()
        #: The folder of the raw files, claimed with the first step that is recorded.
        self._raw: Folder | None = None
        self._warn_of_idle_keys(config, mode)
        self._active = self._configure(config, mode)
        #: After this step nothing is recorded any more.
        self._last: float = max(config.step, default=inf)
        self._over = False

    def _configure(self, config: Config, mode: ExecutionMode) -> bool:
        """Bring the configuration into force; False where nothing is to be recorded."""
        rank = self._framework.rank()
        if config.rank and (rank or 0) not in config.rank:
            return False
        path = config.dump_path / (f"{self._name}.json" if rank is None else f"{self._name}_rank{rank}.json")
        users = os.environ.get(CONFIGURATION)
        if users and os.path.realpath(users) != os.path.realpath(path):
            logger.warning(
                tr(
                    "{configuration} is set to {users}: MindSpore dumps what that file says, and nothing is "
                    "recorded here. Take it out of the environment to have kernels recorded",
                    configuration=CONFIGURATION,
                    users=users,
                ),
            )
            return False
        blind = config.task in CHECKS and self._dump.on_cpu
        adapted = self._dump.on_cpu and not blind
        document = kernel_config.for_cpu(self._document) if adapted else dict(self._document)
        try:
            config.permissions.make_folder(path.parent)
            common = document["common_dump_settings"]
            document |= {"common_dump_settings": common | {"path": str(plain_path(config.dump_path))}}
            with replacing(path, config.permissions) as file:
                file.write(json.dumps(document, indent=4, ensure_ascii=False).encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise UsageError(
                tr(
                    "PrecisionDebugger: {path}: {strerror}; kernels cannot be recorded",
                    path=path,
                    strerror=error.strerror,
                )
            ) from error
        if blind:
            logger.warning(
                tr(
                    "task {task}: kernels on CPU report nothing, and nothing is recorded; {path} is for Ascend",
                    task=config.task,
                    path=path,
                )
            )
            return False
        self._environment.set(CONFIGURATION, str(path))
        as_whole = mode is ExecutionMode.GRAPH and config.task in ("statistics", "tensor")
        passes = as_whole and kernel_config.passes_graph_launch(document)
        if passes or DEVICE_CONFIGURATION in os.environ:
            self._environment.set(DEVICE_CONFIGURATION, str(path) if passes else None)
        if problem := self._dump.read_configuration(NOWHERE):
            self._environment.put_back()
            path.unlink(missing_ok=True)
            raise UsageError(
                tr("PrecisionDebugger: MindSpore does not accept {path}: {problem}", path=path, problem=problem)
            )
        return True

    def _warn_of_idle_keys(self, config: Config, mode: ExecutionMode) -> None:
        idle = [key for key in ("api_list", "acl_config") if config.asks_for(key)]
        if self._dump.on_cpu:
            idle += ["async_dump"] if config.async_dump else []
            idle += [key for key in ("device", "precision") if config.asks_for(key)]
        if (mode is ExecutionMode.KBYK or self._dump.on_cpu) and config.asks_for("file_format"):
            idle.append("file_format")
        if config.task in CHECKS:
            idle += [key for key, value in (("list", config.list), ("data_mode", config.data_mode - {"all"})) if value]
        if idle:
            logger.info(tr("these configuration keys have no effect on kernels here: {idle}", idle=tr_list(idle)))

    def _open(self, config: Config, folder: Path, step: int, rank: int | None) -> KernelStep | None:
        if not self._active:
            return None
        self._warn_of_change(config)
        data_folder = self._root / f"rank_{self._framework.rank() or 0}" / "Net"
        if not self._claims(data_folder.parent, config.permissions):
            return None
        place = vacate(folder)
        warn_of_owner(folder, place, self._warned)
        config.permissions.make_folder(place)
        _move_iteration_aside(data_folder, step, config.permissions)
        categories = kernel_config.categories(config, self._dump.version) if self._reduces else None
        status = Status(config, rank)
        return KernelStep(config, self._framework, self._dump, place, data_folder, step, categories, status)

    def _claims(self, raw: Path, permissions: Permissions) -> bool:
        """Whether MindSpore may write below ``raw``: it does not keep its files apart from those of another process."""
        if self._raw is None:
            permissions.make_folder(raw)
            opened = Folder(raw)
            if not opened.claim():
                if str(raw) not in self._warned:
                    self._warned.add(str(raw))
                    logger.warning(
                        tr(
                            "{raw}: MindSpore writes kernels of another process there; those of this one are not "
                            "recorded. Give each process of a job its own rank, and each job its own dump_path",
                            raw=raw,
                        ),
                    )
                return False
            self._raw = opened
        return True

    def _warn_of_change(self, config: Config) -> None:
        mode = self._framework.execution_mode()
        document = _configuration(config, mode, self._dump.version)[1]
        if document != self._document:
            self._document = document
            logger.warning(
                tr("kernels are selected as when the job began: MindSpore reads its configuration only once")
            )

    def announce(self, models: Sequence[Any]) -> None:
        if self._active and not self._over:
            self._dump.name_modules(models)

    def step_ended(self, step: int) -> None:
        self._over = step >= self._last
        if self._over:
            self.close()

    def close(self) -> None:
        super().close()
        self._dump.close()
        self._environment.put_back()
        self._raw = None


def _configuration(config: Config, mode: ExecutionMode, version: str) -> tuple[str, Document]:
    """The name of the file, and what it says."""
    if config.task == "exception_dump":
        return "kernel_graph_exception_check", kernel_config.exception_check(config)
    if config.task == "overflow_check":
        return "kernel_graph_overflow_check", kernel_config.overflow_check(config)
    if mode is ExecutionMode.GRAPH:
        return "kernel_graph_dump", kernel_config.graph_dump(config)
    return "kernel_kbyk_dump", kernel_config.kernel_dump(config, version)


def _mistakes(config: Config, mode: ExecutionMode) -> list[str]:
    """What level L2 knows in dynamic graphs and not here."""
    found = []
    for key in ("scope", "skip", "tensor_list"):
        if getattr(config, key):
            found.append(tr('{key} is not for kernels of compiled graphs; "list" selects them; remove {key}', key=key))
    if len(config.data_mode) != 1 or not config.data_mode <= {"all", "input", "output"}:
        modes = tr_list(sorted(config.data_mode))
        found.append(
            tr("data_mode [{modes}] is not for kernels of compiled graphs; use one of all, input, output", modes=modes)
        )
    for name in config.list:
        if name.startswith("class:") or ("*" in name and not name.startswith("name-regex(")):
            accepted = tr('its type ("MatMul"), its path ("Default/network-Net/fc1-Dense/MatMul-op0") or name-regex(…)')
            found.append(
                tr('list: "{name}" names no kernel of a compiled graph; use {accepted}', name=name, accepted=accepted)
            )
    if mode is ExecutionMode.GRAPH and os.environ.get("GRAPH_OP_RUN") == "1":
        found.append(tr("GRAPH_OP_RUN=1 is set, with which graphs of jit_level O2 run kernel by kernel; unset it"))
    return found


def _move_iteration_aside(data_folder: Path, step: int, permissions: Permissions) -> None:
    """What another run left there under this step's number would pass for this step's."""
    for there in data_folder.glob(f"*/{step}"):
        number = 1
        rank, net = data_folder.parent, data_folder.name
        while (aside := rank.with_name(f"earlier{number}_{rank.name}") / net / there.parent.name / there.name).exists():
            number += 1
        permissions.make_folder(aside.parent)
        there.rename(aside)
        logger.warning(tr("{there} already held kernels; it is now {aside}", there=there, aside=aside))
