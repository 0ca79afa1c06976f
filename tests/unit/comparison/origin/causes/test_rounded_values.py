"""Numbers of a narrower float show a cast since the first step that no dtype shows and that is less than the drift."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.measuring.tensors import load_both
from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump

RANDOM = np.random.default_rng(23)
DATA, WEIGHT, RESULT, ERROR = (RANDOM.standard_normal((24, 24)).astype(np.float32) for _ in range(4))
LAYERS = "Cell.first.Dense.forward.0", "Cell.second.Dense.forward.0"


def step(drift: float = 0.0, *, cast: bool = False, masked: bool = False, folder: Path | None = None) -> Dump:
    """A step of two layers whose weights drift; the results of the second may be cast, or lie between 0 and 1."""
    off = np.float32(drift) * ERROR
    given = RESULT + 10 * off
    given = np.clip(given, 0, 1) if masked else given
    given = given.astype(np.float16).astype(np.float32) if cast else given
    values = [
        ("input.0", DATA, LAYERS[0]),
        ("parameters.weight", WEIGHT + off, LAYERS[0]),
        ("output.0", DATA + 10 * off, LAYERS[0]),
        ("input.0", DATA + 10 * off, LAYERS[1]),
        ("output.0", given, LAYERS[1]),
    ]
    items = [tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in values]
    if folder is None:
        return dump(items)
    (folder / "dump_tensor_data").mkdir(parents=True)
    for item, (_, each, _) in zip(items, values, strict=True):
        np.save(folder / "dump_tensor_data" / str(item.data_name), each)
    return dump(items, folder=folder)


def origins(now: Dump, golden: Dump, first: Dump, golden_first: Dump, mode: str = "statistics") -> list[Origin]:
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, mode)
    load = partial(load_both, now.tensors, golden.tensors) if mode == "tensor" else None
    earlier = EarlierSteps({3: lambda: (first, golden_first)})
    return find_origins(Evidence(pairs, load=load, earlier=earlier))


def test_a_result_that_was_cast_since_the_first_step_is_the_origin() -> None:
    (origin,) = origins(step(1e-4, cast=True), step(), step(1e-8), step())
    assert (origin.target, origin.kind) == (f"{LAYERS[1]}.output.0", "precision")
    assert origin.reason == (
        "the target's output.0 was rounded to a narrower float, and was not in the first step: look for a cast since"
    )


def test_all_elements_show_a_cast_where_max_and_min_are_round(tmp_path: Path) -> None:
    """As of a softmax beside a mask, whose Max is 1 and whose Min is 0."""
    folders = [tmp_path / name for name in ("now", "golden", "first", "golden_first")]
    settings = [{"drift": 1e-4, "cast": True}, {}, {"drift": 1e-8}, {}]
    dumps = [step(**each, masked=True, folder=folder) for each, folder in zip(settings, folders, strict=True)]
    assert origins(*dumps) == []
    (origin,) = origins(*dumps, mode="tensor")
    assert (origin.target, origin.kind) == (f"{LAYERS[1]}.output.0", "precision")


@pytest.mark.parametrize(
    ("now", "golden", "first"),
    [
        (step(1e-4), step(), step(1e-8)),
        (step(1e-4, cast=True), step(cast=True), step(1e-8)),
        (step(1e-4, cast=True), step(), step(1e-8, cast=True)),
    ],
    ids=["drift", "both sides cast", "as in the first step"],
)
def test_what_is_cast_on_both_sides_always_or_never_is_quiet(now: Dump, golden: Dump, first: Dump) -> None:
    assert not any("since" in each.reason for each in origins(now, golden, first, step()))
