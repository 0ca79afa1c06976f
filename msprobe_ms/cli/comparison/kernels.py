"""What ``compare`` does with two dumps of kernels."""

from __future__ import annotations

import argparse
from pathlib import Path

from msprobe_ms.cli.common import (
    output_folder,
    print_verdict,
)
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr, tr_list


def compare(target: Path, golden: Path, ranks: list[int], steps: list[int], options: argparse.Namespace) -> bool:
    """Compare kernel dumps and print what was found; return whether one diverges."""
    from msprobe_ms.comparison.kernels.compare import compare_kernels
    from msprobe_ms.comparison.reporting.terminal import verdict_lines

    given = [
        flag
        for flag, value in (
            ("-cm", options.cell_mapping), ("-lm", options.layer_mapping), ("-dm", options.data_mapping),
            ("-fm", options.fuzzy_match), ("-s", options.stack_mode),
            ("--node", options.node),
        )
        if value
    ]  # fmt: skip
    if given:
        raise UsageError(
            tr(
                "compare: {given}: does not apply to raw kernel files, which pair by their names in the "
                "graph; compare their indices instead (msprobe index), or leave it out",
                given=tr_list(given),
            )
        )
    profile = options.profile or ("v110" if options.input_path is not None else "latest")
    output, divergent = output_folder(options), False
    for outcome in compare_kernels(target, golden, output, ranks=ranks, steps=steps, profile=profile, csv=options.csv):
        print_verdict(verdict_lines(outcome))
        divergent = divergent or outcome.comparison.verdict == Verdict.DIVERGENT
    return divergent
