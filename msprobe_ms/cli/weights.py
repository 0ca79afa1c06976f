"""Console command ``compare_weights``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import (
    FAILED,
    add_command,
    add_output,
    add_parameter_pairing,
    exit_status,
    output_folder,
    parameter_mappings,
    print_lines,
    print_report,
    print_verdict,
)
from msprobe_ms.support.translation import tr

_EPILOG = tr("""\
examples:
  msprobe compare_weights net.ckpt model.safetensors
  msprobe compare_weights converted.ckpt pytorch_model.bin -lm layer_mapping.yaml -o out --exit-code

Read are .ckpt of MindSpore, .safetensors, .pt, .pth and .bin of torch.save, .npz, and folders with the shards of one
model; a file tells its format itself. Neither framework has to be installed. See docs/compare_weights.md.""")

#: Parameters from which on a progress bar is worth its line.
_LONG = 500


def add_compare_weights(commands: Any) -> None:
    parser = add_command(
        commands, "compare_weights", _run, tr("compare two checkpoints parameter by parameter"), _EPILOG
    )
    parser.add_argument("target", type=Path, metavar="TARGET", help="the weights under suspicion: a file or a folder")
    parser.add_argument("golden", type=Path, metavar="GOLDEN", help="the weights to trust")
    add_output(parser, tr("where the table goes (default ./output)"))
    parser.add_argument("--csv", action="store_true", help="write the table as csv (default: xlsx)")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when a parameter differs or is missing")
    add_parameter_pairing(parser)


def _run(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` needs none of it.
    from tqdm import tqdm

    from msprobe_ms.weights.compare import compare_weights
    from msprobe_ms.weights.open import open_weights
    from msprobe_ms.weights.report import weight_lines, write_renamed, write_weights

    mappings = parameter_mappings(options, "compare_weights")
    with open_weights(options.target) as target, open_weights(options.golden) as golden:
        quiet = True if len(target.weights) < _LONG else None
        with tqdm(total=len(target.weights), unit="parameter", disable=quiet) as bar:
            comparison = compare_weights(target, golden, mappings, lambda done, _: bar.update(done - bar.n))
    print_verdict(weight_lines(comparison))
    report = write_weights(comparison, output_folder(options), csv=options.csv)
    print_report(report)
    if (mapping := write_renamed(comparison, report)) is not None:
        print_lines([tr("parameters that are equal under another name: -dm {mapping}", mapping=mapping)])
    if comparison.problems:
        return FAILED
    return exit_status(options, divergent=comparison.divergent)
