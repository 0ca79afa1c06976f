"""Console command ``prove``: run the call that compare named alone, and say which side is wrong and by what."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.cli.accuracy.acc_check import add_reference_python
from msprobe_ms.cli.common import DIVERGENT, DONE, FAILED, add_command, add_output, print_lines, print_verdict
from msprobe_ms.cli.comparison.options import add_pairing
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.accuracy.proof.question import Question

_EPILOG = tr("""\
examples:
  msprobe prove output                              (the first origin of the latest report there)
  msprobe prove output/compare_summary_20260101000000.json --node encoder.layers.0.norm
  msprobe prove -tp dump/step0 -gp golden/step0 --node Mint.sub.0
  msprobe prove dump/step0/rank0 --node Mint.sub.0  (does float64 give what this call gave?)

The call runs alone, on the recorded tensors or on random data with the recorded statistics: in float64, in the
frameworks of both dumps, and with the golden's values in place of the target's, one at a time. The result is also shown
in the page of the report (compare_report_….html).
Exit status: 0 if there is an answer, 2 if it cannot be decided; with --exit-code, 1 if the target's call is wrong.""")


def add_prove(commands: Any) -> None:
    summary = tr("run one call of a comparison alone, and say which side is wrong and why")
    parser = add_command(commands, "prove", _prove, summary, _EPILOG)
    parser.add_argument(
        "path", nargs="?", type=Path, metavar="REPORT|DUMP",
        help="compare_summary_….json, the folder of a report (its latest), or a dump with --node",
    )  # fmt: skip
    parser.add_argument("-tp", "--target_path", type=Path, metavar="PATH", help="the dump under suspicion")
    parser.add_argument("-gp", "--golden_path", type=Path, metavar="PATH", help="the dump to trust")
    parser.add_argument(
        "--node",
        metavar="NAME",
        help="the call: an entry, a value or a module of the target (default: the first origin)",
    )
    add_output(parser, tr("write proof_<time>.json there (default: beside the report, where one is asked about)"))
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when the target's call is wrong")
    add_reference_python(parser)
    add_pairing(parser.add_argument_group("pairing, where two dumps are compared again (default: -lm)"))


def _prove(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` needs none of it.
    from msprobe_ms.accuracy.proof.operation import Workshop
    from msprobe_ms.accuracy.proof.prove import can_be_run, prove
    from msprobe_ms.accuracy.proof.report import keep, proof_lines
    from msprobe_ms.accuracy.proof.verdict import Finding
    from msprobe_ms.dump.names import parse_entry

    question = _question(options)
    if (name := parse_entry(question.entry)) is not None and can_be_run(name):
        logger.info(tr("running {entry} alone; this may take a few minutes", entry=question.entry))
    with Workshop(reference_python=options.reference_python) as workshop:
        proof = prove(question, workshop)
    print_verdict(proof_lines(proof))
    if written := list(keep(proof, question, options.output_path)):
        print_lines(written)
    if proof.finding is Finding.UNDECIDED:
        return FAILED
    return DIVERGENT if options.exit_code and not proof.finding.is_right else DONE


def _question(options: argparse.Namespace) -> Question:
    from msprobe_ms.accuracy.proof.question import question_of, question_of_dumps
    from msprobe_ms.comparison.settings import Settings

    given = (options.layer_mapping, options.cell_mapping, options.api_mapping, options.data_mapping)
    settings = Settings(
        layer_mapping=options.layer_mapping if any(given) else True,
        cell_mapping=options.cell_mapping,
        api_mapping=options.api_mapping,
        data_mapping=options.data_mapping,
        fuzzy=options.fuzzy_match,
        html=False,
    ).options()
    sides = (options.target_path, options.golden_path)
    if options.path is not None:
        if any(sides):
            raise UsageError(tr("prove: give either a report or a dump, or -tp and -gp, not both"))
        return question_of(options.path, options.node, settings)
    if not all(sides):
        raise UsageError(tr("prove: name a report or a dump, or give -tp and -gp; see msprobe prove -h"))
    if options.node is None:
        raise UsageError(tr("prove: of two dumps, name the call with --node"))
    return question_of_dumps(*sides, options.node, settings)
