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
# What MindSpore is known to compute otherwise

[`msprobe acc_check`](accuracy_check.md) and [`msprobe prove`](prove.md) hold the results of single APIs against
float64. What they find again and again on a healthy MindSpore 2.10.0 on a CPU is listed here, with the reason and the
size. A training that meets one of these is not wrong by itself: it differs from PyTorch's by as much.

This page is written by `tools/known_differences_page.py` from the lists that are judged by; a test holds it to them.

## Approximations

Results that are off by more than rounding explains, and by no more than this, are a `warning` that begins with
`known:`; beyond it they are an `error`. The bounds are `absolute + relative · |exact result|`; the absolute part of a
gradient is times the largest value that goes in. They are twice what was measured on 40,000 values in each of six
ranges between -80 and 90.

{errors}

## Wrong results, and calls that raise

A result that is wrong for one of these is an `error` all the same, and Message says that it is known. `size` is the
largest error that was seen, as a share of the largest value. They were found by running every API that recording knows
on examples, forward and backward, in float32, against the same operation of PyTorch in float64 (`make api-sweep`, which
fails where this list is not what it finds).

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
