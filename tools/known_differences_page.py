"""Write docs/known_differences.md from the lists that acc_check judges by.

``python tools/known_differences_page.py``
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "known_differences.md"
_ERRORS = ROOT / "msprobe_ms" / "accuracy" / "judging" / "known_errors.yaml"
_DIFFERENCES = ROOT / "msprobe_ms" / "frameworks" / "mindspore" / "known_differences.yaml"

_TEXT = """\
# Known differences of MindSpore

[`msprobe acc_check`](accuracy_check.md) and [`msprobe prove`](prove.md) compare the results of single APIs with
float64. This page lists what a healthy MindSpore 2.10.0 on a CPU is known to compute differently, with size and
reason. A training that meets one of these is not wrong because of it: it differs from PyTorch's by that much.

The tables are generated from the lists that the commands judge by.

## Approximations

These results are off by more than rounding explains. Up to the bound they are a `warning` that begins with
`known:`; beyond it they are an `error`. A bound is `absolute + relative · |exact result|`; for gradients the
absolute part is multiplied by the largest input. Bounds are twice what was measured on 40,000 values in each of six
ranges between -80 and 90.

{errors}

## Wrong results, and calls that raise

A wrong result of one of these is still an `error`; Message says that it is known. `size` is the largest error seen,
as a share of the largest value. They were found by running every API that is recorded on examples, forward and
backward, in float32, and comparing with the same operation of PyTorch in float64.

{differences}
"""


def page() -> str:
    """Return the page as it has to be."""
    errors = _table(("on", "API", "in", "dtype", "up to", "reason"), _errors())
    differences = _table(("API", "in", "size", "what is wrong"), _differences())
    return _TEXT.format(errors=errors, differences=differences)


def _errors() -> Iterator[tuple[str, ...]]:
    for where, apis in yaml.safe_load(_ERRORS.read_text(encoding="utf-8")).items():
        for api, known in apis.items():
            for direction in (each for each in known if each != "reason"):
                for dtype, bounds in known[direction].items():
                    yield where, f"`{api}`", direction, dtype, _bound(bounds), known["reason"]


def _bound(bounds: dict[str, Any]) -> str:
    parts = [f"{float(bounds['absolute']):g}"] if "absolute" in bounds else []
    return " + ".join([*parts, *([f"{float(bounds['relative']):g} · result"] if "relative" in bounds else [])])


def _differences() -> Iterator[tuple[str, ...]]:
    for names, known in yaml.safe_load(_DIFFERENCES.read_text(encoding="utf-8")).items():
        apis = ", ".join(f"`{name}`" for name in names.split(", "))
        size = known.get("size")
        yield apis, known["direction"], "raises" if size is None else f"{size:g}", known["reason"]


def _table(titles: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
