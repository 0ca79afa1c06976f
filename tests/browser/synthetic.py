"""Pages of made-up comparisons, by the format in docs/report_page.md: a transformer of any size, with one fault in it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ASSETS = Path(__file__).parents[2] / "msprobe_ms" / "page"
CHUNK = 65_536
NO_NUMBER = np.uint32(0x7FC00001)

_FIGURES = ("max", "min", "mean", "norm")


def no_numbers(count: int) -> np.ndarray:
    """Floats of which each says that there is no number."""
    return np.full(count, NO_NUMBER, np.uint32).view(np.float32)


@dataclass
class Page:
    """What goes into a page: the index but for its columns, and the columns."""

    index: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)
    header: str = ""

    def numbers(self, name: str, values: np.ndarray, transform: str = "", dictionary: str = "") -> None:
        """Add a column of numbers, encoded as docs/report_page.md says."""
        values = np.ascontiguousarray(values)
        kind = {"|u1": "u8", "<u2": "u16", "<u4": "u32", "<f4": "f32"}[values.dtype.str]
        column: dict[str, Any] = {"type": kind, "length": len(values), "chunks": [], "transform": transform}
        if dictionary:
            column["dictionary"] = dictionary
        for start in range(0, len(values), CHUNK):
            part = values[start : start + CHUNK]
            if transform == "delta":
                part = np.concatenate([part[:1], np.diff(part)])
            elif transform:
                other = self._plain[transform.removeprefix("xor:")][start : start + CHUNK]
                part = part.view(np.uint32) ^ other.view(np.uint32)
            shuffled = part.view(np.uint8).reshape(len(part), -1).T.tobytes()
            column["chunks"].append(self._chunk(shuffled))
        self.columns[name] = column
        self._plain[name] = values

    def texts(self, name: str, values: Sequence[Any]) -> None:
        """Add a column of JSON."""
        data = json.dumps(values).encode()
        self.columns[name] = {
            "type": "json", "length": len(values), "chunks": [self._chunk(data)], "transform": "",
        }  # fmt: skip

    def coded(self, name: str, values: Iterable[Any], dictionary: str, kind: type = np.uint32, first: Any = None) -> None:
        """Add a column of codes and the dictionary of their texts."""
        codes: dict[str, int] = {} if first is None else {json.dumps(first): 0}
        column = np.array([codes.setdefault(json.dumps(value), len(codes)) for value in values], kind)
        self.numbers(name, column, dictionary=dictionary)
        self.texts(dictionary, [json.loads(text) for text in codes])

    def html(self) -> str:
        """Return the whole page."""
        script, style = ((ASSETS / name).read_text("utf-8") for name in ("report.js", "report.css"))
        policy = (
            f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data: blob:; "
            "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
        )
        index = json.dumps({"format": 1, **self.index, "columns": self.columns}).replace("<", "\\u003c")
        data = "".join(
            f'<script type="text/plain" id="k{number}">{base64.b64encode(chunk).decode()}</script>\n'
            for number, chunk in enumerate(self.chunks)
        )
        provenance = "".join(
            f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>"
            for name, value in self.index.get("provenance", [])
        )
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{html.escape(self.index['title'])}</title>\n<style>{style}</style></head>\n<body>\n"
            f'<main id="report">\n<header id="verdict" class="{self.index["verdict"]}">{self.header}</header>\n'
            f'<div id="app"></div>\n<section id="provenance"><h2>What was compared</h2><dl>{provenance}</dl></section>'
            f'\n</main>\n<script type="application/json" id="index">{index}</script>\n{data}<script>{script}</script>\n'
            "</body></html>\n"
        )

    def __post_init__(self) -> None:
        self._plain: dict[str, np.ndarray] = {}

    def _chunk(self, data: bytes) -> str:
        self.chunks.append(gzip.compress(data, 2))
        return f"k{len(self.chunks) - 1}"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


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
                    f"Cell.{path}.{kind}.{direction}.0", f"Module.{other}.{golden_kind}.{direction}.0",
                    start + places[above] + 1 if above else 0, slots, flags,
                )  # fmt: skip
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
    calls.insert(9, Call("Torch.rsqrt.0.forward", None, 0, ["input.0", "output.0"], 2, ""))
    for call in calls[2:]:
        call.parent += (call.parent > 1) + (call.parent > 9)
    return Builder(calls, faulty, seed, backward, nan_at).page()


class Builder:
    """Makes the columns of calls: figures that follow from one another, an error that begins and stays."""

    def __init__(self, calls: list[Call], faulty: int | None, seed: int, backward: bool, nan_at: int | None) -> None:
        self.calls, self.random = calls, np.random.default_rng(seed)
        self.row_call = np.repeat(np.arange(len(calls), dtype=np.uint32), [len(call.slots) for call in calls])
        self.slots = np.array([slot for call in calls for slot in call.slots])
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
            finite = ~((self.row_call >= self.nan) & ((self.slots == "output.0") | (self.row_call > self.nan)) & ~parameter)
            finite |= ~both
            for name in _FIGURES:
                figures["target", name][~finite] = np.nan
            deviation[~finite] = np.inf
            differs |= ~finite
        deviation[~both] = no_numbers(1)[0]
        in_sides = (self.flags & 3)[self.row_call]
        row_flags = in_sides | differs * 4 | (explained > 0) * 8 | ~finite * 32 | 128
        self._calls(page, deviation, tolerance, both)
        page.coded("row_slot", self.slots.tolist(), "slots", np.uint16)
        page.numbers("row_flags", row_flags.astype(np.uint8))
        page.numbers("row_deviation", deviation)
        page.coded("row_tolerance", [float(each) if pair else None for each, pair in zip(tolerance, both, strict=True)],
                   "tolerances", np.uint16)  # fmt: skip
        page.numbers("row_explained", explained)
        page.numbers("row_inherited", inherited, "delta")
        results = np.select(
            [~both, differs & (inherited == 0), differs], ["unmatched", "origin", "inherited"], "agrees"
        )
        page.coded("row_result", results.tolist(), "results", np.uint8)
        page.coded("row_reason", [_REASONS[result] for result in results], "reasons")
        self._all_figures(page, figures, both)
        page.index = self._index(rows, deviation, tolerance, np.flatnonzero(differs & (inherited == 0)))
        page.header = _header(page.index)
        if self.origin is not None:
            page.texts("pictures", [_picture(int(np.flatnonzero(differs)[0]), self.random)])
        return page

    def _calls(self, page: Page, deviation: np.ndarray, tolerance: np.ndarray, both: np.ndarray) -> None:
        calls = self.calls
        page.texts("call_names", [call.name for call in calls])
        page.texts("call_goldens", [0 if call.golden == call.name else call.golden for call in calls])
        page.numbers("call_flags", self.flags)
        page.numbers("call_parent", np.array([call.parent for call in calls], np.uint32), "delta")
        page.coded("call_how", [call.how for call in calls], "hows", np.uint8)
        first = np.searchsorted(self.row_call, np.arange(len(calls))).astype(np.uint32)
        page.numbers("call_rows", first, "delta")
        stacks = [[], _STACK_TARGET, _STACK_GOLDEN]
        page.texts("stacks", stacks)
        page.numbers("call_stack", np.full(len(calls), 1, np.uint32), dictionary="stacks")
        page.numbers("call_golden_stack", np.full(len(calls), 2, np.uint32), dictionary="stacks")
        ratio = np.where(both, deviation / tolerance, 0).astype(np.float32)
        given = np.char.startswith(self.slots, "output") | np.isin(self.slots, ["weight", "bias"])
        for name, which in (("call_taken", ~given), ("call_given", given)):
            largest = np.zeros(len(calls), np.float32)
            np.maximum.at(largest, self.row_call[which], ratio[which])
            page.numbers(name, largest)

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
        for name in _FIGURES:
            for bit, side in ((2, "golden"), (1, "target")):
                values = np.where(in_sides & bit > 0, figures[side, name], no_numbers(self.count))
                page.numbers(f"{side}_{name}", values, f"xor:golden_{name}" if side == "target" else "")
        types = np.where(self.slots == "bias", "Float32 [512]", "Float32 [32, 128, 512]")
        for bit, side in ((1, "target"), (2, "golden")):
            page.coded(f"{side}_type", np.where(in_sides & bit, types, "").tolist(), f"{side}_types", np.uint16)
            page.coded(f"{side}_text", [""] * self.count, f"{side}_texts")
        page.numbers("metric_0", figures["target", "norm"] / figures["golden", "norm"] - 1)

    def _index(self, rows: int, deviation: np.ndarray, tolerance: np.ndarray, begins: np.ndarray) -> dict[str, Any]:
        origins = []
        for call in dict.fromkeys(self.row_call[begins].tolist()):
            row = int(begins[self.row_call[begins] == call][0])
            kind = "backward" if self.flags[call] & 8 else "forward"
            ratio = deviation[row] / tolerance[row]
            origins.append(
                {
                    "call": call, "row": row, "kind": "computation", "stage": kind,
                    "reason": f"inputs and weights agree; the output is {ratio:.3g} times its tolerance apart",
                    "details": ["The figures are those of a normalisation whose epsilon is 1e-2, not 1e-5."],
                    "site": "net.py:49 in forward",
                    "advice": "Compare the epsilon of the two layers, then the order of normalisation and residual.",
                    "command": f"msprobe compare -tp dump/step0 -gp golden/step0 --node {self.calls[call].name}",
                }  # fmt: skip
            )
            if len(origins) == 40:
                break
        first = self.calls[origins[0]["call"]].name if origins else ""
        verdict = "divergent" if origins else "consistent"
        return {
            "kind": "comparison", "mode": "statistics", "verdict": verdict,
            "title": f"DIVERGENT at {first}" if origins else "CONSISTENT",
            "calls": len(self.calls), "rows": rows, "origins": origins, "tolerated": ["", "slow drift"],
            "truncated": None, "metrics": [{"name": "norm", "title": "NormRelativeErr", "column": "metric_0"}],
            "sides": {
                "target": {"path": "dump/step0/rank0", "framework": "mindspore", "level": "mix", "task": "statistics",
                           "step": 0, "rank": 0},
                "golden": {"path": "golden/step0/rank0", "framework": "pytorch", "level": "mix", "task": "statistics",
                           "step": 0, "rank": 0},
            },
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
_STACK_TARGET = [
    "File net_mindspore.py, line 49, in construct, \n x = x + self.attention(self.norm1(x))",
    "File net_mindspore.py, line 67, in construct, \n x = layer(x)",
    "File train.py, line 107, in main, \n logits = net(ids)",
]
_STACK_GOLDEN = [
    "File net_pytorch.py, line 49, in forward, \n x = x + self.self_attention(self.input_norm(x))",
    "File train.py, line 107, in main, \n logits = net(ids)",
]


def _header(index: Mapping[str, Any]) -> str:
    if not index["origins"]:
        return '<h1>The two dumps agree</h1><p class="reason">The largest error ratio is 0.4.</p>'
    first = index["origins"][0]
    name = index["title"].removeprefix("DIVERGENT at ")
    return (
        f'<h1>Error begins at <bdi class="name">{html.escape(name)}</bdi></h1>'
        f'<p class="reason">{html.escape(first["reason"])}. {html.escape(first["details"][0])}</p>'
        f'<p class="next"><b>Next:</b> {html.escape(first["advice"])}</p>'
        f'<p><code class="command">{html.escape(first["command"])}</code></p>'
    )


def _picture(row: int, random: np.random.Generator) -> dict[str, Any]:
    tiles = np.clip(random.normal(70, 20, (64, 64)), 1, 254)
    tiles[20:28] += 90
    tiles[23, 40] = 255
    normal = random.normal(0, 1, (20_000, 2)) @ np.array([[1, 0.97], [0, 0.2]])
    density, *_ = np.histogram2d(normal[:, 1], normal[:, 0], 64, [[-3, 3], [-3, 3]])
    edges = np.linspace(-3, 3, 65)
    golden, _ = np.histogram(normal[:, 0], edges)
    target, _ = np.histogram(normal[:, 1], edges)
    coded = np.clip(np.log2(1 + density) * 16, 0, 255).astype(np.uint8)
    return {
        "row": row, "shape": [32, 128, 512], "axes": [1, 2],
        "map": {"rows": 64, "columns": 64, "data": _bytes(np.clip(tiles, 0, 255).astype(np.uint8)), "low": 1e-7,
                "high": 0.12, "of": "axis 1 (128) down, axis 2 (512) across; largest over axis 0"},
        "scatter": {"size": 64, "data": _bytes(coded), "low": -3.0, "high": 3.0},
        "histograms": {"edges": edges.tolist(), "target": target.tolist(), "golden": golden.tolist()},
        "worst": [[f"[{n}, {n * 7 % 128}, {n * 31 % 512}]", f"{1.25 + n / 9:.7g}", f"{1.13 + n / 9:.7g}"] for n in range(10)],
    }  # fmt: skip


def _bytes(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()
