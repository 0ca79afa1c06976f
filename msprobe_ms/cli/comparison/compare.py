"""Console command ``compare``: which comparison its arguments ask for."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.cli.common import (
    FAILED,
    add_command,
    exit_status,
    output_folder,
    print_lines,
    print_report,
    print_verdict,
    set_log_level,
    verdict_text,
)
from msprobe_ms.cli.comparison import kernels, tensor_files
from msprobe_ms.cli.comparison.options import add_pairing, add_report, add_sides
from msprobe_ms.cli.comparison.sides import Sides, means_kernels, sides_of
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.process import no_garbage_collection
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.many.plan import DumpPair, Plan
    from msprobe_ms.comparison.run import Options

#: Up to so many pairs of dumps the verdict over all comes first; of more, so many that differ have a line.
_FEW, _MOST_TOLD = 8, 40

_COMPARE_EPILOG = tr("""\
examples:
  msprobe compare -tp ms_dump/step0/proc123 -gp pt_dump/step0/proc456 -o out -lm layer_mapping.yaml
  msprobe compare -tp ms_dump -gp pt_dump --rank 0-7 --step 0   (all ranks and steps without these options)
  msprobe -f mindspore compare -i compare.json -o out -s     (the form and the columns of msprobe 1.1.0)
  msprobe compare -tp a.npy -gp b.npy                        (two tensor files, .npy .bin .pt .pth)
  msprobe compare -tp dump -gp other_dump --rank 0 --step 0,1   (kernels of compiled graphs, from their raw files)

