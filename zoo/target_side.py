"""Train the MindSpore network of a pair, a fault planted: ``python -m zoo.target_side ROOT JOB…``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from zoo.environment import import_zoos, prepare, prepare_mindspore

prepare()
prepare_mindspore()

import mindspore as ms  # noqa: E402
from mindspore import nn, ops  # noqa: E402

from msprobe_ms import PrecisionDebugger  # noqa: E402
from zoo.alone import alone  # noqa: E402
from zoo.faults import Training, plant  # noqa: E402
from zoo.jobs import STEPS, TARGET, Job, Trained, steps_of, weights_file  # noqa: E402
from zoo.pair import Pair, load  # noqa: E402


def make(pair: Pair, weights: dict[str, np.ndarray]) -> nn.Cell:
    """The network in training mode with the golden's weights.

    Raises:
        KeyError: parameters have no counterpart, or the golden's have none.
    """
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.runtime.launch_blocking()
    ms.set_seed(3)
    net = pair.target()
    net.set_train()
    taken = set()
    for path, parameter in net.parameters_and_names():
        if pair.computed and re.search(pair.computed, path):
            continue
        name = pair.parameter(path)
        if name not in weights:
            raise KeyError(f"{path}: the golden has no {name}; it has {sorted(set(weights) - taken)[:20]}")
        taken.add(name)
        value = pair.value(path, weights[name], tuple(parameter.shape))
        parameter.set_data(ms.Tensor(value.astype(np.float32)))
    left = {name for name in set(weights) - taken if not name.endswith("num_batches_tracked")}
    if left := {name for name in left if name not in pair.unused}:
        raise KeyError(f"no parameter of the target takes {sorted(left)[:20]}")
    return net


def batch_of(pair: Pair, step: int) -> dict[str, ms.Tensor]:
    return {
        name: ms.Tensor(array.astype(np.int32) if array.dtype == np.int64 else array)
        for name, array in pair.batch_of(step).items()
    }


def optimizer_of(pair: Pair, net: nn.Cell, training: Training) -> nn.Optimizer:
    parameters = [each for each in net.trainable_params() if id(each) not in training.frozen]
    rate, decay = pair.learning_rate * training.learning_rate, training.weight_decay
    if pair.optimizer == "adam":
        kind = nn.Adam if training.bias_correction else nn.AdamWeightDecay
        return kind(parameters, rate, weight_decay=decay)
    return nn.SGD(parameters, rate, momentum=training.momentum, weight_decay=decay)


def gradients_of(pair: Pair, net: nn.Cell, training: Training) -> Any:
    """A function of a batch: its loss, and the gradients of what is trained."""
    cross_entropy = ops.cross_entropy

    def smoothed(logits: Any, labels: Any) -> Any:
        return cross_entropy(logits, labels, label_smoothing=training.label_smoothing) * training.loss_scale

    chosen = smoothed if training.other_loss else cross_entropy

    def forward(*values: Any) -> Any:
        return pair.target_loss(net, dict(zip(training.batch_keys, values, strict=True)), chosen)

    return ms.value_and_grad(forward, None, net.trainable_params())


def update(optimizer: nn.Optimizer, net: nn.Cell, gradients: tuple[Any, ...]) -> None:
    """Let the optimizer take the gradients of what it trains."""
    trained = {id(parameter) for parameter in optimizer.parameters}
    named = zip(net.trainable_params(), gradients, strict=True)
    optimizer(tuple(gradient for parameter, gradient in named if id(parameter) in trained))


def trained(pair: Pair, weights: dict[str, np.ndarray]) -> list[Trained]:
    """What is recorded of a healthy training, without the tool."""
    net = make(pair, weights)
    training = Training(batch_keys=tuple(batch_of(pair, 0)))
    optimizer, run = optimizer_of(pair, net, training), gradients_of(pair, net, training)
    paths = {id(parameter): path for path, parameter in net.parameters_and_names()}
    steps = []
    for step in range(STEPS):
        loss, gradients = run(*training.batch(batch_of(pair, step)))
        named = zip((paths[id(each)] for each in net.trainable_params()), gradients, strict=True)
        own = {path: gradient.asnumpy().copy() for path, gradient in named}
        update(optimizer, net, gradients)
        parameters = {paths[id(each)]: each.asnumpy().copy() for each in net.trainable_params()}
        steps.append(Trained(float(loss.asnumpy()), own, parameters))
    return steps


def train(job: Job, root: Path) -> None:
    pair = load(job.pair, root)
    weights = dict(np.load(weights_file(root, job.pair)))
    net = make(pair, weights)
    training = Training(batch_keys=tuple(batch_of(pair, 0)))
    if job.fault and not pair.late:
        plant(job.fault, net, training)
    optimizer, run = optimizer_of(pair, net, training), gradients_of(pair, net, training)
    kept: Any = None
    with job.dump_path(root) as dump_path:
        debugger = PrecisionDebugger(task=job.task, level=job.level, dump_path=str(dump_path))
        for step in range(steps_of(job, root)):
            if job.fault and pair.late and step == STEPS - 1:
                plant(job.fault, net, training)
                run = gradients_of(pair, net, training)
            values = training.batch(batch_of(pair, step))
            debugger.start(net)
            _, gradients = run(*values)
            debugger.stop()
            debugger.step()
            gradients, kept = training.gradients(gradients, kept)
            update(optimizer, net, gradients)


if __name__ == "__main__":
    import_zoos(TARGET)
    for text in sys.argv[2:]:
        alone(train, Job.parse(text), Path(sys.argv[1]))
