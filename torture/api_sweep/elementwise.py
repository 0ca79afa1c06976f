"""Examples of functions that work element by element, of creation, of activations and of losses."""

from __future__ import annotations

from msprobe_ms.frameworks.api_calls import DtypeArgument
from torture.api_sweep.examples import (
    Example,
    bools,
    complexes,
    distribution,
    floats,
    given,
    integers,
    log_distribution,
    positive,
    share,
    table,
    unit,
    with_nan,
)

X = floats(3, 4)
INT = integers(3, 4, low=1, high=9, dtype="int32")

EXAMPLES = table(
    {
        "abs absolute angle asinh arcsinh atan arctan ceil cos cosh deg2rad erf erfc exp exp2 expm1 fix floor frac i0 "
        "isfinite isinf isnan isneginf isposinf isreal log_softmax neg negative positive rad2deg round sgn sigmoid sign "
        "signbit sin sinc sinh square tan tanh tanhshrink trunc relu relu6 selu silu softsign mish hardswish hardsigmoid "
        "logsigmoid elu celu gelu hardshrink softshrink soft_shrink hardtanh softplus leaky_relu rrelu fast_gelu "
        "bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 conj ones_like zeros_like isnan_ext npu_gelu "
        "tensor_exp tensor_expm1 inplace_sigmoid inplace_silu inplace_elu elu_ext adjoint argwhere nonzero "
        "conj_physical __abs__ __neg__ __pos__ clone copy double float half bfloat16 int long short byte bool stop_gradient_ "
        "zero_ detach ravel frexp": Example(X),
        "inv reciprocal rsqrt sqrt log log10 log2 digamma lgamma bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 "
        "bessel_y1 log_": Example(positive(3, 4)),
        "log1p": Example(floats(3, 4, low=-0.8)),
        "acos arccos asin arcsin atanh arctanh erfinv": Example(unit(3, 4)),
        "acosh arccosh": Example(floats(3, 4, low=1.2, high=4)),
        "logit": (Example(share(3, 4)), Example(share(3, 4), 0.2)),
        "nan_to_num isnan_": (Example(with_nan(3, 4)), Example(with_nan(3, 4), nan=1.5)),
        "polygamma": Example(2, positive(3, 4)),
        "Functional.polygamma": Example(given(2, "int64"), positive(3, 4)),
        "Tensor.polygamma Tensor.polygamma_": Example(positive(3, 4), 2),
        "torch.Tensor.polygamma": Example(positive(3, 4), 2),
        "mvlgamma": Example(floats(3, 4, low=2, high=5), 2),
        "add sub subtract mul multiply maximum minimum fmax fmin hypot atan2 arctan2 logaddexp logaddexp2 copysign "
        "tensor_add tensor_sub tensor_mul ne not_equal eq equal gt ge lt le less less_equal greater "
        "greater_equal heaviside dist __add__ __sub__ __mul__ __radd__ __rmul__ __rsub__ __iadd__ __isub__ __imul__ "
        "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ tensor_gt tensor_lt isclose allclose mse_loss "
        "mse_loss_ext l1_loss huber_loss": (Example(X, floats(3, 4)), Example(X, floats(4))),
        "approximate_equal smooth_l1_loss nextafter": Example(X, floats(3, 4)),
        "tensor_muls": Example(X, 2.5),
        "ldexp": Example(X, integers(3, 4, dtype="int32")),
        "div divide true_divide tensor_div __truediv__ __rtruediv__ __itruediv__ xdivy": (
            Example(X, positive(3, 4)),
            Example(X, positive(4)),
        ),
        "floor_divide floor_div fmod remainder floor_mod tensor_mod tensor_floordiv truncate_div truncate_mod __mod__ "
        "__floordiv__ __rfloordiv__ __imod__ __ifloordiv__": (
            Example(floats(3, 4, low=-9, high=9), floats(3, 4, low=1, high=3)),
            Example(floats(3, 4, low=-9, high=9), floats(4, low=1, high=3)),
        ),
        "__rmod__": Example(positive(3, 4), 7.5),
        "pow float_power float_power_ext tensor_pow pows __pow__ __ipow__": (
            Example(positive(3, 4), floats(3, 4)),
            Example(positive(3, 4), 2.0),
        ),
        "__rpow__": Example(X, 2.0),
        "xlogy": Example(X, positive(3, 4)),
        "zeta": Example(floats(3, 4, low=1.5, high=4), positive(3, 4)),
        "igamma igammac": Example(positive(3, 4), positive(3, 4)),
        "lerp": (Example(X, floats(3, 4), floats(3, 4)), Example(X, floats(3, 4), 0.3)),
        "addcmul addcdiv": (
            Example(X, floats(3, 4), positive(3, 4)),
            Example(X, floats(3, 4), positive(3, 4), value=0.5),
        ),
        "Primitive.Addcmul Primitive.Addcdiv": Example(X, floats(3, 4), positive(3, 4), given(0.5)),
        "clamp clip": (Example(X, -0.5, 0.7), Example(X, min=0.1)),
        "clamp_min clamp_max": Example(X, 0.1),
        "clip_by_value": Example(X, -0.5, 0.7),
        "clip_by_norm": Example(X, 1.0),
        "clip_by_global_norm": Example((X, floats(4))),
        "bitwise_and bitwise_or bitwise_xor gcd lcm __and__ __or__ __xor__ __iand__ __ior__ __ixor__ __rand__ __ror__ "
        "__rxor__": Example(INT, integers(3, 4, low=1, high=9, dtype="int32")),
        "bitwise_left_shift bitwise_right_shift __lshift__ __rshift__ __ilshift__ __irshift__ __rlshift__ "
        "__rrshift__": Example(INT, integers(3, 4, high=3, dtype="int32")),
        "bitwise_not invert __invert__ population_count": Example(integers(3, 4, low=1, high=9, dtype="int16")),
        "logical_and logical_or logical_xor": Example(bools(3, 4), bools(3, 4)),
        "logical_not": Example(bools(3, 4)),
        "accumulate_n addn": Example((X, floats(3, 4), floats(3, 4))),
        "bias_add": Example(floats(2, 3, 4), floats(3)),
        "cast astype to": Example(X, DtypeArgument("float16")),
        "type_as": Example(X, INT),
        "assign assign_add assign_sub": Example(X, floats(3, 4)),
        "copy_": Example(X, floats(3, 4)),
        "polar": Example(positive(3, 4), floats(3, 4)),
        "view_as_real real imag": Example(complexes(3, 4)),
        "view_as_complex": Example(floats(3, 4, 2)),
        "fill fill_ fills": Example(X, 1.5),
        "Functional.fill": Example(DtypeArgument("float32"), (2, 3), 1.5),
        "full_like": Example(X, 1.5),
        # creation
        "arange": (Example(7), Example(1, 9, 2), Example(0.5, 3.0, 0.25)),
        "range": Example(1, 9, 2),
        "Primitive.LinSpace": Example(given(-1.0), given(2.0), 7),
        "linspace": Example(-1.0, 2.0, 7),
        "logspace": Example(0.0, 2.0, 5),
        "eye": (Example(3), Example(3, 4)),
        "Primitive.Eye": Example(3, 4, DtypeArgument("float32")),
        "Primitive.AdaptiveMaxPool3D": Example(floats(1, 2, 5, 5, 5), given([2, 3, 2], "int32")),
        "full": Example((2, 3), 1.5),
        "ones zeros": Example((2, 3)),
        "new_ones new_zeros": Example(X, (2, 3)),
        "new_full": Example(X, (2, 3), 1.5),
        "tril_indices triu_indices": Example(4, 5, 1),
        "Functional.bartlett_window Functional.blackman_window": Example(given(9, "int64")),
        "bartlett_window blackman_window hamming_window hann_window kaiser_window": Example(9),
        "fftfreq rfftfreq": Example(8),
        "one_hot": Example(integers(5, high=4), 4),
        "Functional.one_hot": (Example(integers(5, high=4), 4), Example(integers(2, 3, high=4), 4, 2.0, -1.0, 1)),
        "torch.Functional.one_hot": Example(integers(5, high=4), 4),
        # activations and losses
        "softmax softmin": (Example(X, -1), Example(X, 0)),
        "log_softmax_": Example(X, -1),
        "Functional.log_softmax MintFunctional.log_softmax torch.Torch.log_softmax torch.Functional.log_softmax": (
            Example(X, -1),
            Example(X, 0),
        ),
        "softmax_ext": Example(X, 1),
        "glu swiglu": Example(floats(3, 4), -1),
        "prelu": Example(floats(2, 3, 4), given([0.2, 0.3, 0.4])),
        "threshold": Example(X, 0.1, -1.0),
        "binary_cross_entropy": (Example(share(3, 4), share(3, 4)), Example(share(3, 4), share(3, 4), positive(3, 4))),
        "binary_cross_entropy_with_logits": Example(X, share(3, 4)),
        "Functional.binary_cross_entropy_with_logits": (
            Example(X, share(3, 4)),
            Example(X, share(3, 4), positive(3, 4), positive(4), reduction="sum"),
        ),
        "torch.Functional.binary_cross_entropy_with_logits": Example(X, share(3, 4)),
        "torch.Torch.binary_cross_entropy_with_logits": Example(X, share(3, 4)),
        "cross_entropy": (
            Example(floats(4, 5), integers(4, high=5, dtype="int32")),
            Example(floats(4, 5), integers(4, high=5, dtype="int32"), positive(5), reduction="sum"),
            Example(floats(4, 5), integers(4, high=5, dtype="int32"), label_smoothing=0.1),
            Example(floats(4, 5), distribution(4, 5)),
        ),
        "torch.Functional.cross_entropy": Example(floats(4, 5), integers(4, high=5)),
        "nll_loss": (
            Example(log_distribution(4, 5), integers(4, high=5, dtype="int32")),
            Example(log_distribution(4, 5), integers(4, high=5, dtype="int32"), positive(5), reduction="sum"),
        ),
        "Functional.nll_loss": (
            Example(log_distribution(4, 5), integers(4, high=5, dtype="int32")),
            Example(log_distribution(4, 5), integers(4, high=5, dtype="int32"), positive(5), label_smoothing=0.2),
        ),
        "torch.Functional.nll_loss": Example(log_distribution(4, 5), integers(4, high=5)),
        "kl_div": (
            Example(log_distribution(4, 5), distribution(4, 5)),
            Example(log_distribution(4, 5), distribution(4, 5), reduction="batchmean"),
        ),
        "soft_margin_loss hinge_embedding_loss": Example(X, given([[1, -1, 1, -1], [1, 1, -1, -1], [-1, 1, 1, 1]])),
        "margin_ranking_loss": Example(floats(4), floats(4), given([1, -1, 1, -1]), 0.3),
        "cosine_embedding_loss": Example(floats(4, 5), floats(4, 5), given([1, -1, 1, -1]), 0.1),
        "multi_margin_loss": Example(floats(4, 5), integers(4, high=5)),
        "multilabel_margin_loss": Example(
            floats(2, 4), given([[3, 0, -1, 1], [1, 2, 0, -1]], "int32")
        ),
        "torch.Functional.multilabel_margin_loss": Example(floats(2, 4), given([[3, 0, -1, 1], [1, 2, 0, -1]], "int64")),
        "multilabel_soft_margin_loss": Example(X, given([[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 1, 1]])),
        "triplet_margin_loss triplet_margin_with_distance_loss": Example(floats(4, 5), floats(4, 5), floats(4, 5)),
        "gaussian_nll_loss": Example(X, floats(3, 4), positive(3, 4)),
        "poisson_nll_loss": Example(X, positive(3, 4), True, False, 1e-8, 2),
        "torch.Functional.poisson_nll_loss": Example(X, positive(3, 4)),
        "ctc_loss": Example(
            log_distribution(6, 2, 5), integers(2, 3, low=1, high=5, dtype="int32"),
            given([6, 6], "int32"), given([3, 2], "int32"),
        ),
        "torch.Functional.ctc_loss": Example(
            log_distribution(6, 2, 5), integers(2, 3, low=1, high=5), given([6, 6], "int64"), given([3, 2], "int64")
        ),
        "torch.Torch.ctc_loss": Example(
            log_distribution(6, 2, 5), integers(2, 3, low=1, high=5), given([6, 6], "int64"), given([3, 2], "int64")
        ),
        "scaled_dot_product_attention": Example(floats(2, 3, 4, 5), floats(2, 3, 4, 5), floats(2, 3, 4, 5)),
        "pairwise_distance": Example(floats(4, 5), floats(4, 5)),
    }
)  # fmt: skip
