"""Console command ``export``: what a dump, or a comparison of two, shows, for other viewers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import DONE, add_command, add_output, numbers, output_folder, print_lines
from msprobe_ms.cli.comparison.options import add_pairing
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr, tr_list

_EPILOG = tr("""\
formats:
  model-explorer   export_<time>.graph.json, and of a comparison .deviation.json (colours) and .sync.json (pairs)
  vis.db           export_<time>.vis.db, for tb_graph_ascend, msprobe's plugin of TensorBoard
  onnx             export_<time>.onnx, a file a dump, for Netron: structure alone; needs msprobe-ms[onnx]
  dot              export_<time>.dot, a file a dump, for Graphviz

examples:
  msprobe export -tp ms_dump/step0 --to model-explorer -o out
  msprobe export -tp ms_dump/step0 -gp pt_dump/step0 -lm layer_mapping.yaml --to vis.db -o out""")


def add_export(commands: Any) -> None:
    told = tr("export a dump, or a comparison of two dumps, for other viewers")
    parser = add_command(commands, "export", _export, told, _EPILOG)
    dumps = parser.add_argument_group("dumps")
    dump = tr("a dump.json, a rank or step folder, a dump root")
    dumps.add_argument(
        "-tp", "--target_path", type=Path, metavar="PATH", required=True, help=tr("the dump: {dump}", dump=dump)
    )
    dumps.add_argument("-gp", "--golden_path", type=Path, metavar="PATH", help="the dump to compare it with")
    chosen = tr("to export: 0,1 or 0-3 (default all)")
    dumps.add_argument(
        "--rank", type=numbers, default=[], metavar="N,N,…", help=tr("the ranks {chosen}", chosen=chosen)
    )
    dumps.add_argument(
        "--step", type=numbers, default=[], metavar="N,N,…", help=tr("the steps {chosen}", chosen=chosen)
    )
    files = parser.add_argument_group("files")
    files.add_argument(
        "--to", required=True, choices=("model-explorer", "vis.db", "onnx", "dot"), help="the format (see below)"
    )
    add_output(files, tr("where the files go (default ./output)"))
    files.add_argument("--thresholds", type=Path, metavar="YAML", help="tolerances to judge by, where not the usual")
    add_pairing(parser.add_argument_group("pairing, with -gp"))


def add_graph_visualize(commands: Any) -> None:
    """The name and the options of msprobe 26.x for ``export --to vis.db``."""
    told = tr("the same as export --to vis.db, by its name in msprobe 26.x")
    parser = add_command(commands, "graph_visualize", _graph_visualize, told)
    parser.add_argument("-tp", "--target_path", type=Path, metavar="PATH", required=True, help="the dump")
    parser.add_argument("-gp", "--golden_path", type=Path, metavar="PATH", help="the dump to compare it with")
    add_output(parser, tr("where the file goes (default ./output)"))
    parser.add_argument("-lm", "--layer_mapping", nargs="?", const=True, type=Path, metavar="YAML", help=_AS_EXPORT)
    parser.add_argument("-fm", "--fuzzy_match", action="store_true", help=_AS_EXPORT)
    parser.add_argument("-tensor_log", "--is_print_compare_log", action="store_true", help="changes nothing")
    parser.add_argument("-progress_log", action="store_true", help="changes nothing")
    parser.add_argument("-oc", "--overflow_check", action="store_true", help="refused: see msprobe overflow_check")
    parser.add_argument("--file_type", choices=("db", "json"), default="db", help="json is refused")
    for name in _PARALLEL:
        parser.add_argument(name, metavar="N", help="refused: ranks are shown one by one")


_AS_EXPORT = tr("as for export")
_PARALLEL = ("--rank_size", "--tp", "--pp", "--vpp", "--order")


def _graph_visualize(options: argparse.Namespace) -> int:
    if options.overflow_check:
        raise UsageError(tr("graph_visualize: -oc is not supported: msprobe overflow_check names the first overflow"))
    if options.file_type == "json":
        raise UsageError(
            tr("graph_visualize: --file_type json is not supported: leave it out, the viewer reads vis.db")
        )
    given = [name for name in _PARALLEL if getattr(options, name.lstrip("-")) is not None]
    if given:
        raise UsageError(
            tr("graph_visualize: {given}: ranks are not merged into one model; leave them out", given=tr_list(given))
        )
    options.rank, options.step, options.to, options.thresholds = [], [], "vis.db", None
    options.cell_mapping = options.api_mapping = options.data_mapping = None
    return _export(options, "build" if options.golden_path is None else "compare")


def _export(options: argparse.Namespace, head: str = "export") -> int:
    # Imported here: `msprobe -h` needs none of it.
    from msprobe_ms.comparison.export.export import export
    from msprobe_ms.comparison.export.files import Naming
    from msprobe_ms.comparison.reporting.files import claimed_timestamp
    from msprobe_ms.comparison.settings import Settings

    mappings = {name: getattr(options, name) for name in _MAPPINGS}
    if options.golden_path is None and any((*mappings.values(), options.fuzzy_match, options.thresholds)):
        raise UsageError(tr("export: mappings, -f and --thresholds are for comparing: name the other dump with -gp"))
    settings = Settings(**mappings, fuzzy=options.fuzzy_match, thresholds=options.thresholds).options()
    folder = output_folder(options)
    with claimed_timestamp(folder, f"{head}_") as timestamp:
        naming = Naming(folder, timestamp, head)
        for file in export(
            options.target_path, options.golden_path, options.to, naming, settings,
            ranks=options.rank, steps=options.step,
        ):  # fmt: skip
            print_lines([f"{options.command}: {file}"])
    return DONE


_MAPPINGS = ("cell_mapping", "layer_mapping", "api_mapping", "data_mapping")
