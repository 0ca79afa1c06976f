"""Makes ``msprobe_ms/comparison/pairing/mindspore_pytorch.yaml`` from MindSpore's public table of API pairs.

``python tools/public_pairs.py PAIRS.csv > FILE``, where PAIRS.csv has the columns
``pytorch``, ``mindspore`` and ``agreement`` with one pair of full names a line (``torch.abs,mindspore.ops.abs,…``).
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

HEADER = """\
# MindSpore APIs beside PyTorch's, in the words of dump.json, and classes of layers beside each other.
# Made by tools/public_pairs.py; what is not in the public table stands in operations.yaml.
#
# Source: "PyTorch and MindSpore API Mapping Table", https://gitee.com/mindspore/docs,
#   docs/mindspore/source_en/note/api_mapping/pytorch_api_mapping.md, branch r2.3 (mindspore.ops, nn and Tensor) and
#   branch master (mindspore.mint). Copyright Huawei Technologies Co., Ltd.; published under Creative Commons
#   Attribution 4.0 and Apache License 2.0. Taken over: the names of each pair, where a dump can hold them."""

#: The longest prefix counts: where an API lives → what dump.json calls it.
_MINDSPORE = {
    "mindspore.ops.": "Functional.",
    "mindspore.Tensor.": "Tensor.",
    "mindspore.mint.": "Mint.",
    "mindspore.mint.nn.functional.": "MintFunctional.",
    "mindspore.mint.distributed.": "MintDistributed.",
}
_PYTORCH = {
    "torch.": "Torch.",
    "torch.Tensor.": "Tensor.",
    "torch.nn.functional.": "Functional.",
    "torch.distributed.": "Distributed.",
}
_LAYERS = (("mindspore.nn.", "mindspore.mint.nn."), "torch.nn.")


def main(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        pairs = [(row["mindspore"], row["pytorch"]) for row in csv.DictReader(file)]
    print(HEADER)
    _section("apis", ((_spoken(ours, _MINDSPORE), _spoken(theirs, _PYTORCH)) for ours, theirs in pairs))
    print()
    _section("classes", ((_layer(ours, _LAYERS[0]), _layer(theirs, _LAYERS[1])) for ours, theirs in pairs))


def _section(title: str, pairs: Iterable[tuple[str, str]]) -> None:
    """One name of PyTorch's for each of MindSpore's: of several the one that is spelled the same, else the first."""
    chosen: dict[str, str] = {}
    for ours, theirs in pairs:
        if ours and theirs and (ours not in chosen or _last(ours) == _last(theirs) != _last(chosen[ours])):
            chosen[ours] = theirs
    print(f"{title}:")
    for ours in sorted(chosen):
        if title == "apis" or ours != chosen[ours]:
            print(f"  {ours}: {chosen[ours]}")


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _spoken(name: str, spaces: dict[str, str]) -> str:
    """``mindspore.ops.abs`` → ``Functional.abs``; "" for what dumps do not hold, and for classes."""
    space = max((space for space in spaces if name.startswith(space)), key=len, default="")
    api = name.removeprefix(space)
    return "" if not space or "." in api or api[:1].isupper() else spaces[space] + api


def _layer(name: str, spaces: str | tuple[str, ...]) -> str:
    """``mindspore.nn.Dense`` → ``Dense``; "" for what is no layer."""
    space, _, layer = name.rpartition(".")
    return layer if (space + ".").startswith(spaces) and layer[:1].isupper() else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
