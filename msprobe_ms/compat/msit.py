"""The interface of msit's inference tool: ``DumpConfig``, ``register_hook``, ``set_dump_path``, ``seed_all``.

What its arguments mean here, and what differs: docs/coming_from_msit.md.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from msprobe_ms.compat.msit_selection import LEVELS, PARTS, logits_pattern, module_pattern
from msprobe_ms.compat.torch_provider import is_on_mindspore
from msprobe_ms.config.values import MOST_NUMBERS
from msprobe_ms.frameworks import FRAMEWORKS
from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.recording.entry_points.model_calls import CallSteps
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr, tr_list

#: The folder below the dump path, unless `set_dump_path` names another.
_TAG = "msit_dump"


class DumpConfig:
    """What `register_hook` records of a network's calls; ``seed`` seeds all random numbers at once.

    ``token_range``  the calls to record, counted from 0: ``[0, 5]`` are two, ``["0-5"]`` six
    ``module_list``  classes of modules, or their names; all where it is empty
    ``tensor_part``  0 inputs, 1 outputs, 2 both
    ``device_id``    the rank that records; None for all
    ``dump_last_logits``  the result of the network alone
    ``mode``         ``"module"``, ``"api"`` or both in a list
    ``dump_weight``  the weights alone
    ``layer_name``   modules by their path, ``root.layers.0*``, in which ``*`` is any text

    Raises UsageError for what is not accepted.
    """

    def __init__(
        self,
        dump_path: str | os.PathLike[str] = "./",
        token_range: Iterable[int | str] | None = None,
        module_list: Iterable[type | str] | None = None,
        tensor_part: int = 2,
        device_id: int | None = None,
        dump_last_logits: bool = False,
        mode: str | Sequence[str] | None = None,
        dump_weight: bool = False,
        layer_name: str | None = "",
        seed: int | None = None,
    ) -> None:
        self.dump_path = _folder("DumpConfig", dump_path)
        self.token_range = _tokens(token_range)
        self.module_list = _class_names(module_list)
        self.tensor_part = _one_of("tensor_part", tensor_part, tuple(PARTS))
        if device_id is not None and (type(device_id) is not int or device_id < 0):
            raise UsageError(
                tr(
                    "DumpConfig: device_id {device_id} is not accepted; give a number from 0 up, or None",
                    device_id=repr(device_id),
                )
            )
        self.device_id = device_id
        self.dump_last_logits = _one_of("dump_last_logits", dump_last_logits, (True, False))
        self.mode = _modes(mode)
        self.dump_weight = _one_of("dump_weight", dump_weight, (True, False))
        self.layer_name = layer_name or ""
        if not isinstance(self.layer_name, str):
            raise UsageError(
                tr(
                    'DumpConfig: layer_name {layer_name} is not accepted; give a text, "root.layers.0*"',
                    layer_name=repr(layer_name),
                )
            )
        self._check_that_modules_are_recorded()
        self.seed = seed
        if seed is not None:
            seed_all(seed)

    def _check_that_modules_are_recorded(self) -> None:
        if self.dump_last_logits and self.dump_weight:
            raise UsageError(tr("DumpConfig: dump_last_logits and dump_weight each record one thing alone; give one"))
        given = {"layer_name": self.layer_name, "module_list": self.module_list, "dump_weight": self.dump_weight}
        names = [name for name, value in given.items() if value]
        if names and self.mode == ("api",):
            raise UsageError(
                tr('DumpConfig: {names} is about modules; use mode "module" or ["api", "module"]', names=names[0])
            )

    def settings(self) -> dict[str, Any]:
        """The keys of a configuration that stand for it."""
        patterns = []
        if self.dump_last_logits:
            patterns = [logits_pattern()]
        elif self.layer_name or self.module_list:
            patterns = [module_pattern(self.layer_name, self.module_list)]
        modes = ["output"] if self.dump_last_logits else PARTS[self.tensor_part]
        level = LEVELS[self.mode]
        return {
            "task": "tensor",
            "level": "L0" if self.dump_last_logits else level,
            "model_itself": self.dump_last_logits or level != "L1",
            "step": self.token_range,
            "rank": [] if self.device_id is None else [self.device_id],
            "list": patterns,
            "parameters": self.dump_weight,
            "data_mode": ["parameters"] if self.dump_weight else modes,
        }


class _Hooked:
    """The networks that are recorded, and where to; one for the process."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        #: The calls that are recorded, with the network and its configuration.
        self._calls: list[tuple[CallSteps, DumpConfig]] = []

    def add(self, network: Any, config: DumpConfig) -> None:
        for calls, other in list(self._calls):
            if calls.network is None or calls.network is network:
                calls.remove()
                self._calls.remove((calls, other))
        folder = config.dump_path / _TAG if self._folder is None else self._folder
        tool = importlib.import_module(f"msprobe_ms.{_framework_of(network)}")
        debugger: BaseDebugger = tool.PrecisionDebugger(settings={**config.settings(), "dump_path": folder})
        calls = CallSteps(debugger, network)
        calls.install()
        self._calls.append((calls, config))

    def move(self, folder: Path) -> None:
        """What is recorded from here on goes to ``folder``, and calls are counted from 0 again."""
        self._folder = folder
        for calls, config in list(self._calls):
            if (network := calls.network) is not None:
                self.add(network, config)


