"""Pages of made-up comparisons, by the format in docs/report_page_design.md: transformers of any size, with a fault."""

from __future__ import annotations

import html
import io
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msprobe_ms.page.columns import NOTHING, Codes, Columns
from msprobe_ms.page.template import escaped, write_page

_FIGURES = ("max", "min", "mean", "norm")


def no_numbers(count: int) -> np.ndarray:
    """Floats of which each says that there is no number."""
    return np.full(count, NOTHING, np.uint32).view(np.float32)


@dataclass
class Page:
    """What goes into a page: the index but for its columns, and the columns."""

    index: dict[str, Any] = field(default_factory=dict)
    columns: Columns = field(default_factory=Columns)
    header: str = ""

    def coded(self, name: str, values: Iterable[Any], dictionary: str, kind: type = np.uint32) -> np.ndarray:
        """Add a column of codes and the dictionary of their texts; return the codes."""
        codes = Codes()
        column = np.array([codes.code(value) for value in values], kind)
        self.columns.add(name, column, dictionary=dictionary)
        self.columns.add_json(dictionary, codes.values)
        return column

    def html(self) -> str:
        """Return the whole page."""
        told = "".join(f"<dt>{escaped(a)}</dt><dd>{escaped(b)}</dd>" for a, b in self.index["provenance"])
        file = io.BytesIO()
        write_page(
            file, title=self.index["title"], index=self.index, columns=self.columns,
            header=f'<header id="verdict" class="{self.index["verdict"]}">{self.header}</header>',
            provenance=f'<section id="provenance"><h2>What was compared</h2><dl>{told}</dl></section>',
        )  # fmt: skip
        return file.getvalue().decode()


@dataclass
class Call:
    """A pair of entries and the slots of its values."""

    name: str
    golden: str | None
    parent: int
    slots: Sequence[str]
    flags: int = 3
    how: str = "layer"


def _block(name: str, golden: str) -> list[tuple[str, str, str, str, bool]]:
    """Layers of one encoder block: path, its class, path and class in the golden, whether it has weights."""
    layers = [
        ("norm1", "LayerNorm", "input_norm", "LayerNorm", True),
        ("attention.q_proj", "Dense", "self_attention.query", "Linear", True),
        ("attention.k_proj", "Dense", "self_attention.key", "Linear", True),
        ("attention.v_proj", "Dense", "self_attention.value", "Linear", True),
        ("attention.out_proj", "Dense", "self_attention.dense", "Linear", True),
        ("attention", "Attention", "self_attention", "SelfAttention", False),
        ("norm2", "LayerNorm", "output_norm", "LayerNorm", True),
        ("up", "Dense", "expand", "Linear", True),
        ("act", "GELU", "gelu", "GELU", False),
        ("down", "Dense", "contract", "Linear", True),
        ("", "EncoderLayer", "", "TransformerLayer", False),
    ]
    return [
        (f"{name}.{own}".strip("."), kind, f"{golden}.{other}".strip("."), golden_kind, weights)
        for own, kind, other, golden_kind, weights in layers
    ]


def transformer_calls(layers: int) -> list[Call]:
    """Forward, backward, parameter gradients and updates of an encoder with so many layers."""
    table = [("embedding", "Embedding", "tokens", "Embedding", True)]
    for layer in range(layers):
        table += _block(f"layers.{layer}", f"blocks.{layer}")
    table += [("norm", "LayerNorm", "final_norm", "LayerNorm", True), ("head", "Dense", "classifier", "Linear", True)]
    calls: list[Call] = []
    for direction in ("forward", "backward"):
        ordered = table if direction == "forward" else table[::-1]
        start, places = len(calls), {path: number for number, (path, *_) in enumerate(ordered)}
        for path, kind, other, golden_kind, weights in ordered:
            above = path.rpartition(".")[0]
            while above and above not in places:
                above = above.rpartition(".")[0]
            forward = direction == "forward"
            slots = ["input.0", *(["parameters.weight", "parameters.bias"] if weights and forward else []), "output.0"]
            flags = 3 | 4 | (0 if forward else 8)
            calls.append(
                Call(
                    f"Cell.{path}.{kind}.{direction}.0",
                    f"Module.{other}.{golden_kind}.{direction}.0",
                    start + places[above] + 1 if above else 0,
                    slots,
                    flags,
                )
            )
    for path, kind, other, golden_kind, weights in table[::-1]:
        if weights:
            name, golden = f"Cell.{path}.{kind}.parameters_grad.0", f"Module.{other}.{golden_kind}.parameters_grad.0"
            calls.append(Call(name, golden, 0, ["weight", "bias"], 3 | 8 | 16))
    return calls


