"""What ``compare`` does with files that are no dumps: single tensors, hand-made pairs of them, checkpoints."""

from __future__ import annotations

import argparse
from pathlib import Path

from msprobe_ms.cli.common import FAILED, exit_status, output_folder, print_report, print_verdict
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr


def compare_pairs(target: Path, golden: Path, options: argparse.Namespace) -> int | None:
    """Compare tensor files, or those that a metadata.json names; None where the paths are something else."""
    from msprobe_ms.tensor_pairs import compare_pairs, find_pairs, pair_lines, write_pairs

    pairs = find_pairs(target, golden)
    if pairs is None:
        return None
    if options.thresholds or options.custom_algorithms or options.op_mapping_file:
        raise UsageError(tr("compare: --thresholds, -alg and -mf are for dumps with a dump.json, not for single files"))
    rows = list(compare_pairs(pairs))
    print_verdict(pair_lines(rows))
    print_report(write_pairs(rows, output_folder(options), csv=not options.xlsx))
    if any(row.is_unread for row in rows):
        return FAILED
    return exit_status(options, divergent=any(row.differs for row in rows))


def compare_checkpoints(target: Path, golden: Path, options: argparse.Namespace) -> int:
    """Compare two checkpoints parameter by parameter; the table is a csv, unless xlsx is asked for."""
    from msprobe_ms.comparison.pairing.rules.files import load_mappings
    from msprobe_ms.weights.compare import compare_weights
    from msprobe_ms.weights.open import open_weights
    from msprobe_ms.weights.report import weight_lines, write_weights

    if options.layer_mapping is True or options.cell_mapping is True:
        raise UsageError(tr("compare: with -w -lm and -cm need a file: checkpoints do not tell which layer is which"))
    mappings = load_mappings(options.cell_mapping, options.layer_mapping, options.data_mapping)
    with open_weights(target) as ours, open_weights(golden) as theirs:
        comparison = compare_weights(ours, theirs, mappings)
    print_verdict(weight_lines(comparison))
    print_report(write_weights(comparison, output_folder(options), csv=not options.xlsx))
    if comparison.problems:
        return FAILED
    return exit_status(options, divergent=comparison.divergent)
