"""Report a comparison of gradients: the verdict, a table of all, one a rank as msprobe lays it out, and a heat map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msprobe_ms.comparison.reporting.colours import OWN_ROWS
from msprobe_ms.comparison.reporting.csv_table import Cell, figure_cell
from msprobe_ms.comparison.reporting.files import claimed_timestamp, write_table, writing
from msprobe_ms.comparison.terms import RowColour
from msprobe_ms.gradients.compare import LEAST_AT_FIRST, MOST_FALL, GradientComparison, GradientRow, overall
from msprobe_ms.page.template import escaped, write_static_page
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, tr_count, tr_join, tr_list
from msprobe_ms.weights.names import NAMES_DIFFER

_TITLES = (
    "Rank", "Step", "Target Name", "Golden Name", "Similarity", "Target Norm", "Golden Norm", "Norm Ratio", "Elements",
    "Note",
)  # fmt: skip
#: Parameters told by name in the terminal.
_TOLD = 5
#: Rows and steps of a heat map; the tables have them all.
_MOST_ROWS, _MOST_STEPS = 500, 200
#: Similarities from which on a cell has a paler colour.
_SHADES = (LEAST_AT_FIRST, 0.9, 0.75, 0.6)


def write_gradients(comparison: GradientComparison, folder: Path) -> list[Path]:
    """Write ``gradient_compare_{YYYYmmddHHMMSS}.csv`` and ``.html``, never over others, and for each rank
    ``rank{r}/similarities.csv``: the similarity of each parameter by step. Returns what was written, the page first.

    :raises UsageError: the folder cannot be written
    """
    marked = {id(row) for row in parting.rows} if (parting := comparison.parting) else set[int]()
    with claimed_timestamp(folder) as stamp:
        table, page = (folder / f"gradient_compare_{stamp}.{kind}" for kind in ("csv", "html"))
        write_table(table, list(_TITLES), ((_cells(row), RowColour.NONE) for row in comparison.rows), OWN_ROWS)
        with writing(page) as file:
            body = "\n".join(_body(comparison, marked))
            write_static_page(
                file, title=tr("Gradients: {name}", name=comparison.target.name), body=body, assets="gradients"
            )
    written = [page, table]
    for rank in comparison.ranks:
        path = folder / f"rank{rank}" / "similarities.csv"
        titles, rows = _similarities(comparison, rank)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, titles, ((row, RowColour.NONE) for row in rows), OWN_ROWS)
        written.append(path)
    return written


def _cells(row: GradientRow) -> list[Cell]:
    return [
        row.rank, row.step, row.name, row.golden, row.similarity, figure_cell(row.target_norm),
        figure_cell(row.golden_norm), row.norm_ratio, row.elements,
        row.note or (tr("rounding alone") if row.rounding else ""),
    ]  # fmt: skip


def _similarities(comparison: GradientComparison, rank: int) -> tuple[list[str], Iterator[list[str | float | None]]]:
    """The table of one rank: a column a step, a row a parameter, and the similarity of all elements in the last."""
    rows = [row for row in comparison.rows if row.rank == rank and row.name and row.golden]
    steps = list(_by_step(rows))
    found = {(row.name, row.step): row.similarity for row in rows}

    def lines() -> Iterator[list[str | float | None]]:
        for name in dict.fromkeys(row.name for row in rows):
            yield [name, *(found.get((name, step)) for step in steps)]
        yield ["summary", *(overall(some) for some in _by_step(rows).values())]

    return ["step", *map(str, steps)], lines()


def _by_step(rows: Sequence[GradientRow]) -> dict[int, list[GradientRow]]:
    found: dict[int, list[GradientRow]] = {}
    for row in rows:
        found.setdefault(row.step, []).append(row)
    return dict(sorted(found.items()))


# -- the terminal ------------------------------------------------------------------------------------------------------


def gradient_lines(comparison: GradientComparison) -> Iterator[str]:
    """Say at which step, of which parameters and on which ranks two trainings part, and what was not compared."""
    yield verdict(comparison)
    parting = comparison.parting
    for row in parting.rows[:_TOLD] if parting else ():
        yield tr("  {told}", told=_told(row))
    if parting and len(parting.rows) > _TOLD:
        yield tr("  and {count} more of step {step}", count=len(parting.rows) - _TOLD, step=parting.step)
    if rounding := comparison.rounding_alone:
        yield tr_count(
            "gradients that are only rounding error (not counted): 1 parameter, {names}",
            "gradients that are only rounding error (not counted): {count} parameters, {names}",
            count=len(rounding),
            names=listed(rounding, _TOLD),
        )
    yield from comparison.alone
    lone = [row for row in comparison.rows if not (row.name and row.golden)]
    if lone:
        for side, names in (("target", (row.name for row in lone)), ("golden", (row.golden for row in lone))):
            if found := list(filter(None, dict.fromkeys(names))):
                yield tr("parameters only in the {side}: {names}", side=tr(side), names=listed(found, _TOLD))
        if unread := dict.fromkeys(row.note for row in lone if not (row.name or row.golden)):
            yield tr("not compared: {notes}", notes=listed(unread, _TOLD, "; ", "; and "))
        if any(row.name for row in lone) and any(row.golden for row in lone):
            yield NAMES_DIFFER
    notes = dict.fromkeys(f"{row.name}: {row.note}" for row in comparison.rows if row.note and row.name and row.golden)
    if notes:
        yield tr("compared by norm alone: {notes}", notes=listed(notes, _TOLD, "; ", "; and "))


def verdict(comparison: GradientComparison) -> str:
    """Return the first line: DIVERGENT, CONSISTENT, INCOMPLETE, or NOTHING COMPARED."""
    compared, parting = comparison.compared, comparison.parting
    if not compared:
        return tr("NOTHING COMPARED: no parameter has a counterpart on the other side")
    parameters = len({row.name for row in compared})
    steps, ranks_compared = len(comparison.steps), len(comparison.ranks)
    over = tr_join(
        ", ",
        (
            tr_count("1 parameter", "{count} parameters", count=parameters),
            tr_count("1 step", "{count} steps", count=steps),
            tr_count("1 rank", "{count} ranks", count=ranks_compared),
        ),
    )
    if parting:
        ranks = tr_list(map(str, sorted({row.rank for row in parting.rows})[:10]))
        first = parting.rows[0]
        what = tr("signs") if parting.by == "direction" else tr("norms")
        return tr(
            "DIVERGENT: the {what} of gradients differ from step {step} on, most in {name}, on rank {ranks} ({count} "
            "of {parameters} parameters differ in that step; compared were {over})",
            what=what,
            step=parting.step,
            ranks=ranks,
            name=first.name,
            count=len(parting.rows),
            parameters=parameters,
            over=over,
        )
    if comparison.alone or any(row.note for row in comparison.rows):
        return tr("INCOMPLETE: what was compared agrees ({over}), but not everything could be compared", over=over)
    return tr(
        "CONSISTENT: no gradient differs by more than the limits (signs {signs:.3g} %, norms {norms:.3g} %; {over})",
        signs=100 * (1 - LEAST_AT_FIRST),
        norms=100 * (1 - LEAST_AT_FIRST),
        over=over,
    )


def _told(row: GradientRow) -> str:
    figures = [] if row.similarity is None else [tr("similarity {similarity:.4f}", similarity=row.similarity)]
    if row.norm_ratio is not None and row.target_norm is not None and row.golden_norm is not None:
        figures.append(
            tr(
                "norm {target_norm:.6g}, golden {golden_norm:.6g}",
                target_norm=row.target_norm,
                golden_norm=row.golden_norm,
            )
        )
    return tr(
        "rank {rank} step {step} {name}: {figures}",
        rank=row.rank,
        step=row.step,
        name=row.name,
        figures=tr_join(", ", figures),
    )


# -- the page ----------------------------------------------------------------------------------------------------------


def _body(comparison: GradientComparison, marked: set[int]) -> Iterator[str]:
    first, *others = gradient_lines(comparison)
    yield f"<h1>{escaped(first, 2000)}</h1>"
    yield "".join(f"<p>{escaped(line, 2000)}</p>" for line in others)
    for rank in comparison.ranks:
        yield from _heat_map(rank, [row for row in comparison.rows if row.rank == rank], marked)
    meaning = tr(
        "Similarity: the share of elements whose gradient is above zero on both sides or on neither. Marked is where "
        "two trainings part first: below {least} in the first step, or lower by more than {drop} than in the step "
        "before.",
        least=LEAST_AT_FIRST,
        drop=MOST_FALL,
    )
    sides = tr("Target: {target}. Golden: {golden}.", target=comparison.target, golden=comparison.golden)
    yield f"<footer><p>{escaped(meaning, 2000)}</p><p>{escaped(sides, 4000)}</p></footer>"


def _heat_map(rank: int, rows: Sequence[GradientRow], marked: set[int]) -> Iterator[str]:
    """Parameters downwards, those of the least similarity first; steps to the right."""
    known = [row for row in rows if row.similarity is not None]
    by_step = _by_step(rows)
    steps = list(by_step)
    least: dict[str, float] = {}
    for row in known:
        least[row.name] = min(least.get(row.name, 1.0), 1.0 if row.rounding else row.similarity or 0.0)
    shown_steps = steps[:_MOST_STEPS]
    cells = {(row.name, row.step): row for row in known}
    yield f"<h2>{escaped(tr('Rank {rank}', rank=rank))}</h2>"
    told = tr("Similarity by step, rank {rank}", rank=rank)
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(told)}">'
    yield f'<table><thead><tr><th scope="col">{escaped(tr("Parameter"))}</th>'
    yield "".join(f'<th scope="col">{step}</th>' for step in shown_steps) + "</tr></thead><tbody>"
    for name in sorted(least, key=least.__getitem__)[:_MOST_ROWS]:
        yield f'<tr><th scope="row">{escaped(name)}</th>'
        yield "".join(_cell(cells.get((name, step)), marked) for step in shown_steps) + "</tr>"
    yield f'</tbody><tfoot><tr><th scope="row">{escaped(tr("all elements"))}</th>'
    for step in shown_steps:
        value = overall(by_step[step])
        yield '<td class="none">–</td>' if value is None else f'<td class="{_shade(value)}">{value:.3f}</td>'
    yield "</tr></tfoot></table></div>"
    if len(least) > _MOST_ROWS or len(steps) > _MOST_STEPS:
        first = tr(
            "The first {rows} of {parameters} parameters and {columns} of {steps} steps.",
            rows=_MOST_ROWS,
            parameters=len(least),
            columns=_MOST_STEPS,
            steps=len(steps),
        )
        yield f"<p>{escaped(first)}</p>"


def _cell(row: GradientRow | None, marked: set[int]) -> str:
    if row is None or row.similarity is None:
        return '<td class="none">–</td>'
    if row.rounding:
        return f'<td class="none">{row.similarity:.3f}</td>'
    extra = " marked" if id(row) in marked else ""
    return f'<td class="{_shade(row.similarity)}{extra}">{row.similarity:.3f}</td>'


def _shade(value: float) -> str:
    return f"s{sum(value < bound for bound in _SHADES)}"
