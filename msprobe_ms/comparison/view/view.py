"""Write the pages of a dump: one for each rank and step, and one of them all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msprobe_ms.comparison.kernels.first_nonfinite import raw_kernels
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.view.dump import write_dump
from msprobe_ms.comparison.view.many import ManyDumps
from msprobe_ms.dump.kernels.kernel_files import find_kernel_folders
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.locate import Place, find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import DumpFormatError


def view(path: Path, folder: Path, timestamp: str, *, all_rows: bool = False, stacks: bool = True) -> Iterator[Path]:
    """Write ``dump_view{_step_rank}_{timestamp}.html`` of each dump below ``path``; yield what was written.

    Of several ranks or steps one more comes last, of them all: ``dump_view_{timestamp}.html``. Raw files of kernels are
    a dump, too.

    :raises MsprobeError: there is no dump, one cannot be read, or the folder cannot be written
    """
    with ManyDumps() as many:
        several = 0
        for place, dump in _dumps(path):
            suffix = f"_{'_'.join(str(place).split())}" if place else ""
            file = folder / f"dump_view{suffix}_{timestamp}.html"
            with writing(file) as opened:
                answer = write_dump(opened, dump, all_rows=all_rows, stacks=stacks)
            yield file
            if place:
                many.add(place, dump, answer, file.name)
                several += 1
        if several > 1:
            many.write(file := folder / f"dump_view_{timestamp}.html")
            yield file


def _dumps(path: Path) -> Iterator[tuple[Place | None, Dump]]:
    """The dumps below a path, each with its place where there are several."""
    try:
        places = find_places(path)
    except DumpFormatError as error:
        parts = {(folder.rank, folder.step) for folder in (find_kernel_folders(path) if path.is_dir() else ())}
        if not parts:
            raise error
        for rank, step, dump in raw_kernels(path):
            yield (Place(step, f"rank{rank}") if len(parts) > 1 else None), dump
        return
    for place, found in places.items():
        yield (place if len(places) > 1 else None), read_dump(found, sketches=False)