compare.json holds {"npu_path": …, "bench_path": …}: the dump under suspicion and the one to trust; of raw kernel files
{"npu_path": …, "bench_path": …, "rank_id": [0], "step_id": [0, 1]}, where [] is all.
-f before the subcommand names the framework, after it it asks for a fuzzy match, as in msprobe 1.1.0.""")


def add_compare(commands: Any, *, csv: bool = False) -> None:
    """Add the command; ``csv``: its tables are csv unless xlsx is asked for."""
    parser = add_command(
        commands, "compare", _compare, tr("compare two dumps and say where the error begins"), _COMPARE_EPILOG
    )
    parser.set_defaults(csv_by_default=csv)
    add_sides(parser.add_argument_group("dumps: either -i, or -tp and -gp"))
    add_report(parser.add_argument_group("report"))
    add_pairing(parser.add_argument_group("pairing"))


def _compare(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` and `recover` need none of it.
    from msprobe_ms.comparison.many.plan import plan
    from msprobe_ms.comparison.settings import Settings

    set_log_level(options.log_level)
    sides = sides_of(options)
    if options.weight:
        return tensor_files.compare_checkpoints(sides.target, sides.golden, options)
    if options.compare_level in ("token", "logits"):
        return _compare_tokens(sides, options)
    if (status := tensor_files.compare_pairs(sides.target, sides.golden, options)) is not None:
        return status
    if means_kernels(sides):
        if options.thresholds or options.custom_algorithms:
            raise UsageError(
                tr("compare: --thresholds and -alg are for dumps with a dump.json, not for raw kernel files")
            )
        divergent = kernels.compare(sides.target, sides.golden, sides.ranks or [], sides.steps or [], options)
        return exit_status(options, divergent=divergent)
    old_form = options.input_path is not None
    profile = options.profile or ("v110" if old_form else "own")
    settings = Settings(
        layer_mapping=options.layer_mapping,
        cell_mapping=options.cell_mapping,
        api_mapping=options.api_mapping,
        data_mapping=options.data_mapping,
        operation_mapping=options.op_mapping_file,
        inference=options.consistent_check,
        fuzzy=options.fuzzy_match,
        profile=profile,
        thresholds=options.thresholds,
        algorithms=options.custom_algorithms,
        csv=_as_csv(options),
        stack=options.stack_mode,
        advice=(profile != "latest" or options.advice is not None) and not options.compare_only,
        advice_form=options.advice,
        html=not options.no_html,
        html_rows=options.html_rows,
        html_stacks=not options.html_no_stacks,
        log_values=options.is_print_compare_log,
    ).options()
    if options.node is not None and sides.ranks is None and sides.steps is None:
        return _print_node(sides, settings, options)
    chosen = plan(sides.target, sides.golden, ranks=sides.ranks or (), steps=sides.steps or (), profile=profile)
    if options.node is not None and len(chosen.pairs) == 1:
        return _print_node(Sides(chosen.pairs[0].target, chosen.pairs[0].golden), settings, options)
    if options.node is not None:
        raise UsageError(
            tr("compare: --node looks at one rank and step, here are {count}; choose one", count=len(chosen.pairs))
        )
    if options.diff_analyze:
        from msprobe_ms.comparison.many.first_divergence import first_divergence

        lines, total = first_divergence(chosen, output_folder(options), settings)
        print_verdict(lines)
        return FAILED if total.failed else exit_status(options, divergent=total.verdict == Verdict.DIVERGENT)
    if len(chosen.pairs) > 1:
        return _compare_all(chosen, output_folder(options), settings, options)
    return _compare_one(chosen.pairs[0], sides, settings, options)


def _as_csv(options: argparse.Namespace) -> bool:
    return options.csv or (options.csv_by_default and not options.xlsx)


def _compare_tokens(sides: Sides, options: argparse.Namespace) -> int:
    from msprobe_ms.tokens.compare import compare_tokens
    from msprobe_ms.tokens.report import token_lines, write_tokens

    comparison = compare_tokens(sides.target, sides.golden, options.logits)
    print_verdict(token_lines(comparison))
    print_report(write_tokens(comparison, output_folder(options), csv=_as_csv(options)))
    return exit_status(options, divergent=comparison.first is not None)


@no_garbage_collection()  # which would go through all of the comparison once more, just before the end
def _compare_one(pair: DumpPair, sides: Sides, settings: Options, options: argparse.Namespace) -> int:
    from msprobe_ms.comparison.reporting.files import claimed_timestamp
    from msprobe_ms.comparison.reporting.terminal import verdict_lines
    from msprobe_ms.comparison.run import compare_one

    output = output_folder(options)
    with claimed_timestamp(output) as timestamp:
        forks = options.own and not settings.algorithms  # which are code of the user's that may have begun threads
        outcome = compare_one(pair.target, pair.golden, output, settings, timestamp, forks=forks)
    # As the user named them, where that names these two alone.
    named = (sides.target, sides.golden) if sides.ranks is None and sides.steps is None else (pair.target, pair.golden)
    print_verdict(verdict_lines(outcome, settings.command(*named)))
    return exit_status(options, divergent=outcome.comparison.verdict == Verdict.DIVERGENT)


def _compare_all(plan: Plan, output: Path, settings: Options, options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from msprobe_ms.comparison.many.run import cluster, compare_all
    from msprobe_ms.comparison.many.summary import Gathering
    from msprobe_ms.comparison.many.terminal import Lines, total_lines, total_report_lines
    from msprobe_ms.comparison.reporting.files import claimed_timestamp

    number = len(plan.pairs)
    few, lines = number <= _FEW, Lines(in_full=number <= _FEW)
    told: list[list[str]] = []
    with (
        claimed_timestamp(output) as timestamp,
        cluster(options.scheduler) if options.scheduler else nullcontext() as pool,
        Gathering(plan, output, timestamp, html=settings.html, stacks=settings.html_stacks) as gathering,
        tqdm(total=number, unit="dump", disable=None, leave=not few) as bar,
    ):
        for found in compare_all(plan, output, settings, timestamp, pool):
            gathering.add(found)
            if said := list(lines.of(found)):
                told.append(said)
                if not few and len(told) <= _MOST_TOLD:
                    bar.write(verdict_text(said))
            bar.update()
        total = gathering.total()
        told_of_all = list(total_lines(total, plan))
        page = gathering.write_page(total, told_of_all)
    if not few and len(told) > _MOST_TOLD:
        print_lines([tr("and {count} more that are not consistent, see the summary", count=len(told) - _MOST_TOLD)])
    # The verdict stands first where all fits a screen, else below what has scrolled by.
    pairs = [line for said in told for line in said] if few else []
    print_verdict([*told_of_all, *pairs, *total_report_lines(total, page)])
    if total.failed:
        return FAILED
    return exit_status(options, divergent=total.verdict == Verdict.DIVERGENT)


def _print_node(sides: Sides, settings: Any, options: argparse.Namespace) -> int:
    from msprobe_ms.comparison.node.report import node_report, write_node

    report = node_report(sides.target, sides.golden, options.node, settings)
    print_lines(report.lines)
    if options.output_path is not None:
        print_report(write_node(report, options.output_path))
    return exit_status(options, divergent=report.differs)