_HOOKED = _Hooked()


def register_hook(model: Any, config: DumpConfig, hook_type: str = "dump_data") -> None:
    """Record the calls of ``model`` that ``config`` selects, each as a step of its own.

    Raises ConfigError or UsageError for what cannot work.
    """
    if hook_type != "dump_data":
        raise UsageError(
            tr('register_hook: hook_type {hook_type} is not accepted; use "dump_data"', hook_type=repr(hook_type))
        )
    if not isinstance(config, DumpConfig):
        raise UsageError(tr("register_hook: config is a {name}; give a DumpConfig", name=type(config).__name__))
    _HOOKED.add(model, config)


def set_dump_path(dump_path: str | os.PathLike[str] = ".", dump_tag: str = _TAG, backend: str = "pt") -> None:
    """Have what is recorded from here on in ``{dump_path}/{dump_tag}``, calls counted from 0 again: another dialogue.

    Raises UsageError for what is not accepted.
    """
    if backend == "acl":
        raise UsageError(tr('set_dump_path: backend "acl" records Ascend\'s ATB library, which is not there; use "pt"'))
    if backend != "pt":
        raise UsageError(tr('set_dump_path: backend {backend} is not accepted; use "pt"', backend=repr(backend)))
    if not isinstance(dump_tag, str) or not re.fullmatch(r"[^/\0]+", dump_tag) or dump_tag in (".", ".."):
        raise UsageError(
            tr(
                'set_dump_path: dump_tag {dump_tag} is not accepted; give the name of a folder, "dialog_0"',
                dump_tag=repr(dump_tag),
            )
        )
    _HOOKED.move(_folder("set_dump_path", dump_path) / dump_tag)


def seed_all(seed: int = 2024) -> None:
    """Seed Python, numpy and the frameworks that are imported, and have them compute deterministically.

    Without any it is PyTorch. Raises UsageError for a seed that is not accepted.
    """
    present = [ours for name, (_, ours) in FRAMEWORKS.items() if name in sys.modules]
    if is_on_mindspore():
        present = ["mindspore"]
    for ours in present or ["pytorch"]:
        importlib.import_module(f"msprobe_ms.{ours}").seed_all(seed, mode=True)


def _framework_of(network: Any) -> str:
    """The module of ours that records ``network``. Raises UsageError for what is no network."""
    mindspore = sys.modules.get("mindspore")
    if is_on_mindspore() or (mindspore is not None and isinstance(network, mindspore.nn.Cell)):
        return "mindspore"
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(network, torch.nn.Module):
        raise UsageError(
            tr("register_hook: model is a {name}; give the network, a torch.nn.Module", name=type(network).__name__)
        )
    return "pytorch"


def _tokens(token_range: object) -> Any:
    """What ``step`` is to be; of what is read but once, no more than shows that it is too much."""
    if token_range is None:
        return [0]
    if isinstance(token_range, Collection) or not isinstance(token_range, Iterable):
        return token_range
    return list(islice(token_range, MOST_NUMBERS + 1))


def _modes(mode: object) -> tuple[str, ...]:
    given = ["module"] if mode is None else [mode] if isinstance(mode, str) else mode
    if isinstance(given, (list, tuple, set)) and all(isinstance(each, str) for each in given):
        given = tuple(sorted(set(given)))
    modes: tuple[str, ...] = _one_of("mode", given, tuple(LEVELS))
    return modes


def _class_names(kinds: object) -> list[str]:
    if kinds is None or (isinstance(kinds, Iterable) and not isinstance(kinds, str)):
        return [_class_name(each) for each in kinds or ()]
    return [_class_name([kinds])]


def _class_name(kind: object) -> str:
    name = kind.__name__ if isinstance(kind, type) else kind
    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError(
            tr(
                "DumpConfig: module_list: {kind} is not accepted; give classes of modules, such as nn.Linear",
                kind=repr(kind),
            )
        )
    return name


def _folder(where: str, dump_path: Any) -> Path:
    if isinstance(dump_path, (str, os.PathLike)) and isinstance(text := os.fspath(dump_path), str) and "\0" not in text:
        return Path(text)
    raise UsageError(
        tr("{where}: dump_path {dump_path} is not accepted; use a path", where=where, dump_path=repr(dump_path))
    )


def _one_of(name: str, value: Any, accepted: tuple[Any, ...]) -> Any:
    if type(value) is type(accepted[0]) and value in accepted:
        return value
    raise UsageError(
        tr(
            "DumpConfig: {name} {value} is not accepted; use one of {accepted}",
            name=name,
            value=repr(value),
            accepted=tr_list(map(repr, accepted)),
        )
    )
