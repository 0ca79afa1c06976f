"""A call with other settings than its counterpart: what comes in explains little of what it gives out."""

from __future__ import annotations

import numpy as np
from compare_parts import dump, tensor, value

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.other_settings import OtherSettings
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.arguments import OtherSetting
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.model import Dump

RANDOM = np.random.default_rng(3)
DATA, WEIGHT, HIDDEN, RESULT, GRADIENT, ERROR = (RANDOM.standard_normal((24, 24)).astype(np.float32) for _ in range(6))
LAYER, GELU = "Cell.net.fc.Dense.forward.0", "Functional.gelu.0.forward"
BACKWARD = GELU.replace("forward", "backward")


def step(
    hidden: float = 0.0, result: float = 0.0, gradient: float = 0.0, approximate: str = "none", epsilon: float = 1e-5
) -> Dump:
    """A layer whose weight went through updates, and a GELU; what they give is off by these parts of its size."""

    def off(values: np.ndarray, part: float) -> np.ndarray:
        return values + np.float32(part) * ERROR

    values = [
        ("input.0", DATA, LAYER),
        ("parameters.weight", off(WEIGHT, hidden / 10), LAYER),
        ("output.0", off(HIDDEN, hidden), LAYER),
        ("input.0", off(HIDDEN, hidden), GELU),
        ("output.0", off(RESULT, result), GELU),
        ("input.0", GRADIENT, BACKWARD),
        ("output.0", off(GRADIENT, gradient), BACKWARD),
    ]
    items = [tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in values]
    settings = {"approximate": approximate, "epsilon": epsilon}
    return dump([*items, *(value(f"input.{name}", each, GELU, keyword=True) for name, each in settings.items())])


def evidence_of(now: Dump, first: Dump | None = None) -> Evidence:
    golden = step()
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    earlier = EarlierSteps({2: lambda: (first, step())}) if first is not None else None
    return Evidence(pairs, earlier=earlier)


def found(now: Dump, first: Dump | None = None) -> list[Origin]:
    return find_origins(evidence_of(now, first))


def test_drift_passes_a_call_of_the_same_settings() -> None:
    assert found(step(1.5e-4, 4e-4, 3e-4)) == []


def test_drift_does_not_excuse_a_call_of_other_settings_which_is_named_with_them() -> None:
    origin, *_ = found(step(1.5e-4, 4e-4, 3e-4, "tanh"))
    assert origin.target == f"{GELU}.output.0"
    assert origin.reason.endswith("its argument approximate is tanh, the golden's is none")


def test_of_calls_that_do_together_what_one_does_another_epsilon_is_told_and_no_other_way_of_doing_it() -> None:
    evidence = evidence_of(step(epsilon=1e-2, approximate="tanh"))
    settings, (node,) = OtherSettings(evidence), [each for each in evidence.nodes if each.name == GELU]
    assert [each.name for each in settings.of(node)] == ["approximate", "epsilon"]
    node.pair.how = PairedBy.GROUP
    assert OtherSettings(evidence).of(node) == [OtherSetting("epsilon", (1e-2,), (1e-5,))]


def test_results_no_further_apart_than_what_the_call_takes_in_are_no_origin() -> None:
    assert found(step(1.5e-4, 1.2e-4, 0.0, "tanh")) == []


def test_a_number_that_is_written_with_six_digits_is_no_other_setting() -> None:
    assert found(step(1.5e-4, 4e-4, epsilon=9.999999e-6)) == []
    origin, *_ = found(step(1.5e-4, 4e-4, epsilon=9.9999e-6))
    assert "epsilon" in origin.reason


def test_no_switch_excuses_the_gradient_of_a_call_of_other_settings() -> None:
    (origin,) = found(step(1.5e-4, 1.2e-4, 3e-4, "tanh"))
    assert origin.target == f"{BACKWARD}.output.0"


def test_settings_that_made_no_difference_in_the_first_step_make_none_later() -> None:
    assert found(step(1.5e-4, 2.5e-4, 0.0, "tanh"), first=step(1e-6, 1e-6, 0.0, "tanh")) == []
    assert found(step(1.5e-4, 2.5e-4, 0.0, "tanh"), first=step(1e-6, 1e-6, 0.0, "none"))


def test_what_was_wrong_in_the_first_step_is_not_excused_by_drift_later() -> None:
    later = step(1.5e-4, 2.5e-4)
    assert found(later, first=step(1e-6, 1e-6)) == []
    origin, *_ = found(later, first=step(1e-7, 4e-4))
    assert origin.target == f"{GELU}.output.0"


def test_what_is_no_further_apart_than_what_comes_in_is_no_origin_though_it_was_wrong_before() -> None:
    assert found(step(1.5e-4, 1.2e-4), first=step(1e-7, 4e-4)) == []
