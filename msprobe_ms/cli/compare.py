"""Console commands ``compare`` and ``merge_result``: their arguments, and which comparison they ask for."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msprobe_ms.cli import compare_files, compare_kernels
from msprobe_ms.cli.common import (
    DONE,
    FAILED,
    LOG_LEVELS,
    add_command,
    add_output,
    exit_status,
    numbers,
    output_folder,
    print_lines,
    print_report,
    print_verdict,
    set_log_level,
    verdict_text,
)
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.support.errors import DumpFormatError, UsageError
from msprobe_ms.support.json_files import read_object
from msprobe_ms.support.text import show
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.many.plan import Plan
    from msprobe_ms.comparison.run import Options

#: Levels of msit that ask for the ordinary comparison, and the folder of its dumps.
_LEVELS = ("layer", "module", "api")
_DUMP_TAG = "msit_dump"

#: Bytes read of compare.json.
_LARGEST_FORM = 1 << 20

#: Up to so many pairs of dumps the verdict over all comes first; of more, so many that differ have a line.
_FEW, _MOST_TOLD = 8, 40

_COMPARE_EPILOG = tr("""\
examples:
  msprobe compare -tp ms_dump/step0/proc123 -gp pt_dump/step0/proc456 -o out -lm layer_mapping.yaml
  msprobe compare -tp ms_dump -gp pt_dump --rank 0-7 --step 0   (every rank and step without these)
  msprobe -f mindspore compare -i compare.json -o out -s     (the form and the columns of msprobe 1.1.0)
  msprobe compare -tp a.npy -gp b.npy                        (two tensor files, .npy .bin .pt .pth)
  msprobe compare -tp dump -gp other_dump --rank 0 --step 0,1   (kernels of compiled graphs, from their raw files)

compare.json holds {"npu_path": …, "bench_path": …}: the dump under suspicion and the one to trust; of raw kernel files
{"npu_path": …, "bench_path": …, "rank_id": [0], "step_id": [0, 1]}, where [] is all.
-f before the subcommand names the framework, after it it asks for a fuzzy match, as in msprobe 1.1.0.""")

_NODE_HELP = tr(
    "explain one node in detail: the name of an entry, a value, a module or a function, "
    "of either dump; a text is written with -o, and --exit-code tells whether this node differs"
)

_MERGE_EPILOG = tr("""\
The yaml file:
  api:                       names, or beginnings of names, of rows; without it every row
    - Functional.layer_norm
  compare_index:             columns of the tables, a sheet each
    - Max diff
    - NormRelativeErr
