"""Say how modules that both sides have left can be paired: by ``-lm``, or by correcting the mapping file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.pairing.coverage import unmatched_modules
from msprobe_ms.support.translation import tr, tr_list

#: Lines of a mapping that are shown, where it is longer than a page; the summary has all.
_SHOWN = 24


def mapping_advice(comparison: Comparison) -> str:
    """Return what pairs the modules that both sides have left, in one sentence; "" where one side has none left."""
    if not all(unmatched_modules(comparison.pairs)):
        return ""
    mapped = comparison.mapped
    if mapped.found:
        return tr(
            "-lm found no counterpart for these modules: where you know it, add it to the mapping file that -lm "
            "wrote, and give this file with -lm FILE"
        )
    if mapped.files:
        return tr("to pair these modules, correct {files}", files=tr_list(mapped.files))
    return tr("to pair these modules, compare again with -lm (without a file): it finds which is which")


def mapping_lines(comparison: Comparison) -> Iterator[str]:
    """Say what pairs these modules; where a mapping file was given, also the lines that pair them."""
    advice, mapped = mapping_advice(comparison), comparison.mapped
    if not advice:
        return
    if mapped.found or not mapped.files or not mapped.proposed:
        yield advice
        return
    yield tr("{advice}; these lines pair them (the number is how sure that is, 0 to 1):", advice=advice)
    shown = _shown(mapped.proposed)
    yield from (f"  {line}" for line in shown)
    if more := len(mapped.proposed) - len(shown):
        yield tr("  and {more} more lines: proposed_mapping in the summary", more=more)


def _shown(lines: Sequence[str]) -> Sequence[str]:
    """All lines, or so many that more than one is left, and none ends with a class whose rules are left out."""
    if len(lines) <= _SHOWN + 1:
        return lines
    return lines[:_SHOWN] if lines[_SHOWN - 1].startswith(" ") else lines[: _SHOWN - 1]
