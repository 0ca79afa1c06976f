"""Standards of comparison: which one an output gets, which figures it has, what msprobe calls it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from msprobe_ms.accuracy.judging import figures
from msprobe_ms.accuracy.judging.model import Profile
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.support.yaml_files import read_texts

#: Bytes that the lists may have.
_LARGEST_FILE = 2**18


class Standard(str, Enum):
    """A standard of comparison."""

    ABSOLUTE = "absolute"
    BINARY = "binary"
    ULP = "ulp"
    THOUSANDTH = "thousandth"
    BENCHMARK = "benchmark"

    __str__ = str.__str__

    @property
    def algorithm(self) -> str:
        """Its name in the tables of ``api_precision_compare``."""
        return _ALGORITHMS[self]


_ALGORITHMS = {
    Standard.ABSOLUTE: "绝对阈值法",
    Standard.BINARY: "二进制一致法",
    Standard.ULP: "ULP误差比对法",
    Standard.THOUSANDTH: "双千指标法",
    Standard.BENCHMARK: "标杆比对法",
}

#: The figures that a standard judges by. Those of no standard are there for all floats.
FIGURES: Mapping[Standard, tuple[str, ...]] = MappingProxyType(
    {
        Standard.ABSOLUTE: (figures.NON_FINITE_ERRORS, figures.RELATIVE_ERRORS, figures.ABSOLUTE_ERRORS),
        Standard.BINARY: (figures.UNEQUAL,),
        Standard.ULP: (figures.MAX_ULP, figures.MEAN_ULP, figures.MANY_ULPS),
        Standard.THOUSANDTH: (),
        Standard.BENCHMARK: (
            figures.SMALL_VALUE_ERRORS,
            figures.ROOT_MEAN_SQUARE,
            figures.ERROR_BALANCE,
            figures.MAX_NORMAL_RELATIVE,
            figures.MEAN_NORMAL_RELATIVE,
        ),
    }
)

#: Floats that the standards know; of others only the figures of no standard are computed.
STANDARD_DTYPES = frozenset({"float16", "bfloat16", "float32"})


def standard_of(api: str, dtype: str, profile: Profile = "v110", *, float8_arguments: bool = False) -> Standard:
    """Return the standard of an output of ``dtype``, by the last part of the API's name.

    26.x goes by dtypes alone; ours are those of 1.1.0, whose lists name APIs.
    """
    name, kind = parse_dtype(dtype).name, parse_dtype(dtype).kind
    if profile == "latest":
        if _is_narrow(name):
            return Standard.ULP
        if float8_arguments:
            return Standard.ABSOLUTE
        return Standard.BENCHMARK if kind in ("float", "complex") else Standard.BINARY
    listed = _lists()["standards"]
    if api in listed["thousandth"] and kind == "float":
        return Standard.THOUSANDTH
    if kind not in ("float", "complex") or api in listed["binary"]:
        return Standard.BINARY
    if api in listed["absolute"]:
        return Standard.ABSOLUTE
    return Standard.ULP if api in listed["ulp"] else Standard.BENCHMARK


def level_of(api: str) -> str:
    """Return how strict 26.x is with the benchmark ratio of an API: ``L0``, ``L1`` or ``L2``."""
    return next((level for level, apis in _lists()["levels"].items() if api in apis), "L0")


def _is_narrow(dtype: str) -> bool:
    return dtype.startswith(("float8", "hifloat8"))


@lru_cache(maxsize=1)
def _lists() -> Mapping[str, Mapping[str, frozenset[str]]]:
    content = read_texts(Path(__file__).with_name("standards.yaml"), _LARGEST_FILE)
    return {part: {key: frozenset(apis) for key, apis in of.items()} for part, of in content.items()}
