"""Updates stand beside each other by the module that holds the parameter, and by what the parameter means."""

from __future__ import annotations

from built_dumps import dump, paired

from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings

NONE = Mappings()


def updates(*paths: str, call: int = 0) -> list[str]:
    return [f"Optimizer.{path}.{call}.forward" for path in paths]


def test_a_parameter_has_another_name_and_its_module_another_place() -> None:
    target = dump("mindspore", "Cell.norm.LayerNorm.forward.0", *updates("norm.gamma", "norm.beta", "scale"))
    golden = dump("pytorch", "Module.net.ln.LayerNorm.forward.0", *updates("net.ln.bias", "net.ln.weight", "scale"))
    mapping = Mappings(cell={"norm.LayerNorm": "net.ln.LayerNorm"})
    found = paired(pair(target, golden, mapping))
    assert {name: other for name, other in found.items() if name.startswith("Optimizer")} == {
        "Optimizer.norm.gamma.0.forward": "Optimizer.net.ln.weight.0.forward",
        "Optimizer.norm.beta.0.forward": "Optimizer.net.ln.bias.0.forward",
        "Optimizer.scale.0.forward": "Optimizer.scale.0.forward",
    }


def test_updates_pair_with_nothing_else() -> None:
    for framework in ("mindspore", "pytorch"):
        target = dump("mindspore", *updates("fc.weight"), "Functional.relu.0.forward")
        golden = dump(framework, *updates("fc.bias"), *updates("fc.weight", call=1), "Functional.relu.0.forward")
        for fuzzy in (False, True):
            assert paired(pair(target, golden, NONE, fuzzy=fuzzy)) == {
                "Functional.relu.0.forward": "Functional.relu.0.forward"
            }


def test_where_one_side_recorded_none_the_others_are_left_out() -> None:
    layer = "Cell.fc.Dense.forward.0"
    with_updates, without = dump("mindspore", layer, *updates("fc.weight")), dump("mindspore", layer)
    for target, golden in ((with_updates, without), (without, with_updates)):
        assert len(pair(target, golden, NONE)) == 1
