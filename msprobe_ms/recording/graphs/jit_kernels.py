"""Level L2 in dynamic graphs: the kernels that compiled functions launch, which the framework writes into files.

Each run of a compiled function leaves files behind, which are read when it is over, and removed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from msprobe_ms.dump.kernels.graphs import Graphs
from msprobe_ms.dump.kernels.kernel_files import INPUT, OUTPUT, KernelFile, read_kernel_files
from msprobe_ms.dump.kernels.launches import Launch, ScopePaths, Unwritten, launches
from msprobe_ms.dump.kernels.scope_path import Scope, cell_of, parse_scope
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.graphs import kernel_config
from msprobe_ms.recording.graphs.kernel_config import NOWHERE, Environment, plain_path
from msprobe_ms.recording.graphs.kernel_step import CONFIGURATION
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.files import replacing
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.interruptions import suppress_own
from msprobe_ms.support.process import ThisProcess
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: A tensor and its dtype; None where there is nothing, or nothing that can be read.
Tensor = tuple[np.ndarray, str] | None
#: Those that MindSpore writes below the folder of a rank.
_RAW_FILES = "Net/*/*/*"


@dataclass(frozen=True, slots=True)
class GraphKernel:
    """One launch; of the Cell that its name in the graph tells, if any, there is the name and the class."""

    operator: str
    direction: str
    recomputed: bool
    cell: tuple[str, str] | None
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]


class JitKernels:
    """Has the framework write the kernels of compiled functions between `start` and `pause`, and reads them."""

    def __init__(self, config: Config, framework: Framework) -> None:
        """Configure the framework's kernel dump, which it reads once a process, before its first graph."""
        self._config = config
        self._framework = framework
        self._dump = framework.kernel_dump()
        self._cells: dict[str, str] = {}
        #: Where the files are, while it is claimed; and where they have been.
        self._raw: Folder | None = None
        self._place: Path | None = None
        #: Files of others, which stay.
        self._others: frozenset[Path] = frozenset()
        self._process = ThisProcess()
        #: Whether any kernel has ever come.
        self.came = False
        #: Why nothing can be recorded, a sentence; None while nothing speaks against it.
        self.problem = self._configure()

    def _configure(self) -> str | None:
        """What is wrong, if anything is. The file is read at once; nothing of it stays."""
        if self._dump.in_force is not None:
            return None
        if os.environ.get(CONFIGURATION):
            return tr("{configuration} is set, and MindSpore dumps what that file says", configuration=CONFIGURATION)
        folder, environment = self._config.dump_path, Environment()
        path, was_there = folder / "kernel_jit_dump.json", folder.exists()
        try:
            self._config.permissions.make_folder(folder)
            document = kernel_config.jit_dump(self._config, plain_path(folder), self._dump.version)
            with replacing(path, self._config.permissions) as file:
                file.write(json.dumps(document).encode("utf-8", "surrogateescape"))
            environment.set(CONFIGURATION, str(path))
            return self._dump.read_configuration(NOWHERE)
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        finally:
            environment.put_back()
            with suppress(OSError):
                path.unlink(missing_ok=True)
                if not was_there:
                    folder.rmdir()

    def start(self, models: Sequence[Any]) -> None:
        """Have kernels written from here on; those of graphs that are compiled meanwhile know their modules."""
        settings = (self._dump.in_force or {}).get("common_dump_settings")
        if self.problem is not None or settings is None or self._raw is not None:
            return
        raw = Path(settings["path"]) / f"rank_{self._framework.rank() or 0}"
        try:
            self._config.permissions.make_folder(raw)
            folder = Folder(raw)
            if not folder.claim():
                self.problem = f"{raw}: MindSpore writes kernels of another process there"
                return
            self._others = frozenset(raw.glob(_RAW_FILES))
        except OSError as error:
            self.problem = f"{raw}: {error.strerror or error}"
            return
        self._raw, self._place = folder, raw
        named = (pair for model in models for pair in self._framework.named_modules(model))
        self._cells = {name: type(module).__name__ for name, module in named}
        self._dump.name_modules(models)
        number = re.match(r"\d+", settings["iteration"])
        self._dump.record(int(number[0]) if number else 0)

    def pause(self) -> None:
        """Have none written until `start`, and leave the folder to others."""
        if self._raw is not None and self._process.is_mine:
            self._raw = None
            self._dump.close()
            self._dump.pause(NOWHERE)

    def close(self) -> None:
        """Nothing is recorded any more: leave nothing behind, unless the disk refuses."""
        path, self._place = self._place, None
        with suppress_own(OSError):
            if path is not None and self._process.is_mine and not any(map(Path.is_file, path.glob(_RAW_FILES))):
                shutil.rmtree(path)

    def wait(self) -> None:
        """Return when what was launched is there to take. Raises what kernels of the script raise."""
        if self._raw is not None and self._process.is_mine:
            self._dump.wait()

    def take(self) -> Iterator[GraphKernel]:
        """Read the launches since it was called last, in their order, one at a time; their files are removed."""
        if self._raw is None or not self._process.is_mine:
            return
        paths = [path for path in self._raw.path.glob(_RAW_FILES) if path not in self._others]
        if not paths:
            return
        self.came = True
        try:
            files = read_kernel_files(paths)
            scopes, graphs, unwritten = ScopePaths(), Graphs(files, self._cells), Unwritten()
            for launch in launches(files):
                if not launch.is_parameter:
                    graph = graphs.of(launch.files[0].path.parent)
                    told = graph and graph.scope(launch.op_name)
                    scope = told or parse_scope(scopes.path(launch), self._cells)
                    yield self._read(launch, scope, unwritten.slots(launch))
        finally:
            for path in paths:
                path.unlink(missing_ok=True)

    def _read(self, launch: Launch, scope: Scope, unwritten: frozenset[int]) -> GraphKernel:
        outputs = [None if slot in unwritten else file for slot, file in enumerate(launch.side(OUTPUT))]
        cell = cell_of(scope, self._cells) if self._cells else None
        inputs = [_loaded(file) for file in launch.side(INPUT)]
        return GraphKernel(
            launch.op_type, scope.direction, scope.recomputed, cell, inputs, [_loaded(file) for file in outputs]
        )


def _loaded(file: KernelFile | None) -> Tensor:
    if file is None:
        return None
    try:
        return file.load(), file.header()[1] or "unknown"
    except (MsprobeError, MemoryError):  # cut off, where the disk is full; MindSpore has said so
        return None
