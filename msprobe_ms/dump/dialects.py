"""Dialects: what is known offline of each framework whose dumps are written or read, one record each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Prefixes of entries of operator objects, of functions compiled as one graph, and of kernels (level L2).
PRIMITIVE, JIT, KERNEL = "Primitive", "Jit", "Kernel"

#: Prefix of entries of layers of the framework's own that are recorded as functions are, where ``layers`` asks for it.
LAYER = "Layer"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one framework's dumps are spelled (docs/format.md, "Entry names").

    ``name``                 ``framework`` of dump.json
    ``apis``                 the dialect whose API names and arguments it shares: its own name for most
    ``module_prefix``        prefix of entries of modules
    ``api_prefixes``         prefixes of entries of its APIs, operators and kernels
    ``collective_prefixes``  those of functions that exchange tensors with other processes
    ``tensor_type``          ``type`` of tensor leaves
    ``file_suffix``          ending of the tensor files it writes
    ``inner_gradients``      True where dumps were seen whose functions record in backward what an inner step hands on
    """

    name: str
    apis: str
    module_prefix: str
    api_prefixes: tuple[str, ...]
    collective_prefixes: tuple[str, ...]
    tensor_type: str
    file_suffix: str
    inner_gradients: bool = False

    @property
    def package(self) -> str:
        """The import name that types of its values begin with."""
        return self.tensor_type.partition(".")[0]


MINDSPORE = Dialect(
    name="mindspore",
    apis="mindspore",
    module_prefix="Cell",
    api_prefixes=(
        "Functional", "Tensor", "Mint", "MintFunctional", "MintDistributed", "Distributed", PRIMITIVE, JIT, KERNEL,
        LAYER,
    ),
    collective_prefixes=("Distributed", "MintDistributed"),
    tensor_type="mindspore.Tensor",
    file_suffix=".npy",
)  # fmt: skip
PYTORCH = Dialect(
    name="pytorch",
    apis="pytorch",
    module_prefix="Module",
    api_prefixes=("Functional", "Tensor", "Distributed", "Torch", "NPU", "VF", "Aten", LAYER),
    collective_prefixes=("Distributed",),
    tensor_type="torch.Tensor",
    file_suffix=".pt",
    inner_gradients=True,
)
#: MSAdapter: PyTorch's names over MindSpore's tensors and kernels.
MINDTORCH = Dialect(
    name="mindtorch",
    apis=PYTORCH.apis,
    module_prefix=PYTORCH.module_prefix,
    api_prefixes=(*PYTORCH.api_prefixes, KERNEL),
    collective_prefixes=PYTORCH.collective_prefixes,
    tensor_type=MINDSPORE.tensor_type,
    file_suffix=MINDSPORE.file_suffix,
)

#: All of them; where a value fits several, the first counts.
DIALECTS = (MINDSPORE, PYTORCH, MINDTORCH)

#: Prefixes of entries that stand for modules: direction comes before the call index.
MODULE_PREFIXES = tuple(dict.fromkeys(dialect.module_prefix for dialect in DIALECTS))
#: Prefixes of entries that stand for the frameworks' own APIs.
API_PREFIXES = frozenset(prefix for dialect in DIALECTS for prefix in dialect.api_prefixes)
#: Prefixes of functions that exchange tensors.
COLLECTIVE_PREFIXES = frozenset(prefix for dialect in DIALECTS for prefix in dialect.collective_prefixes)


#: A file of a framework itself, or of what records it, as a frame of a call site names it. Packages of models are
#: installed beside them.
_FRAMEWORK_FILE = re.compile(
    r"[/\\](?:site|dist)-packages[/\\](?:mindspore|torch|torch_npu|mindtorch|mindnlp|msadapter|msprobe|msprobe_ms)[/\\]"
)


def outside_frameworks(frames: Sequence[str]) -> list[str]:
    """Return the frames of a call site that lie in a model's or a user's own files, innermost first; all if none do.

    >>> outside_frameworks(["File /v/site-packages/torch/nn/a.py, line 1", "File /v/site-packages/timm/b.py, line 2"])
    ['File /v/site-packages/timm/b.py, line 2']
    """
    return [frame for frame in frames if not _FRAMEWORK_FILE.search(frame)] or list(frames)


_APIS = {dialect.name: dialect.apis for dialect in DIALECTS}


def apis_of(framework: str) -> str:
    """Return the name of the dialect whose APIs a framework has; an unknown framework has its own."""
    return _APIS.get(framework, framework)


def same_apis(one: str, other: str) -> bool:
    """Whether two frameworks call their APIs by the same names and with the same arguments, scalars included."""
    return apis_of(one) == apis_of(other)


def apis_by_prefixes(prefixes: Iterable[str]) -> str | None:
    """Return whose APIs entries with these prefixes are; None where no prefix tells, or they tell of several.

    >>> [apis_by_prefixes(seen) for seen in (["Functional", "Module"], ["Functional"], ["Cell", "Torch"])]
    ['pytorch', None, None]
    """
    seen = set(prefixes)
    users: dict[str, set[str]] = {}
    for dialect in DIALECTS:
        for prefix in seen.intersection((dialect.module_prefix, *dialect.api_prefixes)):
            users.setdefault(prefix, set()).add(dialect.apis)
    told = {apis for found in users.values() if len(found) == 1 for apis in found}
    return told.pop() if len(told) == 1 else None
