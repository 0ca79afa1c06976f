"""The console command ``compare``: its arguments, and which comparison they ask for."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from msprobe_ms.errors import UsageError
from msprobe_ms.graph import commands as kernels

#: Exit statuses: done, divergence found (with --exit-code).
_DONE, _DIVERGENT = 0, 1

_COMPARE_EPILOG = """\
examples:
  msprobe compare -tp ms_dump/step0/proc123 -gp pt_dump/step0/proc456 -o out -lm layer_mapping.yaml
  msprobe -f mindspore compare -i compare.json -o out -s     (the form and the columns of msprobe 1.1.0)
  msprobe compare -tp dump -gp other_dump --rank 0 --step 0,1   (kernels of compiled graphs, from their raw files)

compare.json holds {"npu_path": …, "bench_path": …}: the dump under suspicion and the one to trust; of raw kernel files
{"npu_path": …, "bench_path": …, "rank_id": [0], "step_id": [0, 1]}, where [] is all.
-f before the subcommand names the framework, after it it asks for a fuzzy match, as in msprobe 1.1.0."""

_NODE_HELP = (
    "tell of one node alone, in detail: the name of an entry, a value, a module or a function, of either dump; a text "
    "is written with -o, and --exit-code tells whether this node differs"
)


def add_compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare two dumps and say where the error begins",
        epilog=_COMPARE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    dump = "a dump.json, a rank folder or a step folder"
    sides = parser.add_argument_group("dumps: either -i, or -tp and -gp")
    sides.add_argument("-i", "--input_path", type=Path, metavar="FILE", help="compare.json naming both dumps")
    sides.add_argument("-tp", "--target_path", type=Path, metavar="PATH", help=f"the dump under suspicion: {dump}")
    sides.add_argument("-gp", "--golden_path", type=Path, metavar="PATH", help=f"the dump to trust: {dump}")
    chosen = "of raw kernel files: 0,1 or 0-3 (default all)"
    sides.add_argument("--rank", type=kernels.numbers, metavar="N,N,…", help=f"the ranks {chosen}")
    sides.add_argument("--step", type=kernels.numbers, metavar="N,N,…", help=f"the iterations {chosen}")
    report = parser.add_argument_group("report")
    report.add_argument("-o", "--output_path", type=Path, metavar="DIR", help="where reports go (default ./output)")
    report.add_argument("-s", "--stack_mode", action="store_true", help="add the column of call sites")
    report.add_argument("-c", "--compare_only", action="store_true", help="no advisor file")
    form = report.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="write the table as csv")
    form.add_argument("--xlsx", action="store_true", help="write the table as xlsx (the default)")
    report.add_argument(
        "--profile",
        choices=("v110", "latest", "own"),
        help="columns and rules of msprobe 1.1.0 (default with -i), of 26.x, or our own (default with -tp)",
    )
    report.add_argument(
        "--thresholds", type=Path, metavar="YAML", help="figures to measure and judge by, where not the usual"
    )
    report.add_argument(
        "-alg", "--custom-algorithms", nargs="+", action="extend", default=[], metavar="FILE.py:FUNCTION",
        help="metrics of your own for real data: (golden, target) -> (value, message)",
    )  # fmt: skip
    report.add_argument("--exit-code", action="store_true", help="exit with 1 when the dumps diverge")
    report.add_argument("--node", metavar="NAME", help=_NODE_HELP)
    pairing = parser.add_argument_group("pairing")
    pairing.add_argument(
        "-f", "-fm", "--fuzzy_match", action="store_true", help="ignore call indices while pairing entries"
    )
    pairing.add_argument(
        "-cm", "--cell_mapping", nargs="?", const=True, metavar="YAML", help="Cell to Module, with renames from a file"
    )
    pairing.add_argument(
        "-lm", "--layer_mapping", nargs="?", const=True, type=Path, metavar="YAML",
        help="renames of children by class; without a file they are found from the dumps and written to the output",
    )  # fmt: skip
    pairing.add_argument(
        "-am", "--api_mapping", nargs="?", const=True, metavar="YAML",
        help="functions of two frameworks pair across modules too, by the built-in table and rules from a file",
    )  # fmt: skip
    pairing.add_argument("-dm", "--data_mapping", type=Path, metavar="YAML", help="pairs of full item names")
    parser.set_defaults(run=_compare)


class _Sides(NamedTuple):
    """What to compare; ``ranks`` and ``steps`` choose among raw kernel files, None where these are not meant."""

    target: Path
    golden: Path
    ranks: list[int] | None = None
    steps: list[int] | None = None


def _compare(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` and `recover` need none of it.
    from msprobe_ms.compare.algorithms import load_algorithms
    from msprobe_ms.compare.run import Options, compare
    from msprobe_ms.compare.thresholds import load_thresholds
    from msprobe_ms.compare.verdict import verdict_lines
    from msprobe_ms.mapping.files import load_mappings

    sides = _sides(options)
    thresholds, algorithms = load_thresholds(options.thresholds), load_algorithms(options.custom_algorithms)
    if _means_kernels(sides):
        if options.thresholds or algorithms:
            raise UsageError("compare: --thresholds and -alg are for dumps with a dump.json, not for raw kernel files")
        divergent = kernels.compare(sides.target, sides.golden, sides.ranks or [], sides.steps or [], options)
        return _DIVERGENT if divergent and options.exit_code else _DONE
    old_form = options.input_path is not None
    profile = options.profile or ("v110" if old_form else "own")
    cell, api = (
        given if given in (None, True) else Path(given) for given in (options.cell_mapping, options.api_mapping)
    )
    align = options.layer_mapping is True
    settings = Options(
        mappings=load_mappings(cell, None if align else options.layer_mapping, options.data_mapping, api),
        align=align,
        fuzzy=options.fuzzy_match,
        profile=profile,
        thresholds=thresholds,
        algorithms=algorithms,
        csv=options.csv,
        stack=options.stack_mode,
        advice=profile != "latest" and not options.compare_only,
    )
    if options.node is not None:
        return _tell_node(sides, settings, options)
    divergent = False
    for outcome in compare(sides.target, sides.golden, options.output_path or Path("output"), settings):
        print("\n".join(verdict_lines(outcome)), flush=True)
        divergent = divergent or outcome.comparison.verdict == "divergent"
    return _DIVERGENT if divergent and options.exit_code else _DONE


def _tell_node(sides: _Sides, settings: Any, options: argparse.Namespace) -> int:
    from msprobe_ms.compare.details import node_report, write_node

    report = node_report(sides.target, sides.golden, options.node, settings)
    print("\n".join(report.lines), flush=True)
    if options.output_path is not None:
        print(f"report: {write_node(report, options.output_path)}")
    return _DIVERGENT if report.differs and options.exit_code else _DONE


def _means_kernels(sides: _Sides) -> bool:
    if sides.ranks is not None or sides.steps is not None:
        return True
    return all(map(kernels.holds_kernels_alone, (sides.target, sides.golden)))


def _sides(options: argparse.Namespace) -> _Sides:
    if options.input_path is not None:
        if options.target_path or options.golden_path:
            raise UsageError("compare: give either -i or -tp and -gp, not both")
        if options.rank is not None or options.step is not None:
            raise UsageError("compare: with -i ranks and steps stand in the file, as rank_id and step_id")
        return _read_compare_json(options.input_path)
    if options.target_path is None or options.golden_path is None:
        missing = "-gp" if options.target_path else "-tp" if options.golden_path else "-i, or -tp and -gp"
        raise UsageError(f"compare: {missing} is missing; see msprobe compare -h")
    return _Sides(options.target_path, options.golden_path, options.rank, options.step)


def _read_compare_json(path: Path) -> _Sides:
    form = 'expected {"npu_path": "…/dump.json", "bench_path": "…/dump.json"}'
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; {form}") from error
    except ValueError as error:
        raise UsageError(f"{path}: not valid JSON: {error}; {form}") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path}: holds a {type(content).__name__}; {form}")
    for key in ("npu_path", "bench_path"):
        if not isinstance(content.get(key), str) or not content[key]:
            raise UsageError(f"{path}: {key}: {content.get(key)!r} is not accepted; {form}")
    chosen = [_chosen(path, content, key) for key in ("rank_id", "step_id")]
    return _Sides(Path(content["npu_path"]), Path(content["bench_path"]), *chosen)


def _chosen(path: Path, content: dict[str, Any], key: str) -> list[int] | None:
    if key not in content:
        return None
    numbers = content[key]
    if not isinstance(numbers, list) or any(type(number) is not int or number < 0 for number in numbers):
        raise UsageError(f"{path}: {key}: {numbers!r} is not accepted; expected a list of numbers, [] for all")
    return numbers