def transformer(
    layers: int = 6, faulty: int | None = 2, seed: int = 3, *, backward: bool = False, nan_at: int | None = None
) -> Page:
    """Return a page of an encoder whose norm1 in layer ``faulty`` has another epsilon; a healthy one where it is None.

    With ``backward`` a second origin lies in a gradient; ``nan_at`` makes what a layer and all after it give out NaN.
    """
    calls = transformer_calls(layers)
    calls.insert(1, Call("Functional.dropout.0.forward", None, 0, ["input.0", "output.0"], 1, ""))
    calls.insert(9, Call("Torch.rsqrt.0.forward", "Torch.rsqrt.0.forward", 0, ["input.0", "output.0"], 2, ""))
    for call in calls[2:]:
        call.parent += (call.parent > 1) + (call.parent > 9)
    return Builder(calls, faulty, seed, backward, nan_at).page()


class Builder:
    """Makes the columns of calls: figures that follow from one another, an error that begins and stays."""

    def __init__(self, calls: list[Call], faulty: int | None, seed: int, backward: bool, nan_at: int | None) -> None:
        self.calls, self.random = calls, np.random.default_rng(seed)
        self.row_call = np.repeat(np.arange(len(calls), dtype=np.uint32), [len(call.slots) for call in calls])
        self.slots = np.array([slot for call in calls for slot in call.slots], np.str_)
        self.count = len(self.slots)
        self.flags = np.array([call.flags for call in calls], np.uint8)
        self.origin = self._named(f"Cell.layers.{faulty}.norm1.LayerNorm.forward.0") if faulty is not None else None
        self.second = self._named("Cell.layers.1.up.Dense.parameters_grad.0") if backward else None
        self.nan = self._named(f"Cell.layers.{nan_at}.act.GELU.forward.0") if nan_at is not None else None

    def _named(self, name: str) -> int:
        return next(number for number, call in enumerate(self.calls) if call.name == name)

    def page(self) -> Page:
        page, calls, rows = Page(), self.calls, self.count
        both = (self.flags & 3)[self.row_call] == 3
        parameter = np.char.startswith(self.slots, "parameters")
        tolerance = np.where((self.flags & 8)[self.row_call] > 0, 5.7e-5, 1.1e-5).astype(np.float32)
        deviation = (tolerance * 10 ** self.random.normal(-1.6, 0.35, rows)).astype(np.float32)
        deviation[parameter] = 0
        differs = np.zeros(rows, bool)
        inherited = np.zeros(rows, np.uint32)
        if self.origin is not None:
            after = (self.row_call > self.origin) & both & ~parameter
            after |= (self.row_call == self.origin) & (self.slots == "output.0")
            fading = 1.9 - 1.2 * np.minimum(1, (self.row_call - float(self.origin)) / max(1, len(calls)))
            deviation[after] = (tolerance * 10 ** (fading + self.random.normal(0, 0.22, rows)))[after]
            differs |= after & (deviation > tolerance)
            inherited[after & (self.row_call != self.origin)] = self.origin + 1
        inherited[~differs] = 0
        explained = (~differs & both & (deviation > 0.35 * tolerance)).astype(np.uint8)
        deviation[explained > 0] = (tolerance * 2.2)[explained > 0]
        if self.second is not None:
            deviation[self.row_call == self.second] = 0.31
            differs |= self.row_call == self.second
            inherited[self.row_call == self.second] = 0
        figures = self._figures(deviation, parameter, both)
        finite = np.ones(rows, bool)
        if self.nan is not None:
            finite = ~(
                (self.row_call >= self.nan) & ((self.slots == "output.0") | (self.row_call > self.nan)) & ~parameter
            )
            finite |= ~both
            for name in _FIGURES:
                figures["target", name][~finite] = np.nan
            deviation[~finite] = np.inf
            differs |= ~finite
        deviation[~both] = no_numbers(1)[0]
        in_sides = (self.flags & 3)[self.row_call]
        row_flags = in_sides | differs * 4 | (explained > 0) * 8 | ~finite * 32 | 128
        self._calls(page, deviation, tolerance, both)
        codes = page.coded("row_slot", self.slots.tolist(), "slots", np.uint16)
        page.columns.add("row_golden_slot", codes, dictionary="slots")
        columns = page.columns
        columns.add("row_flags", row_flags.astype(np.uint8))
        columns.add("row_deviation", deviation)
        page.coded("row_tolerance", [float(each) if pair else None for each, pair in zip(tolerance, both, strict=True)],
                   "tolerances", np.uint16)  # fmt: skip
        columns.add("row_explained", explained)
        columns.add("row_inherited", inherited, delta=True)
        results = np.select(
            [~both, differs & (inherited == 0), differs], ["unmatched", "origin", "inherited"], "agrees"
        )
        page.coded("row_result", results.tolist(), "results", np.uint8)
        page.coded("row_reason", [_REASONS[result] for result in results], "reasons")
        self._all_figures(page, figures, both)
        page.index = self._index(rows, deviation, tolerance, np.flatnonzero(differs & (inherited == 0)))
        page.header = _header(page.index)
        if self.origin is not None:
            page.columns.add_json("pictures", [_picture(int(np.flatnonzero(differs)[0]), self.random)])
        return page

    def _calls(self, page: Page, deviation: np.ndarray, tolerance: np.ndarray, both: np.ndarray) -> None:
        calls = self.calls
        columns = page.columns
        columns.add_json("call_names", [call.name for call in calls])
        columns.add_json("call_goldens", [0 if call.golden == call.name else call.golden for call in calls])
        columns.add("call_flags", self.flags)
        columns.add("call_parent", np.array([call.parent for call in calls], np.uint32), delta=True)
        page.coded("call_how", [call.how for call in calls], "hows", np.uint8)
        first = np.searchsorted(self.row_call, np.arange(len(calls))).astype(np.uint32)
        columns.add("call_rows", first, delta=True)
        columns.add_json("frames", _FRAMES)
        columns.add_json("stacks", [[], [0, 1, 2], [3, 2]])
        columns.add("call_stack", np.full(len(calls), 1, np.uint32), dictionary="stacks")
        columns.add("call_golden_stack", np.full(len(calls), 2, np.uint32), dictionary="stacks")
        ratio = np.where(both, deviation / tolerance, 0).astype(np.float32)
        given = np.char.startswith(self.slots, "output") | np.isin(self.slots, ["weight", "bias"])
        for name, which in (("call_taken", ~given), ("call_given", given)):
            largest = np.zeros(len(calls), np.float32)
            np.maximum.at(largest, self.row_call[which], ratio[which])
            columns.add(name, largest)

    def _figures(
        self, deviation: np.ndarray, parameter: np.ndarray, both: np.ndarray
    ) -> dict[tuple[str, str], np.ndarray]:
        """What a value is, the next call takes in: so neighbours are found by equal figures."""
        rows, random = self.count, self.random
        source = np.arange(rows)
        outputs = np.flatnonzero(self.slots == "output.0")
        before = np.searchsorted(outputs, np.flatnonzero(self.slots == "input.0")) - 1
        inputs = np.flatnonzero(self.slots == "input.0")
        source[inputs] = np.where(before >= 0, outputs[before], inputs)
        figures: dict[tuple[str, str], np.ndarray] = {}
        scale = 10 ** random.normal(0, 0.4, rows)
        base = {"max": 3.1 * scale, "min": -2.9 * scale, "mean": 0.02 * scale, "norm": 73 * scale}
        sign = random.choice([-1.0, 1.0], rows)
        for name in _FIGURES:
            values = base[name] * random.uniform(0.8, 1.2, rows)
            golden = values.astype(np.float32)[source]
            target = (values * (1 + sign * np.minimum(deviation, 10)))[source].astype(np.float32)
            figures["golden", name], figures["target", name] = golden, np.where(parameter, golden, target)
        return figures

    def _all_figures(self, page: Page, figures: dict[tuple[str, str], np.ndarray], both: np.ndarray) -> None:
        in_sides = (self.flags & 3)[self.row_call]
        nothing = no_numbers(self.count)
        for name in _FIGURES:
            golden = np.where(in_sides & 2 > 0, figures["golden", name], nothing)
            target = np.where(in_sides & 1 > 0, figures["target", name], nothing)
            page.columns.add(f"golden_{name}", golden)
            page.columns.add_beside(f"target_{name}", target, f"golden_{name}", golden)
        types = np.where(self.slots == "bias", "Float32 [512]", "Float32 [32, 128, 512]")
        for bit, side in ((1, "target"), (2, "golden")):
            page.coded(f"{side}_type", np.where(in_sides & bit, types, "").tolist(), f"{side}_types", np.uint16)
            page.coded(f"{side}_text", [""] * self.count, f"{side}_texts")
        page.columns.add("metric_0", figures["target", "norm"] / figures["golden", "norm"] - 1)

    def _index(self, rows: int, deviation: np.ndarray, tolerance: np.ndarray, begins: np.ndarray) -> dict[str, Any]:
        origins = []
        for call in dict.fromkeys(self.row_call[begins].tolist()):
            row = int(begins[self.row_call[begins] == call][0])
            kind = "backward" if self.flags[call] & 8 else "forward"
            ratio = deviation[row] / tolerance[row]
            origins.append(
                {
                    "call": call,
                    "row": row,
                    "kind": "computation",
                    "stage": kind,
                    "reason": f"inputs and weights agree; the output is {ratio:.3g} times its tolerance apart",
                    "details": ["The figures are those of a normalisation whose epsilon is 1e-2, not 1e-5."],
                    "site": "net.py:49 in forward",
                    "command": f"--node {self.calls[call].name}",
                }
            )
            if len(origins) == 40:
                break
        first = self.calls[origins[0]["call"]].name if origins else ""
        verdict = "divergent" if origins else "consistent"
        return {
            "kind": "comparison", "mode": "statistics", "verdict": verdict,
            "title": f"DIVERGENT at {first}" if origins else "CONSISTENT",
            "format": 1, "calls": len(self.calls), "rows": rows, "origins": origins, "tolerated": ["", "slow drift"],
            "truncated": None, "metrics": [{"name": "norm", "title": "NormRelativeErr", "column": "metric_0"}],
            "sides": [
                {"path": "dump/step0/rank0", "framework": "mindspore", "level": "mix", "task": "statistics"},
                {"path": "golden/step0/rank0", "framework": "pytorch", "level": "mix", "task": "statistics"},
            ],
            "provenance": [
                ["target", "dump/step0/rank0 (MindSpore 2.10.0, level mix)"],
                ["golden", "golden/step0/rank0 (PyTorch 2.13.0, level mix)"],
                ["command", "msprobe compare -tp dump/step0 -gp golden/step0 -lm"],
                ["discloses", "names of modules, statistics of tensors, source paths and lines"],
            ],
        }  # fmt: skip


