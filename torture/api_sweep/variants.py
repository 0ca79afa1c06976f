"""More examples of MindSpore's functions: options, overloads, scalars and integers, in which twins may be wrong."""

from __future__ import annotations

from msprobe_ms.frameworks.api_calls import DtypeArgument
from torture.api_sweep.examples import (
    Example,
    bools,
    distribution,
    floats,
    given,
    integers,
    log_distribution,
    positive,
    regular,
    share,
    table,
    with_nan,
)

X = floats(3, 4)
CUBE = floats(2, 3, 4)
IMAGE = floats(2, 4, 7, 7)
INT = integers(3, 4, low=-5, high=6, dtype="int32")
SIGNS = given([[1, -1, 1, -1], [1, 1, -1, -1], [-1, 1, 1, 1]])


EXAMPLES = table(
    {
        # scalars and integers
        "Functional.add Functional.sub Functional.mul Functional.maximum Functional.minimum Functional.tensor_add "
        "Functional.ne Functional.gt Functional.le Functional.eq Functional.equal Tensor.__add__ Tensor.__sub__ "
        "Tensor.__rsub__ Tensor.__mul__ Tensor.__lt__ Mint.add Mint.sub Mint.mul Mint.eq Mint.gt Tensor.add Tensor.sub "
        "Tensor.mul": (Example(X, 1.5), Example(INT, integers(3, 4, low=-5, high=6, dtype="int32")), Example(INT, 2)),
        "Functional.div Functional.true_divide Tensor.__truediv__ Tensor.__rtruediv__ Functional.tensor_div Mint.div": (
            Example(positive(3, 4), 1.5), Example(INT, integers(3, 4, low=1, high=6, dtype="int32")),
        ),
        "Functional.floor_divide Tensor.__floordiv__ Functional.floor_div Functional.fmod Functional.remainder "
        "Functional.floor_mod Tensor.__mod__ Functional.truncate_div Functional.truncate_mod Mint.remainder Mint.fmod "
        "Functional.tensor_mod": (
            Example(INT, integers(3, 4, low=1, high=4, dtype="int32")),
            Example(floats(3, 4, low=-9, high=9), given([-2.5, 1.5, -1.25, 3.5])),
            Example(floats(3, 4, low=-9, high=9), 2.5),
        ),
        "Functional.pow Mint.pow": Example(2.0, X),
        "Functional.pow Mint.pow Tensor.__pow__": (Example(X, 3), Example(INT, 2)),
        "Functional.xlogy Functional.xdivy": (
            Example(given([0.0, 1.5, -2.0]), positive(3)), Example(given([0.0, 1.5, -2.0]), given([0.0, 1.0, 2.0])),
        ),
        "Functional.where Mint.where": (
            Example(bools(3, 4), X, given(1.5)), Example(bools(3, 4), 1.5, X), Example(bools(3, 4), X, 2.0),
        ),
        "Functional.select": (Example(bools(3, 4), 1.5, X), Example(bools(3, 4), X, 2.0)),
        "Functional.subtract Tensor.subtract": Example(X, floats(3, 4), alpha=2.5),
        "Mint.add Mint.sub Tensor.add_ Tensor.sub_": Example(X, floats(3, 4), alpha=2.5),
        "Functional.abs Functional.sign Functional.neg Functional.square Tensor.__neg__ Tensor.__abs__": Example(INT),
        "Functional.round Functional.floor Functional.ceil Functional.trunc Functional.frac": Example(
            given([0.5, 1.5, -0.5, -1.5, 2.49])
        ),
        "Functional.relu6 Functional.hardtanh Functional.hardsigmoid Functional.hardswish": Example(
            floats(3, 4, low=-9, high=9)
        ),
        "Functional.nan_to_num Tensor.nan_to_num": (
            Example(given([float("inf"), float("-inf"), float("nan"), 1.0]), 0.5, 9.0, -9.0),
        ),
        "Functional.clamp Functional.clip Functional.clip_by_value": (
            Example(X, floats(3, 4, low=-1, high=0), positive(3, 4)), Example(INT, -2, 2),
        ),
        "Functional.clip_by_norm": (Example(X, 0.5, 1.0), Example([X, floats(4)], 0.5)),
        "Functional.clip_by_global_norm": Example((X, floats(4)), 0.5),
        "Functional.cast Tensor.astype": (Example(X, DtypeArgument("int32")), Example(INT, DtypeArgument("float32"))),
        # reductions
        "Functional.mean Functional.prod": (Example(CUBE, -1, True), Example(CUBE, (0, 2), True)),
        "Functional.sum Mint.sum Mint.mean Functional.logsumexp": Example(CUBE, (0, 2), True),
        "Functional.sum": (Example(INT), Example(INT, 0), Example(X, 0, dtype=DtypeArgument("float16"))),
        "Functional.all Functional.any": (Example(bools(2, 3, 4), 1, True), Example(bools(2, 3, 4), (0, 2))),
        "Functional.count_nonzero": (Example(INT, 1, True), Example(INT, (0, 1))),
        "Functional.amax Functional.amin": (
            Example(CUBE, (0, 2), True), Example(CUBE, 1, initial=0.5),
            Example(CUBE, 1, initial=0.5, where=bools(2, 3, 4)),
        ),
        "Functional.max Functional.min": (
            Example(CUBE, 1, True), Example(CUBE, -1), Example(X, 1, initial=0.5, where=bools(3, 4)), Example(INT, 1),
        ),
        "Functional.aminmax Tensor.aminmax": (Example(X, axis=1, keepdims=True), Example(X, axis=None)),
        "Functional.std Functional.var Functional.std_mean Functional.var_mean": (
            Example(CUBE, 1, 1), Example(CUBE, (0, 2), 1, True), Example(CUBE, 1, True),
        ),
        "Tensor.std Tensor.var": (
            Example(CUBE, 1, 1, True), Example(CUBE, axis=1, ddof=1), Example(CUBE, dim=1, correction=0),
        ),
        "Tensor.sum": (
            Example(CUBE, 1, None, True), Example(CUBE, axis=(0, 1), keepdims=True), Example(CUBE, dim=1, keepdim=True),
            Example(CUBE, 1, initial=2.0),
        ),
        "Tensor.mean": (Example(CUBE, axis=1, keep_dims=True), Example(CUBE, (0, 1), True)),
        "Tensor.prod": Example(CUBE, 1, True),
        "Tensor.all Tensor.any": (Example(bools(3, 4), axis=1, keep_dims=True), Example(bools(3, 4), 1, True)),
        "Tensor.argmax Tensor.argmin": (Example(X, axis=1, keepdims=True), Example(X, 0, True)),
        "Functional.argmax": (Example(X, 0, True), Example(X, dim=1)),
        "Functional.argmin": (Example(X, 0, True), Example(X, axis=-1, keepdims=True)),
        "Tensor.max Tensor.min": (
            Example(X, 1, True), Example(X, axis=0, keepdims=True), Example(X, axis=1, initial=0.1),
            Example(X, axis=1, initial=0.1, where=bools(3, 4)),
        ),
        "Tensor.median": (
            Example(floats(3, 5)), Example(floats(3, 5), 1), Example(floats(3, 5), axis=0, keepdims=True),
        ),
        "Functional.nansum Tensor.nansum": (Example(with_nan(3, 4), 1, True), Example(with_nan(3, 4))),
        "Functional.nanmean": Example(with_nan(3, 4), 0, True),
        "Functional.nanmedian": Example(with_nan(3, 5), 1),
        "Functional.norm Tensor.norm": (
            Example(X, 1, 1), Example(X, float("inf"), 0, True), Example(X, "fro", (0, 1)), Example(X, "nuc", (0, 1)),
            Example(floats(4), 3), Example(X, float("-inf"), (0, 1)),
        ),
        "Functional.matrix_norm": (
            Example(X, 1), Example(X, float("inf")), Example(X, "nuc"), Example(CUBE, "fro", (0, 2), True),
            Example(X, 2),
        ),
        "Functional.vector_norm": (Example(X, 0), Example(X, float("inf"), 0), Example(CUBE, 1, (0, 1), True)),
        "Functional.cdist": (Example(X, floats(5, 4), 3.0), Example(X, floats(5, 4), float("inf"))),
        "Functional.pdist": (Example(X, 1.0), Example(X, 3.0)),
        "Functional.renorm": (Example(CUBE, 1, 1, 1.0), Example(CUBE, 3, 2, 0.5)),
        "Functional.trapz": (Example(X, dx=0.5, dim=0), Example(X, floats(4)), Example(X, floats(3, 4))),
        "Functional.cumsum Functional.cumprod": (Example(X, 0, DtypeArgument("float64")), Example(X, -1)),
        "Tensor.cumsum": (Example(X, 1), Example(X), Example(X, axis=0)),
        "Functional.topk Tensor.topk": (Example(X, 2, 0), Example(X, 2, 1, False)),
        "Functional.sort Tensor.sort": (Example(CUBE, 1), Example(INT, 1, True)),
        "Functional.argsort": (Example(CUBE, 1, True),),
        "Functional.searchsorted": (
            Example(given([-1.5, -0.5, 0.25, 1.0]), given([0.25, -2.0, 1.5]), right=True),
            Example(given([[-1.5, 0.25], [0.5, 1.0]]), floats(2, 3)),
        ),
        "Functional.bucketize": Example(given([0.25, -2.0, 1.5]), [-0.5, 0.25, 1.0], right=True),
        "Functional.histc": (Example(X, 5), Example(X, 5, -1.0, 1.0)),
        "Functional.bincount": (Example(integers(9, high=5), floats(9)), Example(integers(9, high=5), None, 7)),
        "Functional.unique_consecutive": Example(integers(9, high=2), True, True),
        "Functional.cov": (Example(X, correction=0), Example(X, fweights=integers(4, low=1, high=4, dtype="int32"))),
        "Functional.diff": (Example(X, 1, 1, floats(3, 1)), Example(X, axis=0, append=floats(1, 4))),
        "Functional.cosine_similarity": Example(CUBE, floats(2, 3, 4), 2),
        "Functional.vecdot": Example(CUBE, floats(2, 3, 4), axis=1),
        "Functional.cross": (Example(floats(3, 4), floats(3, 4)), Example(floats(4, 3), floats(4, 3), 1)),
        # shapes
        "Functional.flatten": (Example(CUBE, "F"), Example(CUBE, start_dim=0, end_dim=1), Example(given(1.5))),
        "Tensor.flatten": (Example(CUBE, "F"), Example(CUBE, "C"), Example(CUBE, 1, 2)),
        "Functional.squeeze Tensor.squeeze": (Example(floats(1, 3, 1, 4), (0, 2)), Example(floats(1, 3), -2)),
        "Functional.repeat_interleave": (Example(X, [1, 2, 0], 0), Example(X, given([1, 2, 0], "int32"), 0)),
        "Tensor.repeat_interleave": Example(X, [1, 2, 0], 0),
        "Functional.roll": (Example(X, (1, -1), (0, 1)), Example(X, 2)),
        "Functional.tile": (Example(X, (2, 1, 3)), Example(CUBE, (2,))),
        "Functional.reverse_sequence": Example(CUBE, given([2, 3, 1], "int32"), 2, 1),
        "Functional.split": (Example(CUBE, 2, -1), Example(floats(7, 2), 3)),
        "Functional.chunk": Example(floats(7, 2), 3),
        "Functional.tensor_split": (Example(floats(7, 2), 3), Example(floats(7, 2), [2, 5])),
        "Functional.meshgrid": Example(floats(3), floats(4), floats(2)),
        "Functional.diag_embed": Example(X, -1, 0, 2),
        "Functional.diagonal": Example(CUBE, -1, 1, 2),
        "Functional.rot90": (Example(X, 2, [0, 1]), Example(CUBE, 3, (1, 2))),
        "Functional.pad": (
            Example(floats(1, 2, 5), [2, 1], "reflect"), Example(floats(1, 2, 5), [2, 1], "replicate"),
            Example(floats(1, 2, 5), [2, 1], "circular"), Example(X, [1, 0, 0, 2], "constant", 1.5),
            Example(X, [-1, 1]),
        ),
        "Functional.broadcast_to": Example(floats(3, 1), (2, -1, 4)),
        "Functional.stack": Example([X, floats(3, 4)], -1),
        "Functional.tril Functional.triu": (Example(CUBE, -1), Example(CUBE, 2)),
        "Functional.vander": Example(floats(4), 3),
        "Functional.one_hot": Example(integers(2, 3, high=4, dtype="int32"), 4, given(2.0), given(-1.0), 0),
        "Functional.arange": (Example(9, 1, -2), Example(1.0, 4.0)),
        "Functional.full": Example((2, 3), 1.5, dtype=DtypeArgument("float32")),
        "Functional.hamming_window": Example(9, False, 0.6, 0.3),
        "Functional.kaiser_window": Example(9, False, 5.0),
        # indexing
        "Functional.gather": (
            Example(CUBE, integers(2, 2, high=3, dtype="int32"), 1, 1),
            Example(CUBE, integers(2, high=4, dtype="int32"), -1),
        ),
        "Functional.gather_nd Tensor.gather_nd": Example(CUBE, given([[1, 2], [0, 0]], "int32")),
        "Functional.gather_d Functional.gather_elements": Example(X, 0, integers(2, 4, high=3, dtype="int32")),
        "Functional.strided_slice": (
            Example(CUBE, (0, 1, 0), (2, 3, 4), (1, 1, 2), begin_mask=2),
            Example(CUBE, (0, 1), (1, 3), (1, 1), end_mask=1),
            Example(CUBE, (0, 0, 1), (1, 1, 3), (1, 1, 1), ellipsis_mask=2),
            Example(CUBE, (0, 0, 1), (1, 1, 3), (1, 1, 1), new_axis_mask=2),
        ),
        "Functional.slice": Example(CUBE, (1, 0, 2), (-1, 2, -1)),
        "Functional.index_select": Example(CUBE, -1, integers(5, high=4, dtype="int32")),
        "Functional.masked_fill": (Example(X, bools(3, 4), given(1.5)), Example(floats(4), bools(3, 4), 1.5)),
        "Tensor.take": (Example(X, integers(2, low=-3, high=3), 0), Example(X, integers(2, high=9), 0, "wrap")),
        "Tensor.__getitem__": (
            Example(CUBE, (given([1, 0], "int64"), given([2, 0], "int64"))), Example(CUBE, (0, slice(None), -1)),
            Example(CUBE, (slice(1, None), Ellipsis)), Example(X, (None, 1)), Example(CUBE, -1),
        ),
        "Tensor.__setitem__": (
            Example(CUBE, (Ellipsis, 0), 2.0), Example(CUBE, (slice(None), 1), floats(2, 4)),
            Example(X, (given([1, 0], "int64"), given([2, 0], "int64")), floats(2)),
        ),
        "Functional.tensor_scatter_elements": Example(X, integers(2, 4, high=3, dtype="int32"), floats(2, 4)),
        "Functional.unsorted_segment_sum": Example(CUBE, given([[0, 2, 1], [1, 1, 0]], "int32"), 4),
        "Functional.matrix_band_part": (Example(CUBE, -1, 1), Example(X, 0, -1)),
        "Functional.diagonal_scatter": Example(CUBE, floats(4, 2), 1, 0, 1),
        "Functional.scatter_nd": Example(given([[0], [2], [0]], "int32"), floats(3, 4), (4, 4)),
        # linear algebra
        "Functional.matmul Tensor.__matmul__ Mint.matmul": (
            Example(floats(2, 1, 3, 4), floats(5, 4, 2)), Example(floats(4), floats(2, 4, 3)), Example(X, floats(4)),
        ),
        "Functional.tensor_dot": (Example(CUBE, floats(3, 4, 2), 2), Example(X, floats(4, 3), ((1,), (0,)))),
        "Functional.batch_dot": (Example(CUBE, floats(2, 4, 3), (2, 1)), Example(floats(2, 4), floats(2, 4), 1)),
        "Functional.addmv": Example(floats(3), X, floats(4), beta=0.5, alpha=2.0),
        "Functional.addr": Example(X, floats(3), floats(4), beta=0.5, alpha=2.0),
        "Functional.pinv": Example(floats(4, 3)),
        "Functional.matrix_solve": Example(regular(3, 3), floats(3, 2), True),
        "Functional.cholesky_solve": Example(floats(3, 2), given([[2.0, 0.5, 0.1], [0, 1.5, 0.3], [0, 0, 1.2]]), True),
        "Functional.qr": Example(floats(4, 4)),
        "Functional.matrix_diag": (Example(floats(2, 3), 1), Example(floats(3), 0, 3, 5, 1.5)),
        "Functional.matrix_set_diag": Example(CUBE, floats(2, 2), -1),
        "Functional.lstsq": Example(floats(3, 5), floats(3, 2)),
        # convolution, pooling
        "Functional.conv1d": (
            Example(floats(2, 4, 9), floats(6, 4, 3), None, 2, "same"),
            Example(floats(2, 4, 9), floats(6, 4, 3), floats(6), 1, "pad", 2, 2),
        ),
        "Functional.conv2d": (
            Example(IMAGE, floats(6, 4, 2, 3), None, (2, 3), "same", 0, (1, 2)),
            Example(IMAGE, floats(4, 1, 3, 3), None, 1, "same", 0, 1, 4),
        ),
        "Functional.conv3d": (
            Example(floats(1, 2, 5, 5, 5), floats(3, 2, 3, 3, 3), floats(3), 2, "pad", 1),
            Example(floats(1, 2, 5, 5, 5), floats(3, 2, 2, 3, 3), None, 2, "same"),
        ),
        "Functional.conv3d_transpose": Example(
            floats(1, 2, 3, 3, 3), floats(2, 3, 3, 3, 3), "pad", 1, 2, 1, 1, 1
        ),
        "Functional.avg_pool1d": (Example(floats(2, 4, 9), 4, 3, 1, True, False), Example(floats(2, 4, 9), 3)),
        "Functional.avg_pool2d": (
            Example(IMAGE, (2, 3), (2, 1), (1, 1, 0, 0)), Example(IMAGE, 3, 2, 1, True, True),
            Example(IMAGE, 3, 2, 0, False, True, 5), Example(IMAGE, 2),
        ),
        "Functional.avg_pool3d": Example(floats(1, 2, 5, 5, 5), 3, 2, 1, True, False),
        "Functional.max_pool2d": (
            Example(IMAGE, (2, 3), (2, 1), (1, 1)), Example(IMAGE, 3, 2, 1, 2), Example(IMAGE, 3, 2, 0, 1, True),
            Example(IMAGE, 2, 2, ceil_mode=True), Example(IMAGE, 2),
        ),
        "Functional.max_pool3d": Example(floats(1, 2, 5, 5, 5), 3, 2, 1, 1, True, True),
        "Functional.lp_pool1d": Example(positive(2, 4, 9), 3, 2, 2, True),
        "Functional.lp_pool2d": Example(positive(2, 4, 7, 7), 1, (2, 3), (2, 2)),
        "Functional.adaptive_avg_pool2d Functional.adaptive_max_pool2d": Example(IMAGE, (None, 3)),
        "Functional.interpolate": (
            Example(IMAGE, None, 2.0), Example(IMAGE, (9, 5), mode="nearest-exact"),
            Example(floats(1, 2, 4, 4, 4), (5, 6, 3), None, "trilinear", False),
            Example(floats(2, 4, 9), 5, None, "area"),
        ),
        "Functional.unfold": Example(IMAGE, (2, 3), 2, 1, 2),
        "Functional.fold": Example(floats(2, 4, 6, 12), given([7, 7], "int32"), [2, 3], 2, 1, 2),
        "Functional.pixel_shuffle": Example(floats(2, 1, 9, 2, 2), 3),
        "Functional.batch_norm": Example(
            floats(5, 4), floats(4), positive(4), floats(4), floats(4), False, 0.1, 1e-3
        ),
        "Functional.group_norm": Example(floats(2, 6, 3), 3, floats(6), floats(6), 1e-3),
        "Functional.lrn": Example(floats(2, 6, 3, 3), 1, 2.0, 0.5, 0.75),
        # activations and losses
        "Functional.leaky_relu": Example(X, 0.05),
        "Functional.elu Functional.celu": Example(X),
        "Functional.gelu": Example(X, "tanh"),
        "Functional.softplus": (Example(X, 2, 1), Example(floats(3, 4, low=-30, high=30))),
        "Functional.hardshrink Functional.softshrink Functional.soft_shrink": Example(X, 1.2),
        "Functional.hardtanh": Example(X, -0.3, 0.8),
        "Functional.glu": Example(floats(4, 3), 0),
        "Functional.softmax Functional.softmin Functional.log_softmax": (Example(CUBE, 1), Example(CUBE)),
        "Functional.prelu": (Example(CUBE, given([0.3])), Example(floats(5), given([0.3]))),
        "Functional.mse_loss Functional.l1_loss Functional.smooth_l1_loss Functional.huber_loss "
        "Functional.soft_margin_loss Functional.hinge_embedding_loss Functional.binary_cross_entropy_with_logits "
        "Functional.multilabel_soft_margin_loss": (
            Example(X, SIGNS, reduction="sum"), Example(X, SIGNS, reduction="none"),
        ),
        "Functional.smooth_l1_loss": Example(X, SIGNS, 0.5, "mean"),
        "Functional.huber_loss": Example(X, SIGNS, "mean", 0.5),
        "Functional.kl_div": Example(log_distribution(3, 4), distribution(3, 4), "batchmean"),
        "Functional.hinge_embedding_loss": Example(X, SIGNS, 0.5),
        "Functional.binary_cross_entropy": (
            Example(share(3, 4), share(3, 4), positive(3, 4), "sum"), Example(share(3, 4), share(3, 4), None, "none"),
        ),
        "Functional.binary_cross_entropy_with_logits": (
            Example(X, share(3, 4), None, positive(4), "none"), Example(X, share(3, 4), positive(4), None),
        ),
        "Functional.cross_entropy": (
            Example(floats(2, 5, 3), integers(2, 3, high=5, dtype="int32"), positive(5), 2),
            Example(floats(4, 5), integers(4, high=5, dtype="int32"), positive(5), -100, "mean", 0.1),
            Example(floats(4, 5), distribution(4, 5), positive(5), -100, "none", 0.1),
            Example(floats(2, 5, 3), integers(2, 3, high=5, dtype="int32"), None, 1, "none"),
            Example(floats(5), given(2, "int32")),
        ),
        "Functional.nll_loss": (
            Example(log_distribution(2, 5, 3, axis=1), integers(2, 3, high=5, dtype="int32"), positive(5), 2),
            Example(log_distribution(4, 5), integers(4, high=5, dtype="int32"), None, 1, "none", 0.2),
            Example(log_distribution(4, 5), integers(4, high=5, dtype="int32"), positive(5), -100, "sum", 0.2),
        ),
        "Functional.multi_margin_loss": (
            Example(floats(4, 5), integers(4, high=5), 2),
            Example(floats(4, 5), integers(4, high=5), 1, 2, positive(5)),
        ),
        "Functional.margin_ranking_loss": Example(floats(4), floats(4), given([1, -1, 1, -1]), reduction="none"),
        "Functional.cosine_embedding_loss": Example(
            floats(4, 5), floats(4, 5), given([1, -1, 1, -1], "int32"), 0.2, "none"
        ),
        "Functional.gaussian_nll_loss": (
            Example(X, floats(3, 4), positive(3, 4), True),
            Example(X, floats(3, 4), positive(3, 4), False, 1e-6, "sum"),
        ),
        "Functional.ctc_loss": Example(
            log_distribution(6, 2, 5), integers(2, 3, low=1, high=5, dtype="int32"),
            given([6, 5], "int32"), given([3, 2], "int32"), 0, "none",
        ),
    }
)  # fmt: skip
