"""Prove without the tool that both sides of a pair agree, and draw its faults: ``python -m zoo.agree ROOT PAIR…``.

Writes ``faults.json`` beside the weights: what was drawn, with its truth.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from mindspore import nn
from mindspore.graph.api import _pynative_executor

from zoo import golden_side, target_side
from zoo.alone import alone
from zoo.environment import import_zoos
from zoo.faults import KINDS, SMALL, Training, plant
from zoo.jobs import GOLDEN, TARGET, weights_file
from zoo.pair import Pair, load
from zoo.proof import Disagree, prove

#: Faults drawn for a pair, of training and of modules.
OF_TRAINING, OF_MODULES = 4, 7
#: Small faults of each kind, at different places.
OF_SMALL = 3
#: What the loss and the gradients of a pair may differ by.
OUTPUTS, GRADIENTS = 2e-5, 1e-3
#: The least relative change of the loss, of a gradient or, by an update, of a parameter that makes a fault one.
EFFECT = 1e-4


def figures_of_golden(pair: Pair, root: Path, name: str) -> tuple[float, dict[str, np.ndarray]]:
    """The loss and the gradients of the first step; weights are saved for the target."""
    net = golden_side.make(pair)
    golden_side.save_weights(net, weights_file(root, name))
    loss = golden_side.step_of(pair, net, 0)
    return float(loss), {
        path: parameter.grad.numpy() for path, parameter in net.named_parameters() if parameter.grad is not None
    }


def figures_of_target(
    pair: Pair, weights: dict[str, np.ndarray], fault: str = "", calls: list[tuple[str, str]] | None = None
) -> tuple[float, dict[str, np.ndarray]]:
    """The same of the target; ``calls`` gets ("begin" or "end", path) of every Cell's forward."""
    net = target_side.make(pair, weights)
    batch = target_side.batch_of(pair, 0)
    training = Training(batch_keys=tuple(batch))
    if fault:
        plant(fault, net, training)
    if calls is not None:
        for path, cell in net.cells_and_names():
            _listen(cell, path, calls)
    loss, gradients = target_side.gradients_of(pair, net, training)(*training.batch(batch))
    paths = {parameter.name: path for path, parameter in net.parameters_and_names()}
    return float(loss.asnumpy()), {
        paths[parameter.name]: gradient.asnumpy()
        for parameter, gradient in zip(net.trainable_params(), gradients, strict=True)
    }


def after_update(pair: Pair, weights: dict[str, np.ndarray], fault: str = "") -> dict[str, np.ndarray]:
    """Parameters and running statistics of the target as the second step finds them."""
    net = target_side.make(pair, weights)
    batch = target_side.batch_of(pair, 0)
    training = Training(batch_keys=tuple(batch))
    if fault:
        plant(fault, net, training)
    optimizer = target_side.optimizer_of(pair, net, training)
    _, gradients = target_side.gradients_of(pair, net, training)(*training.batch(batch))
    target_side.update(optimizer, net, training.gradients(gradients, None)[0])
    return {path: parameter.asnumpy() for path, parameter in net.parameters_and_names()}