_REASONS = {
    "unmatched": "the other dump has no such call", "origin": "inputs and weights agree, the output does not",
    "inherited": "the error came in", "agrees": "",
}  # fmt: skip
_FRAMES = [
    "File net_mindspore.py, line 49, in construct, x = x + self.attention(self.norm1(x))",
    "File net_mindspore.py, line 67, in construct, x = layer(x)",
    "File train.py, line 107, in main, logits = net(ids)",
    "File net_pytorch.py, line 49, in forward, x = x + self.self_attention(self.input_norm(x))",
]


def _header(index: Mapping[str, Any]) -> str:
    if not index["origins"]:
        return '<h1>The two dumps agree</h1><p class="reason">The largest error ratio is 0.4.</p>'
    first = index["origins"][0]
    name = index["title"].removeprefix("DIVERGENT at ")
    return (
        f'<h1>Error begins at <bdi class="name">{html.escape(name)}</bdi></h1>'
        f'<p class="reason">{html.escape(first["reason"])}. {html.escape(first["details"][0])}</p>'
    )


def _picture(row: int, random: np.random.Generator) -> dict[str, Any]:
    tiles = np.clip(random.normal(70, 20, (64, 64)), 1, 254)
    tiles[20:28] += 90
    tiles[23, 40] = 255
    normal = random.normal(0, 1, (20_000, 2)) @ np.array([[1, 0.97], [0, 0.2]])
    edges = np.linspace(-3, 3, 65)
    density, *_ = np.histogram2d(normal[:, 1], normal[:, 0], [edges, edges])
    within = {"low": -3.0, "high": 3.0, "linear": 1.0}
    return {
        "row": row, "shape": [32, 128, 512], "where": "9 of 10 elements differ: index 0 of axis 1 (of 128) holds all",
        "map": {"rows": 64, "columns": 64, "data": _bytes(np.clip(tiles, 0, 255)), "low": 1e-7, "high": 0.12,
                "of": "axes 0 to 1 downwards, axis 2 to the right"},
        "scatter": {"size": 64, "data": _bytes(np.clip(np.log2(1 + density) * 16, 0, 255)), **within},
        "histograms": {"target": np.histogram(normal[:, 1], edges)[0].tolist(),
                       "golden": np.histogram(normal[:, 0], edges)[0].tolist(), **within},
        "worst": [[[n, n * 7 % 128, n * 31 % 512], f"{1.25 + n / 9:.7g}", f"{1.13 + n / 9:.7g}"] for n in range(10)],
    }  # fmt: skip


def _bytes(array: np.ndarray) -> str:
    return b64encode(array.astype(np.uint8).tobytes()).decode()
