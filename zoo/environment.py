"""What has to be said before public zoos can be imported on a machine without a GPU."""

from __future__ import annotations

import warnings
from importlib import import_module

from zoo.jobs import GOLDEN, TARGET

#: Side → what many pairs import.
_ZOOS = {
    GOLDEN: ("timm", "torchvision", "transformers", "diffusers"),
    TARGET: ("mindcv.models", "mindone.transformers", "mindone.diffusers"),
}


def prepare() -> None:
    """Let torchvision be imported beside a torch without CUDA, and one thread do each operation.

    torchvision from PyPI holds CUDA operators: it gives fakes for two that a CPU torch does not know.
    """
    import torch

    if hasattr(prepare, "library"):
        return
    warnings.filterwarnings("ignore")
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    prepare.library = library  # type: ignore[attr-defined] # its end would take them away again
    torch.set_num_threads(1)


def prepare_mindspore() -> None:
    """Put arithmetic of ``ops`` in the place of functions of ``mint`` that have no kernel on a CPU."""
    import mindspore as ms
    from mindspore import mint, ops

    def arange(*bounds: float, dtype: object = None, **other: object) -> ms.Tensor:
        import numpy as np

        array = np.arange(*(bounds or (other["end"],)))
        return ms.Tensor(array.astype(np.float32 if array.dtype.kind == "f" else np.int64)).astype(
            dtype or (ms.float32 if array.dtype.kind == "f" else ms.int64)
        )

    from zoo.mint_on_cpu import replace

    replace()
    mint.arange = arange
    mint.full = lambda size, fill_value, *, dtype=None: ops.full(tuple(size), fill_value, dtype=dtype)
    ops.embedding = mint.nn.functional.embedding


def import_zoos(*sides: str) -> None:
    """Import what processes would import that are forked of this one, each anew."""
    for side in sides:
        for zoo in _ZOOS[side]:
            import_module(zoo)
