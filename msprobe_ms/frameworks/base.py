"""The one seam to a framework: what a tensor is, how to read it, how calls and gradients are observed.

Everything else in the package works through this interface; only the modules beside this one import a framework.
"""

from __future__ import annotations

from pathlib import Path

from msprobe_ms.dump.dialects import Dialect
from msprobe_ms.frameworks.interface.apis import ApiInterface
from msprobe_ms.frameworks.interface.gradients import GradientInterface
from msprobe_ms.frameworks.interface.graphs import GraphInterface
from msprobe_ms.frameworks.interface.kernels import KernelInterface
from msprobe_ms.frameworks.interface.modules import ModuleInterface
from msprobe_ms.frameworks.interface.process import ProcessInterface
from msprobe_ms.frameworks.interface.tensors import TensorInterface


class Framework(
    TensorInterface,
    GradientInterface,
    KernelInterface,
    ModuleInterface,
    ApiInterface,
    GraphInterface,
    ProcessInterface,
):
    """What the rest of the package needs to know of one framework."""

    #: How its dumps are spelled: its name, the prefix of modules, the type of tensors and the suffix of their files.
    dialect: Dialect
    #: What a user calls a network of this framework, in messages.
    module_type: str
    #: The package's own API lists.
    api_lists: tuple[Path, ...]
    #: Whether calls under watch get the caller's own tensors, so that APIs which write in place can be watched too.
    watches_in_place: bool = False
