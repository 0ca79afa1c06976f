"""Console command ``config``: a configuration to begin with."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import DONE, add_command, print_lines
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

_EPILOG = tr("""\
examples:
  msprobe config --list                      what there is, and what each is for
  msprobe config overflow                    shows it; what its keys mean follows on standard error
  msprobe config overflow > config.json      the same as a file: the keys' meaning stays in the terminal
  msprobe config tensors -o config.json

JSON has no comments, so the file has none: docs/config.md explains every key.""")


def add_config(commands: Any) -> None:
    parser = add_command(
        commands, "config", _run, tr("list sample configurations, show one, or write it to a file"), _EPILOG
    )
    parser.add_argument("purpose", nargs="?", metavar="PURPOSE", help="what it is for, or a name: see --list")
    parser.add_argument("--list", action="store_true", help="list the samples and what each is for")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it to a new file")


def _run(options: argparse.Namespace) -> int:
    from msprobe_ms.config.sample_files import key_lines, sample, samples

    if options.list or options.purpose is None:
        if options.output is not None:
            raise UsageError(tr("config: -o needs a PURPOSE; msprobe config --list shows them"))
        print_lines(_listing(samples().values()))
        return DONE
    chosen = sample(options.purpose)
    text = chosen.path.read_text(encoding="utf-8")
    if options.output is None:
        print_lines(text.rstrip("\n").split("\n"))
    else:
        _write(options.output, text)
        print_lines([tr("{output}: {purpose}", output=options.output, purpose=chosen.purpose)])
    notes = [
        tr("{name}: {purpose}; cost: {cost}", name=chosen.name, purpose=chosen.purpose, cost=chosen.cost),
        *key_lines(chosen.path),
    ]
    print_lines([*notes, tr("Every key, with examples: docs/config.md")], file=sys.stderr)
    return DONE


def _listing(samples: Any) -> list[str]:
    rows = [(found.names[0] if found.names else found.name, found) for found in samples]
    width = max(len(name) for name, _ in rows)
    lines = [
        tr(
            "{name}  {purpose} (cost: {cost}) [{file}.json]",
            name=name.ljust(width), purpose=found.purpose, cost=found.cost, file=found.name,
        )
        for name, found in rows
    ]  # fmt: skip
    folder = next(found.path.parent for _, found in rows)
    return [
        *lines,
        tr("Files: {folder}", folder=folder),
        tr("msprobe config PURPOSE shows one, with -o FILE writes it."),
    ]


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            tr("config: {path} is there already; give -o another name, or remove it first", path=path)
        ) from None
