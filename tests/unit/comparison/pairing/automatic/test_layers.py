"""Layers of a block whose norms hold their activations, beside a block in which these stand behind the norms."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.comparison.pairing.automatic import align_modules
from msprobe_ms.comparison.pairing.automatic.scores import class_score
from msprobe_ms.dump.model import Dump, Item

_RANDOM = np.random.default_rng(8)
BLOCKS = 3
SHAPE = (4, 8, 2, 2)


def values(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


WEIGHTS = [values(8, 8) for _ in range(BLOCKS)]
SCALES = [values(8) for _ in range(BLOCKS)]
STREAM = [[values(*SHAPE) for _ in range(3)] for _ in range(BLOCKS)]


def call(name: str, *both: np.ndarray) -> list[Item]:
    return [tensor(f"{state}.0", value, name) for state, value in zip(("input", "output"), both, strict=True)]


def target(error: float = 0.0, smallest: int = 2) -> Dump:
    """Linear, norm, activation, pool."""
    items: list[Item] = []
    for number, (taken, product, normal) in enumerate(STREAM):
        block = f"Cell.blocks.{number}"
        noise = np.float32(1) + error * values(*SHAPE)
        active = np.maximum(normal * noise, 0)
        pooled = active.mean((2, 3), keepdims=True) if number < smallest else active
        items += [
            *call(f"{block}.0.Dense.forward.0", taken * noise, product * noise),
            tensor("parameters.weight", WEIGHTS[number], f"{block}.0.Dense.forward.0"),
            *call(f"{block}.1.BatchNorm.forward.0", product * noise, normal * noise),
            tensor("parameters.gamma", SCALES[number], f"{block}.1.BatchNorm.forward.0"),
            *call(f"{block}.2.ReLU.forward.0", normal * noise, active),
            *call(f"{block}.3.Pool.forward.0", active, pooled),
            *call(f"{block}.Block.forward.0", taken * noise, active),
        ]
    return dump(items, "mindspore")


def golden(idle: tuple[str, ...] = ("aa", "se")) -> Dump:
    """Linear, a norm that holds a dropout and the activation, modules that do nothing."""
    items, parents = [], {}
    for number, (taken, product, normal) in enumerate(STREAM):
        block = f"Module.blocks.{number}"
        active, norm = np.maximum(normal, 0), f"{block}.norm.BatchNormAct.forward.0"
        inside = {f"{block}.norm.drop.Identity.forward.0": normal, f"{block}.norm.act.ReLU.forward.0": active}
        parents.update(dict.fromkeys(inside, norm))
        items += [
            *call(f"{block}.linear.Linear.forward.0", taken, product),
            tensor("parameters.weight", WEIGHTS[number], f"{block}.linear.Linear.forward.0"),
            *(item for name, given in inside.items() for item in call(name, normal, given)),
            *call(norm, product, active), tensor("parameters.weight", SCALES[number], norm),
            *(item for name in idle for item in call(f"{block}.{name}.Identity.forward.0", active, active)),
            *call(f"{block}.Block.forward.0", taken, active),
        ]  # fmt: skip
    made = dump(items, "pytorch")
    for name, parent in parents.items():
        made.entries[name].parent = parent
    return made


@pytest.mark.parametrize("error", [0.0, 1e-4])
def test_an_activation_is_what_a_norm_holds_whoever_passes_its_result_on(error: float) -> None:
    """Also where updates have set apart what would tell it from its output."""
    pairs = align_modules(target(error), golden()).pairs
    told = {ours: theirs for (ours, kind), ((theirs, _), _) in pairs.items() if kind in ("BatchNorm", "ReLU")}
    assert told == {
        f"blocks.{number}.{ours}": f"blocks.{number}.{theirs}"
        for number in range(BLOCKS)
        for ours, theirs in ((1, "norm"), (2, "norm.act"))
    }


@pytest.mark.parametrize("smallest", [BLOCKS, 2])
def test_what_does_nothing_is_no_counterpart_of_what_makes_something_smaller(smallest: int) -> None:
    """Nor because in other blocks, whose images have one pixel, both pass on what they take in."""
    pairs = align_modules(target(smallest=smallest), golden(idle=("aa",))).pairs
    pools = {ours: theirs for (ours, kind), ((theirs, _), _) in pairs.items() if kind == "Pool"}
    assert not [ours for ours in pools if int(ours.split(".")[1]) < smallest], pools


@pytest.mark.parametrize("rounding", [0.0, 3e-5])
def test_two_that_chance_sets_nearer_than_the_two_of_one_layer_are_no_pair(rounding: float) -> None:
    """Softmaxes of alike scores have nearly one norm; in half precision it is off by more than they are apart."""
    norms = 5.2008 * np.array([1, 1 + 4e-5])

    def layers(prefix: str, own: np.ndarray) -> Dump:
        items = []
        for number, norm in enumerate(own):
            name = f"{prefix}.h.{number}.attn.drop.Dropout.forward.0"
            linear = f"{prefix}.h.{number}.proj.{'Dense' if prefix == 'Cell' else 'Linear'}.forward.0"
            scores = values(2, 4, 4)
            items += [
                tensor(f"{state}.0", scores, name, norm=float(norm), maximum=1.0, minimum=0.0, md5=None)
                for state in ("input", "output")
            ]
            items += [*call(linear, STREAM[number][0], STREAM[number][1])]
            items += [tensor("parameters.weight", WEIGHTS[number], linear)]
        return dump(items, "mindspore" if prefix == "Cell" else "pytorch")

    # The target's second is now as far from the golden's first as rounding is from that of its own.
    ours = layers("Cell", norms * np.array([1 + rounding, 1 - rounding]))
    found = align_modules(ours, layers("Module", norms)).pairs
    drops = {path: other for (path, _), ((other, _), _) in found.items() if path.endswith("drop")}
    assert drops == {f"h.{number}.attn.drop": f"h.{number}.attn.drop" for number in range(2)}


def test_a_convolution_of_single_elements_is_of_the_family_of_dense_layers_of_its_matrix() -> None:
    dense = ("Dense", False, True, (10, 20))
    assert class_score(dense, ("Conv2d", False, True, (10, 20))) > 0
    assert class_score(dense, ("Conv2d", False, True, (10, 30))) < 0
    assert class_score(("Dense", False, True, None), ("Conv2d", False, True, None)) < 0


def test_one_class_is_one_kind_though_one_side_recorded_what_it_calls() -> None:
    """A normalisation that encloses another is no less its like than the one inside it."""
    leaf = ("AdaLayerNormZero", False, True, None)
    assert class_score(leaf, ("AdaLayerNormZero", True, False, None)) >= class_score(
        leaf, ("LayerNorm", False, True, None)
    )


@pytest.mark.parametrize("leaf", ["Cell", "Module"])
def test_a_module_whose_layers_the_other_side_has_as_code_is_no_counterpart_of_its_last_layer(leaf: str) -> None:
    """The projection and the dropout behind it give out what the attention around them does."""

    def blocks(prefix: str) -> Dump:
        items, parents = [], {}
        for number, (taken, inner, made) in enumerate(STREAM):
            block = f"{prefix}.h.{number}"
            attention = f"{block}.attn.SelfAttention.forward.0"
            inside = [
                *call(f"{block}.attn.q.Linear.forward.0", taken, inner),
                tensor("parameters.weight", WEIGHTS[number], f"{block}.attn.q.Linear.forward.0"),
                *call(f"{block}.attn.out.Linear.forward.0", inner, made),
                tensor("parameters.weight", WEIGHTS[number].T, f"{block}.attn.out.Linear.forward.0"),
                *call(f"{block}.attn.drop.Dropout.forward.0", made, made),
            ]
            items += inside if prefix != leaf else []
            items += call(attention, taken, made)
            parents.update((item.entry, attention) for item in inside)
            items += [
                *call(f"{block}.norm.LayerNorm.forward.0", made, taken),
                tensor("parameters.weight", SCALES[number], f"{block}.norm.LayerNorm.forward.0"),
            ]
        recorded = dump(items, "mindspore" if prefix == "Cell" else "pytorch")
        for name, parent in parents.items():
            if name in recorded.entries:
                recorded.entries[name].parent = parent
        return recorded

    pairs = align_modules(blocks("Cell"), blocks("Module")).pairs
    told = {ours: theirs for (ours, _), ((theirs, _), _) in pairs.items() if ".attn" in ours + theirs}
    assert told == {f"h.{number}.attn": f"h.{number}.attn" for number in range(BLOCKS)}


@pytest.mark.parametrize("leaf", ["Cell", "Module"])
def test_of_two_branches_the_one_of_its_class_is_a_modules_counterpart(leaf: str) -> None:
    """Attention and feed-forward take in one tensor; one side recorded the second alone, and nothing inside it."""

    def blocks(prefix: str) -> Dump:
        items, parents = [], {}
        for number, (taken, scores, made) in enumerate(STREAM):
            block, wide = f"{prefix}.h.{number}", np.concatenate([made, scores], 1)
            inside = {
                f"{block}.attn.q.Linear.forward.0": (taken, scores),
                f"{block}.attn.out.Linear.forward.0": (scores, 2 * scores),
                f"{block}.mlp.fc1.Linear.forward.0": (taken, wide),
                f"{block}.mlp.act.GELU.forward.0": (wide, wide / 2),
                f"{block}.mlp.fc2.Linear.forward.0": (wide / 2, made),
            }
            around = {"attn": f"{block}.attn.Attention.forward.0", "mlp": f"{block}.mlp.FeedForward.forward.0"}
            for name, both in inside.items() if prefix != leaf else ():
                items += call(name, *both)
                if "Linear" in name:
                    items.append(tensor("parameters.weight", values(both[0].shape[1], both[1].shape[1]), name))
                parents[name] = around[name.split(".")[3]]
            items += call(around["attn"], taken, 2 * scores) if prefix != leaf else []
            items += call(around["mlp"], taken, made)
        recorded = dump(items, "mindspore" if prefix == "Cell" else "pytorch")
        for name, parent in parents.items():
            recorded.entries[name].parent = parent
        return recorded

    pairs = align_modules(blocks("Cell"), blocks("Module")).pairs
    told = {ours: theirs for (ours, _), ((theirs, _), _) in pairs.items()}
    assert told == {f"h.{number}.mlp": f"h.{number}.mlp" for number in range(BLOCKS)}
