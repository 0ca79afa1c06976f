"""Console command ``bisect``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import DONE, add_command, print_lines, print_verdict
from msprobe_ms.cli.parser import mistaken
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

_EPILOG = tr("""\
examples:
  msprobe bisect --config a.json --golden-config b.json -o out -- python train.py --- python golden.py
  msprobe bisect --next dump/step0 golden/step0 --skip 64

Both commands record one step as their configuration says, at any level; bisect changes its scope, skip and dump_path
for each round and puts it back. --next decides on two dumps that are there: exit status 0 when the call is found, or
nothing differs, 3 when there is more to record, which it prints as JSON.""")

#: There is another round to record.
AGAIN = 3


def add_bisect(commands: Any) -> None:
    parser = add_command(commands, "bisect", _run, tr("narrow a step down to the first call that goes wrong"), _EPILOG)
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration that the first command reads")
    parser.add_argument("--golden-config", type=Path, metavar="FILE", help="the one that the second command reads")
    parser.add_argument("--skip", type=_count, default=64, metavar="N", help="record every Nth call first (default 64)")
    parser.add_argument(
        "--factor", type=_factor, default=8, metavar="N", help="divisor of skip in each round (default 8)"
    )
    parser.add_argument("--next", nargs=2, type=Path, metavar=("DUMP", "GOLDEN"), help="decide on two dumps alone")
    parser.add_argument("--resume", action="store_true", help="go on with the bisection in -o")
    parser.add_argument("-o", "--output_path", type=Path, metavar="DIR", help="where the rounds go (default ./bisect)")
    parser.add_argument("commands", nargs=argparse.REMAINDER, help="-- COMMAND --- GOLDEN COMMAND")


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 10**6:
        raise mistaken(tr("{text} is not accepted; accepted are 1 to 1000000", text=repr(text)))
    return int(text)


def _factor(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text[:9]) <= 1000:
        raise mistaken(tr("{text} is not accepted; accepted are 2 to 1000", text=repr(text)))
    return int(text)


def _run(options: argparse.Namespace) -> int:
    if options.next is not None:
        return _decide(options)
    from msprobe_ms.bisect.rounds import Side, bisect

    words = options.commands[1:] if options.commands[:1] == ["--"] else options.commands
    if options.config is None or options.golden_config is None or "---" not in words[1:-1]:
        raise UsageError(
            tr(
                "bisect: two configurations and two commands are needed: msprobe bisect --config A.json "
                "--golden-config B.json -- COMMAND --- GOLDEN COMMAND; or two dumps: msprobe bisect --next "
                "DUMP GOLDEN"
            )
        )
    if options.config.absolute() == options.golden_config.absolute():
        raise UsageError(
            tr("bisect: each command needs a configuration of its own, as each records into a folder of its own")
        )
    place = words.index("---")
    sides = (
        Side("target", options.config, words[:place]),
        Side("golden", options.golden_config, words[place + 1 :]),
    )
    folder = options.output_path or Path("bisect")
    decision, told = bisect(
        sides,
        folder,
        skip=options.skip,
        factor=options.factor,
        resume=options.resume,
        tell=lambda line: print_lines([line]),
    )
    size, seconds = sum(each.bytes for each in told), sum(each.seconds for each in told)
    print_verdict([tr("{which}: {said}", which=tr("FOUND") if decision.found else tr("NOT FOUND"), said=decision.said)])
    print_lines(
        [
            tr(
                "{count} rounds, {seconds:.1f} s, {size:.2f} MB; {folder}",
                count=len(told),
                seconds=seconds,
                size=size / 1000000.0,
                folder=folder / "bisect.json",
            )
        ]
    )
    return DONE


def _decide(options: argparse.Namespace) -> int:
    from msprobe_ms.bisect.decide import REPORT, Round, decide, follow

    report = options.output_path and options.output_path / REPORT
    target, golden = options.next
    decision = follow(Round(options.skip), decide(target, golden, report), [], options.factor)
    if decision.next is None:
        print_verdict(
            [tr("{which}: {said}", which=tr("FOUND") if decision.found else tr("NOT FOUND"), said=decision.said)]
        )
        return DONE
    sections = {side: decision.next.section(side) for side in ("target", "golden")}
    print_lines([json.dumps({"said": decision.said, **sections})])
    return AGAIN
