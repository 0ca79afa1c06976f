"""Train the PyTorch network of each pair with other kernels, and compare it with itself: nothing may be told.

python -m zoo.other_kernels ROOT [--pairs PAIR…] [--kernels KERNEL…] [--dtype bfloat16]

In mixed precision too, most of a network agrees with full precision as far as the narrower floats tell; an expert that
is chosen otherwise does not.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from types import MappingProxyType

from zoo.environment import import_zoos, prepare

prepare()

import torch  # noqa: E402

from msprobe_ms.dump.model import Dump  # noqa: E402
from msprobe_ms.dump.reading.locate import find_dumps  # noqa: E402
from msprobe_ms.dump.reading.reader import read_dump  # noqa: E402
from msprobe_ms.pytorch import PrecisionDebugger  # noqa: E402
from torture.dumps import KeptDump  # noqa: E402
from zoo.__main__ import SET_ASIDE  # noqa: E402
from zoo.alone import alone  # noqa: E402
from zoo.golden_side import batch_of, make, optimizer_of  # noqa: E402
from zoo.jobs import GOLDEN, STEPS  # noqa: E402
from zoo.pair import Pair, SameName, load, names  # noqa: E402
from zoo.score import told  # noqa: E402

#: The kernels that all others are held against, and those that ``train`` sets itself.
PLAIN, CHANNELS_LAST, MIXED_PRECISION = "plain", "channels-last", "mixed-precision"


@dataclass(frozen=True)
class Recording(KeptDump):
    """Two steps of the PyTorch network of a pair, whose parameters have a dtype."""

    pair: str
    kernels: str
    level: str
    dtype: str

    def folder(self, root: Path) -> Path:
        return root / self.pair / f"{self.kernels}-{self.level}-{self.dtype}"

    def __str__(self) -> str:
        return "/".join(astuple(self))

    def read(self, root: Path, step: int) -> Dump:
        (path,) = find_dumps(self.step(root, step)).values()
        return read_dump(path)


def _with_fused_attention(pair: Pair) -> Pair:
    """Where transformers lets one choose; others keep theirs."""
    if not isinstance(pair, SameName) or pair.zoo != "transformers":
        return pair
    chosen, given = copy(pair), pair.config()
    given["config"]._attn_implementation = "sdpa"
    chosen.config = lambda: given  # type: ignore[method-assign]
    return chosen


def _without_onednn(pair: Pair) -> Pair:
    torch.backends.mkldnn.enabled = False
    return pair


def _with_threads(pair: Pair) -> Pair:
    torch.set_num_threads(4)
    return pair


KERNELS: Mapping[str, Callable[[Pair], Pair]] = MappingProxyType(
    {
        "fused-attention": _with_fused_attention,
        "without-onednn": _without_onednn,
        "threads": _with_threads,
        CHANNELS_LAST: copy,
        MIXED_PRECISION: copy,
    }
)


def train(recording: Recording, root: Path) -> None:
    pair = KERNELS.get(recording.kernels, copy)(load(recording.pair, root))
    layout = torch.channels_last if recording.kernels == CHANNELS_LAST else torch.contiguous_format
    dtype = getattr(torch, recording.dtype)
    net = make(pair).to(dtype=dtype, memory_format=layout)
    optimizer = optimizer_of(pair, net)
    with recording.dump_path(root) as dump_path:
        debugger = PrecisionDebugger(task="statistics", level=recording.level, dump_path=str(dump_path))
        for step in range(STEPS):
            batch = {name: _cast(each, dtype, layout) for name, each in batch_of(pair, step).items()}
            optimizer.zero_grad()
            debugger.start(net)
            with torch.autocast("cpu", torch.bfloat16, enabled=recording.kernels == MIXED_PRECISION):
                loss = pair.golden_loss(net, batch, torch.nn.functional.cross_entropy)
            loss.backward()
            debugger.stop()
            debugger.step()
            optimizer.step()


def _cast(tensor: torch.Tensor, dtype: torch.dtype, layout: torch.memory_format) -> torch.Tensor:
    """An input with the dtype of the parameters, if it holds floats; an image in the layout of the convolutions."""
    cast = tensor.to(dtype) if tensor.is_floating_point() else tensor
    return cast.to(memory_format=layout) if cast.dim() == 4 else cast


def _is_recorded(recording: Recording, root: Path) -> bool:
    """Record what is not recorded yet; False where the network cannot be computed so."""
    try:
        if not recording.is_done(root):
            alone(train, recording, root)
    except Exception as error:  # of any zoo
        print(f"{recording}: {str(error)[:100]}", flush=True)
    return recording.is_done(root)


def is_quiet(recording: Recording, root: Path) -> bool:
    """Whether both steps agree with those of the plain kernels; what is told of them is printed."""
    plain = replace(recording, kernels=PLAIN)
    lines = told((recording.read(root, step), plain.read(root, step)) for step in range(STEPS))
    if lines:
        print(recording, *lines, sep="\n", flush=True)
    return not lines


def main() -> int:
    aside = set(SET_ASIDE.read_text(encoding="utf-8").split())
    parser = argparse.ArgumentParser("python -m zoo.other_kernels", description=__doc__)
    parser.add_argument("root", type=Path, help="folder of the dumps")
    parser.add_argument("--pairs", nargs="+", default=[name for name in names() if name not in aside], metavar="PAIR")
    parser.add_argument("--kernels", nargs="+", default=[*KERNELS], choices=[*KERNELS])
    parser.add_argument("--levels", nargs="+", default=["L0", "mix"])
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    import_zoos(GOLDEN)
    quiet: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for pair in options.pairs:
        for level in options.levels:
            for kernels in (PLAIN, *options.kernels):
                recording = Recording(pair, kernels, level, options.dtype)
                if _is_recorded(recording, options.root) and kernels != PLAIN:
                    quiet[kernels, level].append(is_quiet(recording, options.root))
    for (kernels, level), each in quiet.items():
        print(f"{kernels:16} {level:4} quiet {sum(each)} of {len(each)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
