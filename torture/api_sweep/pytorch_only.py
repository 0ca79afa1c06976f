"""Examples of what PyTorch alone has, and of its APIs whose results are random: they are run, and not compared."""

from __future__ import annotations

from torture.api_sweep.examples import (
    Draw,
    Example,
    complexes,
    distribution,
    floats,
    given,
    integers,
    positive,
    regular,
    share,
    table,
)

X = floats(3, 4)
IMAGE = floats(2, 4, 7, 7)


def _recurrent(gates: int, *states: Draw) -> Example:
    """A layer of 4 inputs and 3 units: state, weights, and that there are biases, 1 layer, no dropout, one way."""
    weights = [floats(3 * gates, 4), floats(3 * gates, 3), floats(3 * gates), floats(3 * gates)]
    state = states[0] if len(states) == 1 else list(states)
    return Example(floats(5, 2, 4), state, weights, True, 1, 0.0, False, False, False)


def _cell(gates: int, *states: Draw) -> Example:
    state = states[0] if len(states) == 1 else list(states)
    return Example(
        floats(2, 4), state, floats(3 * gates, 4), floats(3 * gates, 3), floats(3 * gates), floats(3 * gates)
    )


EXAMPLES = table(
    {
        "torch.Torch.alpha_dropout torch.Torch.dropout torch.Torch.feature_alpha_dropout torch.Torch.feature_dropout": (
            Example(X, 0.5, True), Example(X, 0.5, False),
        ),
        "torch.Torch.alpha_dropout_ torch.Torch.dropout_": Example(X, 0.5, True),
        "torch.Torch.feature_alpha_dropout_ torch.Torch.feature_dropout_": Example(X, 0.5, True),
        "torch.Functional.alpha_dropout torch.Functional.dropout torch.Functional.feature_alpha_dropout": (
            Example(X, 0.5)
        ),
        "torch.Functional.dropout1d": Example(floats(2, 4, 7), 0.5),
        "torch.Functional.dropout2d": Example(IMAGE, 0.5),
        "torch.Functional.dropout3d": Example(floats(1, 2, 3, 3, 3), 0.5),
        "torch.Functional.gumbel_softmax": Example(X),
        "torch.Functional.fractional_max_pool2d torch.Functional.fractional_max_pool2d_with_indices": (
            Example(IMAGE, 2, 3)
        ),
        "torch.Functional.fractional_max_pool3d torch.Functional.fractional_max_pool3d_with_indices": Example(
            floats(1, 2, 5, 5, 5), 2, 3
        ),
        "torch.Functional.multi_head_attention_forward": Example(
            floats(5, 2, 4), floats(5, 2, 4), floats(5, 2, 4), 4, 2, floats(12, 4), floats(12), None, None, False, 0.0,
            floats(4, 4), floats(4),
        ),
        "torch.Torch.bernoulli torch.Tensor.bernoulli": Example(share(3, 4)),
        "torch.Tensor.bernoulli_ torch.Tensor.geometric_": Example(X, 0.5),
        "torch.Torch.binomial": Example(given([3.0, 5.0]), share(2)),
        "torch.Torch.multinomial torch.Tensor.multinomial": Example(distribution(3, 4), 2),
        "torch.Torch.normal": Example(X, positive(3, 4)),
        "torch.Torch.poisson": Example(positive(3, 4)),
        "torch.Torch.rand torch.Torch.randn": Example((3, 4)),
        "torch.Torch.rand_like torch.Torch.randn_like": Example(X),
        "torch.Torch.randint": Example(0, 5, (3,)),
        "torch.Torch.randint_like": Example(X, 0, 5),
        "torch.Torch.randperm": Example(5),
        "torch.Tensor.cauchy_ torch.Tensor.exponential_ torch.Tensor.log_normal_ torch.Tensor.normal_ "
        "torch.Tensor.random_ torch.Tensor.uniform_": Example(X),
        "torch.Torch.pca_lowrank torch.Torch.svd_lowrank": Example(floats(6, 5), 2),
        "torch.Torch.as_strided_scatter torch.Tensor.as_strided_scatter": Example(X, floats(2, 2), (2, 2), (1, 2)),
        "torch.Torch.gradient": Example(floats(6)),
        "torch.Torch.histogram torch.Tensor.histogram": Example(X, 4),
        "torch.Torch.histogramdd": Example(floats(6, 2), [3, 3]),
        "torch.Torch.stft torch.Tensor.stft": Example(floats(32), 8, return_complex=True),
        "torch.Torch.istft torch.Tensor.istft": Example(complexes(5, 17), 8),
        "torch.Torch.lu torch.Tensor.lu": Example(regular(3, 3)),
        "torch.Torch.unravel_index": Example(integers(5, high=12), (3, 4)),
        "torch.Tensor.nonzero_static": Example(X, size=4),
        "torch.Functional.linear_cross_entropy": Example(X, floats(5, 4), integers(3, high=5)),
        "torch.VF.gru": _recurrent(3, floats(1, 2, 3)),
        "torch.VF.lstm": _recurrent(4, floats(1, 2, 3), floats(1, 2, 3)),
        "torch.VF.rnn_relu torch.VF.rnn_tanh": _recurrent(1, floats(1, 2, 3)),
        "torch.VF.gru_cell": _cell(3, floats(2, 3)),
        "torch.VF.lstm_cell": _cell(4, floats(2, 3), floats(2, 3)),
        "torch.VF.rnn_relu_cell torch.VF.rnn_tanh_cell": _cell(1, floats(2, 3)),
    }
)  # fmt: skip
