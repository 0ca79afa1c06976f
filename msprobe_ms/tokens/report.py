"""Report a comparison of tokens: the verdict, and a table with a row for each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from msprobe_ms.comparison.reporting.colours import OWN_ROWS
from msprobe_ms.comparison.reporting.csv_table import Cell, figure_cell
from msprobe_ms.comparison.reporting.files import claimed_timestamp, write_table
from msprobe_ms.comparison.terms import RowColour
from msprobe_ms.support.translation import tr
from msprobe_ms.tokens.compare import Judgement, TokenComparison, TokenRow

_TITLES = (
    "key", "token_id", "sequence", "golden_token", "target_token", "equal", "rank_in_golden", "golden_margin",
    "target_margin", "kl_divergence", "max_log_probability_error", "cosine_similarity", "l1_norm", "top5_overlap",
    "ulp_max_diff", "ulp", "passed", "judgement", "golden_data_path", "target_data_path", "cmp_fail_reason",
)  # fmt: skip
_COLOURS = {Judgement.ERROR: RowColour.RED, Judgement.APART: RowColour.RED, Judgement.TIE: RowColour.YELLOW}


def write_tokens(comparison: TokenComparison, folder: Path, *, csv: bool = False) -> Path:
    """Write ``compare_tokens_{YYYYmmddHHMMSS}.xlsx`` (or ``.csv``), never over another.

    :raises UsageError: the folder cannot be written
    """
    with claimed_timestamp(folder) as stamp:
        path = folder / f"compare_tokens_{stamp}.{'csv' if csv else 'xlsx'}"
        colour = RowColour.NONE
        rows = ((_cells(row), _COLOURS.get(row.judgement, colour)) for row in comparison.rows)
        write_table(path, list(_TITLES), rows, OWN_ROWS)
    return path


def _cells(row: TokenRow) -> list[Cell]:
    found = row.figures
    figures: list[Cell] = [None] * 14
    if found is not None:
        figures = [
            found.golden_token, found.target_token, found.equal, found.rank,
            *map(figure_cell, (found.margin, found.target_margin, found.kl, found.error, found.cosine, found.l1_norm)),
            found.overlap, figure_cell(found.ulp_difference), figure_cell(found.ulp), found.passed,
        ]  # fmt: skip
    paths = [None if path is None else str(path) for path in (row.golden, row.target)]
    return [row.place.key, row.place.token, row.sequence, *figures, row.judgement.value, *paths, row.note]


def token_lines(comparison: TokenComparison) -> Iterator[str]:
    """Say which token differs first, and whether that was a tie or an error."""
    compared = [row for row in comparison.rows if row.figures is not None]
    if not compared:
        yield tr("NOTHING COMPARED: no token has logits of one shape on both sides")
        return
    tokens = len({(row.place, row.sequence) for row in compared})
    first = comparison.first
    ties = [row for row in compared if row.judgement is Judgement.TIE]
    if first is not None:
        yield tr("DIVERGENT: {where}: {what}", where=_where(first), what=_what(first))
    elif ties:
        yield tr(
            "CONSISTENT: up to {where}, where a tie is decided the other way: {what}",
            where=_where(ties[0]),
            what=_what(ties[0]),
        )
    else:
        yield tr("CONSISTENT: all {tokens} tokens are equal, and their logits agree", tokens=tokens)
    yield from _growth(comparison, first or (ties[0] if ties else None))
    if comparison.forced:
        yield tr("  both were fed the same tokens, so that every token is judged")
    elif after := sum(row.judgement is Judgement.AFTER for row in compared):
        yield tr(
            "  the {after} tokens after the first difference are not judged, as the texts differ from there on",
            after=after,
        )
    lone = [row for row in comparison.rows if row.figures is None]
    if lone:
        yield tr(
            "  {count} tokens were not compared, the first (token {token}): {note}",
            count=len(lone),
            token=lone[0].place.token,
            note=lone[0].note,
        )


def _where(row: TokenRow) -> str:
    key = tr(" of {key}", key=row.place.key) if row.place.key else ""
    sequence = tr(", sequence {sequence}", sequence=row.sequence) if row.sequence else ""
    return tr("token {token}{key}{sequence}", token=row.place.token, key=key, sequence=sequence)


def _what(row: TokenRow) -> str:
    found = row.figures
    assert found is not None
    if found.reason:
        return found.reason
    if found.equal:
        far = tr("KL {kl:.3g}, cosine {cosine:.6f}", kl=found.kl, cosine=found.cosine)
        return tr(
            "the same token {golden_token}, but the logits are apart ({far})", golden_token=found.golden_token, far=far
        )
    likely = tr("which is {exp:.4g} times as likely there", exp=math.exp(found.gap))
    told = tr(
        "the target gives {target_token}, the golden {golden_token}, {likely}",
        target_token=found.target_token,
        golden_token=found.golden_token,
        likely=likely,
    )
    if row.judgement is Judgement.TIE:
        return tr("{told}; rounding may explain this", told=told)
    return tr("{told}; rounding does not explain this (KL {kl:.3g})", told=told, kl=found.kl)


def _growth(comparison: TokenComparison, until: TokenRow | None) -> Iterator[str]:
    """How the distance grew up to a token, of its sequence."""
    if until is None:
        return
    course = [
        (row.place.token, row.figures.kl)
        for row in comparison.rows
        if row.figures is not None and (row.place.key, row.sequence) == (until.place.key, until.sequence)
        and row.place.token <= until.place.token and math.isfinite(row.figures.kl)
    ]  # fmt: skip
    if len(course) > 1:
        (first, at_first), (last, at_last) = course[0], course[-1]
        yield tr(
            "  KL is {at_first:.3g} at token {first}, {at_last:.3g} at token {last}",
            at_first=at_first,
            first=first,
            at_last=at_last,
            last=last,
        )