It writes multi_ranks_compare_merge_<time>.xlsx: rows are NPU Name, columns ranks.""")


def add_compare(commands: Any, *, csv: bool = False) -> None:
    """Add the command; ``csv``: its tables are csv unless xlsx is asked for."""
    parser = add_command(
        commands, "compare", _compare, tr("compare two dumps and say where the error begins"), _COMPARE_EPILOG
    )
    parser.set_defaults(csv_by_default=csv)
    _add_sides(parser.add_argument_group("dumps: either -i, or -tp and -gp"))
    _add_report(parser.add_argument_group("report"))
    add_pairing(parser.add_argument_group("pairing"))


def _add_sides(sides: Any) -> None:
    dump = tr("a dump.json, a rank or step folder, a dump root")
    sides.add_argument("-i", "--input_path", type=Path, metavar="FILE", help="compare.json naming both dumps")
    sides.add_argument(
        "-tp", "--target_path", "-mp", "--my-path", type=Path, metavar="PATH",
        help=tr("the dump under suspicion: {dump}; with -gp a tensor file, a tensor file", dump=dump),
    )  # fmt: skip
    sides.add_argument(
        "-gp", "--golden_path", "--golden-path", type=Path, metavar="PATH",
        help=tr("the dump to trust: {dump}; or a tensor file, or the metadata.json of hand-made pairs", dump=dump),
    )  # fmt: skip
    chosen = tr("to compare: 0,1 or 0-3 (default all)")
    sides.add_argument("--rank", type=numbers, metavar="N,N,…", help=tr("the ranks {chosen}", chosen=chosen))
    sides.add_argument("--step", type=numbers, metavar="N,N,…", help=tr("the steps {chosen}", chosen=chosen))
    sides.add_argument("-m", "--mode", type=_mode, default="auto", help=tr("auto alone: what is compared is found out"))
    sides.add_argument("--scheduler", metavar="ADDRESS", help="compare ranks and steps on the Dask cluster there")


def _mode(text: str) -> str:
    if text != "auto":
        raise argparse.ArgumentTypeError(
            tr("{text} is not supported: dumps of graphs and models offline are not read", text=repr(text))
        )
    return text


def _add_report(report: Any) -> None:
    add_output(report, tr("where reports go (default ./output)"))
    report.add_argument("-s", "--stack_mode", action="store_true", help="add the column of call sites")
    report.add_argument("-c", "--compare_only", action="store_true", help="no advisor file")
    report.add_argument(
        "--advice", choices=("mindstudio",), help="the advisor file in the form of MindStudio's analyzer"
    )
    form = report.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="write the table as csv")
    form.add_argument("--xlsx", action="store_true", help="write the table as xlsx (the default)")
    report.add_argument("--no-html", action="store_true", help="no page to look at (compare_report_….html)")
    report.add_argument(
        "--html-rows", choices=("all",), help="figures of all values in the page, however many (default: 12 MB at most)"
    )
    report.add_argument("--html-no-stacks", action="store_true", help="no call sites and no paths in the page")
    report.add_argument(
        "--profile",
        choices=("v110", "latest", "own", "maca"),
        help="columns and rules of msprobe 1.1.0 (default with -i), of 26.x, of MetaX, or our own (default with -tp)",
    )
    report.add_argument(
        "--thresholds", type=Path, metavar="YAML", help="yaml file that changes tolerances and thresholds"
    )
    report.add_argument(
        "-alg", "--custom-algorithms", nargs="+", action="extend", default=[], metavar="FILE.py:FUNCTION",
        help="metrics of your own for real data: (golden, target) -> (value, message)",
    )  # fmt: skip
    report.add_argument(
        "-da", "--diff_analyze", action="store_true",
        help="write no tables, only the ranks and calls where the error begins (diff_analyze_….json)",
    )  # fmt: skip
    report.add_argument(
        "-tensor_log", "--is_print_compare_log", action="store_true", help="log what is found of each value"
    )
    report.add_argument(
        "--consistent_check", action="store_true",
        help="one side is an inference: no gradients, and modules are paired as with -lm",
    )  # fmt: skip
    report.add_argument(
        "--backend", choices=("fsdp", "megatron"), help="changes nothing: with --consistent_check names are found"
    )
    report.add_argument("--exit-code", action="store_true", help="exit with 1 when the dumps diverge")
    report.add_argument("--node", metavar="NAME", help=_NODE_HELP)
    report.add_argument(
        "-cl", "--compare_level", "-cmp-level", "--cmp-level", choices=("token", "logits", *_LEVELS),
        help="token, logits, of two inferences: which generated token differs first, and whether that was a tie or an "
        "error; layer, module, api: everything both dumps hold (the default)",
    )  # fmt: skip
    report.add_argument("-w", "--weight", action="store_true", help="both are checkpoints: compare parameters")
    report.add_argument("-l", "--log-level", choices=LOG_LEVELS, default="info", help="what is logged (default info)")
    report.add_argument("--logits", metavar="NAME", help="with -cl: the module that gives the logits (lm_head)")


def add_pairing(pairing: Any) -> None:
    """Add the options that say what of the one dump stands beside what of the other."""
    pairing.add_argument(
        "-f", "-fm", "--fuzzy_match", action="store_true", help="ignore call indices while pairing entries"
    )
    pairing.add_argument(
        "-cm", "--cell_mapping", nargs="?", const=True, type=Path, metavar="YAML",
        help="Cell to Module, with renames from a file",
    )  # fmt: skip
    pairing.add_argument(
        "-lm", "--layer_mapping", nargs="?", const=True, type=Path, metavar="YAML",
        help="renames of children by class; without a file they are found from the dumps and written to the output",
    )  # fmt: skip
    pairing.add_argument(
        "-am", "--api_mapping", nargs="?", const=True, type=Path, metavar="YAML",
        help="functions of two frameworks pair across modules too, by the built-in table and rules from a file",
    )  # fmt: skip
    pairing.add_argument("-dm", "--data_mapping", type=Path, metavar="YAML", help="pairs of full item names")
    pairing.add_argument(
        "-mf", "--op-mapping-file", type=Path, metavar="JSON",
        help="kinds of operations whose calls pair in order: the file, or the folder of op_mapping_file.json",
    )  # fmt: skip


def add_merge_result(commands: Any) -> None:
    told = tr("put chosen columns of all ranks into one table")
    parser = add_command(commands, "merge_result", _merge_result, told, _MERGE_EPILOG)
    parser.add_argument(
        "-i", "--input_dir", type=Path, required=True, metavar="DIR", help="the folder with compare_result_rank*_*"
    )
    parser.add_argument("-o", "--output_dir", type=Path, metavar="DIR", help="where it goes (default ./output)")
    parser.add_argument(
        "-config", "--config", type=Path, required=True, metavar="YAML", help="which rows and columns (see below)"
    )


def _merge_result(options: argparse.Namespace) -> int:
    from msprobe_ms.comparison.many.merge_tables import merge, read_choice
    from msprobe_ms.comparison.reporting.files import claimed_timestamp

    output = options.output_dir or Path("output")
    with claimed_timestamp(output, "multi_ranks_compare_merge_") as timestamp:
        print_report(merge(options.input_dir, output, read_choice(options.config), timestamp))
    return DONE


class _Sides(NamedTuple):
    """What to compare; ``ranks`` and ``steps`` choose among what is there, None where all is meant."""

    target: Path
    golden: Path
    ranks: list[int] | None = None
    steps: list[int] | None = None


def _compare(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` and `recover` need none of it.
    from msprobe_ms.comparison.many.plan import plan
    from msprobe_ms.comparison.settings import Settings

    set_log_level(options.log_level)
    sides = _sides(options)
    if options.weight:
        return compare_files.compare_checkpoints(sides.target, sides.golden, options)
    if options.compare_level in ("token", "logits"):
        return _compare_tokens(sides, options)
    if (status := compare_files.compare_pairs(sides.target, sides.golden, options)) is not None:
        return status
    if _means_kernels(sides):
        if options.thresholds or options.custom_algorithms:
            raise UsageError(
                tr("compare: --thresholds and -alg are for dumps with a dump.json, not for raw kernel files")
            )
        divergent = compare_kernels.compare(sides.target, sides.golden, sides.ranks or [], sides.steps or [], options)
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
        return _print_node(_Sides(chosen.pairs[0].target, chosen.pairs[0].golden), settings, options)
    if options.node is not None:
        raise UsageError(
            tr("compare: --node looks at one rank and step, here are {count}; choose one", count=len(chosen.pairs))
        )
    if options.diff_analyze:
        from msprobe_ms.comparison.many.first_divergence import first_divergence

        lines, total = first_divergence(chosen, output_folder(options), settings)
        print_verdict(lines)
        return FAILED if total.failed else exit_status(options, divergent=total.verdict == Verdict.DIVERGENT)
    run = _compare_all if len(chosen.pairs) > 1 else _compare_one
    return run(chosen, output_folder(options), settings, options)


def _as_csv(options: argparse.Namespace) -> bool:
    return options.csv or (options.csv_by_default and not options.xlsx)


def _compare_tokens(sides: _Sides, options: argparse.Namespace) -> int:
    from msprobe_ms.tokens.compare import compare_tokens
    from msprobe_ms.tokens.report import token_lines, write_tokens

    comparison = compare_tokens(sides.target, sides.golden, options.logits)
    print_verdict(token_lines(comparison))
    print_report(write_tokens(comparison, output_folder(options), csv=_as_csv(options)))
    return exit_status(options, divergent=comparison.first is not None)


def _compare_one(plan: Plan, output: Path, settings: Options, options: argparse.Namespace) -> int:
    from msprobe_ms.comparison.reporting.files import claimed_timestamp
    from msprobe_ms.comparison.reporting.terminal import verdict_lines
    from msprobe_ms.comparison.run import compare_one

    (pair,) = plan.pairs
    with claimed_timestamp(output) as timestamp:
        outcome = compare_one(pair.target, pair.golden, output, settings, timestamp)
    print_verdict(verdict_lines(outcome))
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


def _print_node(sides: _Sides, settings: Any, options: argparse.Namespace) -> int:
    from msprobe_ms.comparison.node.report import node_report, write_node

    report = node_report(sides.target, sides.golden, options.node, settings)
    print_lines(report.lines)
    if options.output_path is not None:
        print_report(write_node(report, options.output_path))
    return exit_status(options, divergent=report.differs)


def _means_kernels(sides: _Sides) -> bool:
    """Whether raw kernel files are to be compared: those ranks and steps choose among, wherever there are some."""
    roots = (sides.target, sides.golden)
    if sides.ranks is None and sides.steps is None:
        return all(map(compare_kernels.holds_kernels_alone, roots))
    return not all(map(_holds_dump, roots)) or all(map(compare_kernels.holds_kernels_too, roots))


def _holds_dump(path: Path) -> bool:
    from msprobe_ms.dump.reading.locate import find_places

    try:
        return bool(find_places(path))
    except DumpFormatError:
        return False


def _sides(options: argparse.Namespace) -> _Sides:
    if options.input_path is not None:
        if options.target_path or options.golden_path:
            raise UsageError(tr("compare: give either -i or -tp and -gp, not both"))
        if options.rank is not None or options.step is not None:
            raise UsageError(tr("compare: with -i ranks and steps stand in the file, as rank_id and step_id"))
        return _read_compare_json(options.input_path)
    if options.target_path is None or options.golden_path is None:
        missing = "-gp" if options.target_path else "-tp" if options.golden_path else tr("-i, or -tp and -gp")
        raise UsageError(tr("compare: {missing} is missing; see msprobe compare -h", missing=missing))
    return _Sides(_inside(options.target_path), _inside(options.golden_path), options.rank, options.step)


def _inside(path: Path) -> Path:
    """The folder itself, or the one that msit's interface makes in it."""
    return path / _DUMP_TAG if (path / _DUMP_TAG).is_dir() else path


def _read_compare_json(path: Path) -> _Sides:
    form = tr('expected {"npu_path": "…/dump.json", "bench_path": "…/dump.json"}')
    content = read_object(path, _LARGEST_FORM, form)
    for key in ("npu_path", "bench_path"):
        if not isinstance(content.get(key), str) or not content[key]:
            raise UsageError(
                tr(
                    "{path}: {key}: {given} is not accepted; {form}",
                    path=path,
                    key=key,
                    given=show(content.get(key)),
                    form=form,
                )
            )
    chosen = [_chosen(path, content, key) for key in ("rank_id", "step_id")]
    return _Sides(Path(content["npu_path"]), Path(content["bench_path"]), *chosen)


def _chosen(path: Path, content: dict[str, Any], key: str) -> list[int] | None:
    if key not in content:
        return None
    numbers = content[key]
    if not isinstance(numbers, list) or any(type(number) is not int or number < 0 for number in numbers):
        raise UsageError(
            tr(
                "{path}: {key}: {numbers} is not accepted; expected a list of numbers, [] for all",
                path=path,
                key=key,
                numbers=show(numbers),
            )
        )
    return numbers