def _listen(cell: nn.Cell, path: str, calls: list[tuple[str, str]]) -> None:
    construct = cell.construct

    def heard(*arguments: Any, **named: Any) -> Any:
        calls.append(("begin", path))
        try:
            return construct(*arguments, **named)
        finally:
            calls.append(("end", path))

    cell.construct = heard


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The norm of the difference over the norm."""
    return float(np.linalg.norm(one.ravel() - other.ravel()) / (np.linalg.norm(other) + 1e-12))


def draw(
    pair: Pair,
    name: str,
    weights: dict[str, np.ndarray],
    healthy: tuple[float, dict[str, np.ndarray]],
    apart: dict[str, float],
    calls: list[tuple[str, str]],
) -> list[dict[str, Any]]:
    """Faults drawn by the name of the pair alone; one that changes nothing, or cannot be planted, is drawn again.

    ``apart``: path of a parameter → by how much the gradients of both sides differ without a fault.
    """
    generator = np.random.default_rng([15 + pair.seed, zlib.crc32(name.encode())])
    updated = after_update(pair, weights)
    net = target_side.make(pair, weights)
    called = {path for _, path in calls}
    faults: list[dict[str, Any]] = []
    for wanted, of_training in ((OF_TRAINING, True), (OF_MODULES, False)):
        kinds = [kind for kind in KINDS.values() if (kind.places is KINDS["unloaded_all"].places) == of_training]
        if pair.small:
            kinds = [] if of_training else [*SMALL.values()] * OF_SMALL
        if pair.late:
            kinds = [kind for kind in kinds if kind.may_come_late]
        # Only Adam corrects its bias; and it divides a factor of the gradients out, so that clipping changes nothing.
        without = "clipped" if pair.optimizer == "adam" else "bias_correction"
        kinds = [kind for kind in kinds if kind.name != without]
        order = [kinds[index] for index in generator.permutation(len(kinds))]
        found = 0
        for kind in order:
            taken = {each["fault"] for each in faults}
            places = [place for place in kind.places(net) if _is_called(place, net, called)]
            places = [place for place in places if f"{kind.name}@{place}" not in taken]
            for place in [places[index] for index in generator.permutation(len(places))][:3]:
                fault = f"{kind.name}@{place}"
                if _has_effect(pair, weights, fault, healthy, apart, updated if not kind.first_step else None):
                    faults.append(
                        {"fault": fault, "seen": kind.seen, "place": place}
                        | {"first_step": kind.first_step and not pair.late}
                        | {"first": _run(calls, "begin"), "last": _run(calls[::-1], "end")}
                    )
                    found += 1
                    break
            if found == wanted and not pair.small:
                break
    return faults


def _is_called(place: str, net: nn.Cell, called: set[str]) -> bool:
    if not place or place in called:
        return True
    return place.rpartition(".")[0] in called and place in {path for path, _ in net.parameters_and_names()}


def _run(calls: list[tuple[str, str]], what: str) -> list[str]:
    """The Cells that begin (or end) one right after the other, at the beginning."""
    found = []
    for event, path in calls:
        if event != what:
            break
        found.append(path)
    return found


def _has_effect(
    pair: Pair,
    weights: dict[str, np.ndarray],
    fault: str,
    healthy: tuple[float, dict[str, np.ndarray]],
    apart: dict[str, float],
    updated: dict[str, np.ndarray] | None,
) -> bool:
    """Whether the fault changes the loss, or a gradient by far more than the two sides differ without it.

    ``updated``: of a fault that shows after an update alone, the parameters as they are then without it.
    """
    try:
        if updated is not None:
            found = after_update(pair, weights, fault)
            return any(distance(found[path], value) > EFFECT for path, value in updated.items())
        loss, gradients = figures_of_target(pair, weights, fault)
    except Exception as error:  # this place cannot hold this fault
        print(f"   {fault}: {type(error).__name__}: {str(error)[:100]}")
        _pynative_executor.clear_res()  # an interrupted gradient would disturb whatever is computed next
        return False
    change = {path: distance(gradients[path], healthy[1][path]) for path in apart}
    seen = any(change[path] > max(EFFECT, 10 * apart[path]) for path in apart)
    return seen or abs(loss - healthy[0]) > EFFECT * abs(healthy[0])


def check(name: str, root: Path, *, healthy_alone: bool = False) -> dict[str, Any]:
    """Compare both sides of a pair, then draw its faults, which takes most of the time, unless it stays healthy.

    Raises:
        Disagree: losses or gradients are further apart than rounding.
    """
    began = time.monotonic()
    pair = load(name, root)
    loss, gradients = figures_of_golden(pair, root, name)
    weights = dict(np.load(weights_file(root, name)))
    calls: list[tuple[str, str]] = []
    healthy = figures_of_target(pair, weights, calls=calls)
    apart = {}
    for path, gradient in healthy[1].items():
        golden = gradients.get(pair.parameter(path))
        if golden is None:
            if np.abs(gradient).max() > 0:
                raise Disagree(f"{name}: only the target has a gradient of {path}")
            continue
        apart[path] = distance(gradient, pair.value(path, golden, gradient.shape))
    norms = {path: float(np.linalg.norm(gradient)) for path, gradient in healthy[1].items()}
    largest = max(norms.values())
    worst = max((path for path in apart if norms[path] > 1e-5 * largest), key=lambda path: apart[path])
    figures = {
        "loss": abs(loss - healthy[0]) / abs(loss),
        "gradient": apart[worst],
        "worst": worst,
        "parameters": len(norms),
    }
    if figures["loss"] > OUTPUTS or figures["gradient"] > GRADIENTS:
        far = sorted(apart, key=lambda path: -apart[path])[:12]
        raise Disagree(f"{name}: {figures} " + " ".join(f"{path} {apart[path]:.2g}" for path in far))
    faults = None if healthy_alone else draw(pair, name, weights, healthy, apart, calls)
    file = root / name / "faults.json"
    names = {path: pair.parameter(path) for path in norms}
    file.write_text(json.dumps({"agreement": figures, "faults": faults, "parameters": names}, indent=1))
    figures["seconds"] = time.monotonic() - began
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m zoo.agree", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--healthy-alone", action="store_true", help="draw no faults")
    options = parser.parse_args()
    failed = False
    import_zoos(GOLDEN, TARGET)
    for name in options.pairs:
        try:
            prove(name, options.root)
            found = alone(check, name, options.root, healthy_alone=options.healthy_alone)
            print(name, found, flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}"[:1500], flush=True)
            failed = True
    sys.exit(failed)
