"""Which two dumps ``compare`` was given, and whether they are kernels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from msprobe_ms.support.errors import DumpFormatError, UsageError
from msprobe_ms.support.json_files import read_object
from msprobe_ms.support.text import show
from msprobe_ms.support.translation import tr

#: The folder of dumps that msit's interface makes.
_DUMP_TAG = "msit_dump"
#: Bytes read of compare.json.
_LARGEST_FORM = 1 << 20


class Sides(NamedTuple):
    """What to compare; ``ranks`` and ``steps`` choose among what is there, None where all is meant."""

    target: Path
    golden: Path
    ranks: list[int] | None = None
    steps: list[int] | None = None


def sides_of(options: argparse.Namespace) -> Sides:
    """Return what the options name; raises UsageError where they name too little, or two forms at once."""
    if options.input_path is not None:
        if options.target_path or options.golden_path:
            raise UsageError(tr("compare: give either -i or -tp and -gp, not both"))
        if options.rank is not None or options.step is not None:
            raise UsageError(tr("compare: with -i ranks and steps stand in the file, as rank_id and step_id"))
        return _read_compare_json(options.input_path)
    if options.target_path is None or options.golden_path is None:
        missing = "-gp" if options.target_path else "-tp" if options.golden_path else tr("-i, or -tp and -gp")
        raise UsageError(tr("compare: {missing} is missing; see msprobe compare -h", missing=missing))
    return Sides(_inside(options.target_path), _inside(options.golden_path), options.rank, options.step)


def _inside(path: Path) -> Path:
    """The folder itself, or the one that msit's interface makes in it."""
    return path / _DUMP_TAG if (path / _DUMP_TAG).is_dir() else path


def _read_compare_json(path: Path) -> Sides:
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
    return Sides(Path(content["npu_path"]), Path(content["bench_path"]), *chosen)


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


def means_kernels(sides: Sides) -> bool:
    """Whether raw kernel files are to be compared: those ranks and steps choose among, wherever there are some."""
    roots = (sides.target, sides.golden)
    if sides.ranks is None and sides.steps is None:
        return all(map(_holds_kernels_alone, roots))
    return not all(map(_holds_dump, roots)) or all(map(_holds_kernels_too, roots))


def _holds_dump(path: Path) -> bool:
    from msprobe_ms.dump.reading.locate import find_places

    try:
        return bool(find_places(path, quiet=True))  # what is read of it says what was not taken
    except DumpFormatError:
        return False


def _holds_kernels_alone(path: Path) -> bool:
    """Return whether ``path`` is a folder of raw kernel files without any dump.json that compare could take."""
    from msprobe_ms.dump.kernels.kernel_files import find_kernel_folders

    if not path.is_dir() or _holds_dump(path):
        return False
    return not any(path.rglob("dump.json")) and bool(find_kernel_folders(path))


def _holds_kernels_too(path: Path) -> bool:
    """Return whether raw kernel files lie beside the steps of a dump root."""
    from msprobe_ms.dump.kernels.kernel_files import find_kernel_folders
    from msprobe_ms.dump.reading.locate import of_dumps

    if not path.is_dir():
        return False
    return any(find_kernel_folders(inner) for inner in path.iterdir() if inner.is_dir() and not of_dumps(inner))
