"""Arguments and results as trees: no framework is needed to take them apart and put them together."""

from __future__ import annotations

import numpy as np
import pytest

from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments, DtypeArgument
from msprobe_ms.frameworks.api_values import Call, attribute, flattened, wanted


def array(dtype: str, *values: float) -> TypedArray:
    return TypedArray(dtype, np.array(values, np.int64 if dtype == "int64" else np.float32))


def test_floating_tensors_come_in_order_and_others_can_stand_in() -> None:
    one, two, three, index = array("float32", 1), array("bfloat16", 2), array("float16", 3), array("int64", 4)
    arguments = Arguments(
        ([one, index], {"nested": (two,)}, slice(None, index)), {"dtype": DtypeArgument("float16"), "x": three}
    )
    call = Call(arguments, lambda each: f"{each.dtype}:{each.values[0]}", lambda name: f"<{name}>")
    assert call.floats == ["float32:1.0", "bfloat16:2.0", "float16:3.0"]
    seen = call.make(lambda *positional, **keywords: (positional, keywords), ["a", "b", "c"])
    assert seen == (
        (["a", "int64:4"], {"nested": ("b",)}, slice(None, "int64:4", None)),
        {"dtype": "<float16>", "x": "c"},
    )


@pytest.mark.parametrize("arguments", [Arguments(([1],)), Arguments((), {"self": [1]})])
def test_what_returns_nothing_gives_the_argument_that_it_changed(arguments: Arguments) -> None:
    call = Call(arguments, lambda each: each, str)
    assert call.make(lambda self: self.append(2), call.floats) == [1, 2]


def test_results_are_flattened_depth_first() -> None:
    assert flattened((1, [2, (3, None)], {"a": 4, "b": ["text"]})) == [1, 2, 3, None, 4, "text"]


def test_gradients_belong_to_outputs_of_their_shape() -> None:
    output, gradient = np.zeros(2), array("float32", 1, 2)
    assert list(wanted([output, output, 3], [gradient, None, gradient])) == [(output, gradient)]
    with pytest.raises(ValueError, match="1 gradients were given for 2 outputs"):
        list(wanted([output, output], [gradient]))
    with pytest.raises(ValueError, match=r"output 0 has another shape: \(2,\) for an output of \(3,\)"):
        list(wanted([np.zeros(3)], [gradient]))


def test_dotted_paths_lead_to_attributes_or_nowhere() -> None:
    assert attribute(np, "linalg.norm") is np.linalg.norm
    assert attribute(np, "linalg.nothing.norm") is None
