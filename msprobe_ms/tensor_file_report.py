"""What a person asks of tensor files: what one holds, and how far two are apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from msprobe_ms.arrays.metrics import METRIC_TITLES, Missing, tensor_difference
from msprobe_ms.arrays.statistics import statistics
from msprobe_ms.arrays.worst_elements import rearranged, study
from msprobe_ms.convert import Source
from msprobe_ms.support.translation import tr

#: Elements shown from the beginning and from the end.
_SHOWN = 5

#: Worst elements shown.
_WORST = 5


def described(path: Path) -> Iterator[str]:
    """Describe what a tensor file holds, a line each: shape and dtype, statistics, first and last elements.

    :raises DumpFormatError: the file is missing, damaged, or nothing tells what it holds
    """
    array, dtype = Source().read(path)
    yield f"{path}: {_kind(array, dtype)}"
    found = statistics(array)
    figures = (("max", found.maximum), ("min", found.minimum), ("mean", found.mean), ("norm", found.norm))
    yield ", ".join(f"{name} {figure}" for name, figure in figures)
    if array.dtype.kind in "fc":
        yield tr(
            "NaN {sum}, infinite {other_sum}, zero {third_sum}",
            sum=np.isnan(array).sum(),
            other_sum=np.isinf(array).sum(),
            third_sum=(array == 0).sum(),
        )
    elements = array.reshape(-1)
    if elements.size <= 2 * _SHOWN:
        yield tr("elements {listed}", listed=_listed(elements))
    else:
        yield tr(
            "first elements {listed}, last {other_listed}",
            listed=_listed(elements[:_SHOWN]),
            other_listed=_listed(elements[-_SHOWN:]),
        )


def differences(target: Path, golden: Path) -> Iterator[str]:
    """Describe how far two tensor files are apart, a line each: figures, then the elements that differ most.

    :raises DumpFormatError: a file is missing, damaged, or nothing tells what it holds
    """
    source = Source()
    (ours, our_dtype), (theirs, their_dtype) = source.read(target), source.read(golden)
    yield tr("target {kind}, golden {other_kind}", kind=_kind(ours, our_dtype), other_kind=_kind(theirs, their_dtype))
    if ours.dtype.kind not in "biufc" or theirs.dtype.kind not in "biufc":
        yield "equal" if np.array_equal(ours, theirs) else tr("not equal; there are no figures of such dtypes")
        return
    for name, figure in tensor_difference(ours, theirs, more=True).metrics.items():
        yield f"{METRIC_TITLES[name]}: {figure.value if isinstance(figure, Missing) else figure}"
    if ours.shape != theirs.shape:
        if moved := rearranged(ours, theirs):
            yield moved
        return
    found = study(ours, theirs)
    yield tr(
        "{differing} of {size} elements differ{value}",
        differing=found.differing,
        size=found.size,
        value=f": {found.likeness}" * bool(found.likeness),
    )
    for element in found.largest[:_WORST]:
        if element.absolute:
            yield tr(
                "at {index}: target {target}, golden {golden}",
                index=list(element.index),
                target=element.target,
                golden=element.golden,
            )


def _kind(array: np.ndarray, dtype: str) -> str:
    return f"{dtype} {list(array.shape)}"


def _listed(elements: np.ndarray) -> str:
    return "[" + ", ".join(str(each) for each in elements.tolist()) + "]"
