"""Examples of convolutions, pooling, resizing and normalisation."""

from __future__ import annotations

from torture.api_sweep.examples import Example, floats, given, integers, positive, table, unit

IMAGE = floats(2, 4, 7, 7)
LINE = floats(2, 4, 9)
VOLUME = floats(1, 2, 5, 5, 5)

EXAMPLES = table(
    {
        "conv1d": (Example(LINE, floats(6, 4, 3), floats(6)), Example(LINE, floats(6, 2, 3), groups=2, stride=2)),
        "conv2d": (
            Example(IMAGE, floats(6, 4, 3, 3), floats(6)),
            Example(IMAGE, floats(6, 2, 3, 3), groups=2, stride=2, dilation=2),
        ),
        "Functional.conv2d": (
            Example(IMAGE, floats(6, 4, 3, 3), floats(6)),
            Example(IMAGE, floats(6, 4, 3, 3), None, 2, "same"),
            Example(IMAGE, floats(6, 2, 3, 3), None, 2, "pad", 1, 2, 2),
            Example(IMAGE, floats(6, 4, 3, 3), None, 1, "pad", (1, 2)),
        ),
        "torch.Functional.conv2d": (Example(IMAGE, floats(6, 4, 3, 3), floats(6)),),
        "conv3d": Example(VOLUME, floats(3, 2, 3, 3, 3)),
        "conv3d_transpose conv_transpose3d": Example(VOLUME, floats(2, 3, 3, 3, 3)),
        "conv_transpose1d": Example(LINE, floats(4, 3, 3)),
        "conv_transpose2d": (Example(IMAGE, floats(4, 3, 3, 3), floats(3)), Example(IMAGE, floats(4, 3, 3, 3), stride=2)),
        "conv_tbc": Example(floats(5, 2, 4), floats(3, 4, 6), floats(6)),
        "avg_pool1d": (Example(LINE, 3, 2), Example(LINE, 3, 2, 1)),
        "avg_pool2d": (Example(IMAGE, 3, 2), Example(IMAGE, 3, 2, 1, False, False)),
        "avg_pool3d": Example(VOLUME, 2, 2),
        "max_pool1d max_pool1d_with_indices": Example(LINE, 3, 2),
        "max_pool2d": (Example(IMAGE, 3, 2), Example(IMAGE, 3, 2, 1)),
        "max_pool2d_with_indices": Example(IMAGE, 3, 2),
        "max_pool3d max_pool3d_with_indices": Example(VOLUME, 2, 2),
        "max_unpool1d": Example(floats(1, 2, 3), given([[[0, 3, 4], [1, 2, 5]]], "int64"), 2),
        "max_unpool2d": Example(floats(1, 1, 2, 2), given([[[[0, 3], [9, 15]]]], "int64"), 2),
        "max_unpool3d": Example(floats(1, 1, 1, 1, 2), given([[[[[0, 3]]]]], "int64"), 2),
        "lp_pool1d": Example(positive(2, 4, 8), 2, 3),
        "lp_pool2d": Example(positive(2, 4, 7, 7), 2, 3),
        "lp_pool3d": Example(positive(1, 2, 5, 5, 5), 2, 2),
        "adaptive_avg_pool1d adaptive_max_pool1d adaptive_max_pool1d_with_indices": Example(floats(2, 4, 8), 4),
        "torch.Torch.adaptive_max_pool1d": Example(floats(2, 4, 8), 4),
        "adaptive_avg_pool2d adaptive_max_pool2d adaptive_avg_pool2d_ext adaptive_max_pool2d_with_indices": (
            Example(IMAGE, (3, 4)), Example(IMAGE, 3),
        ),
        "adaptive_avg_pool3d adaptive_max_pool3d adaptive_avg_pool3d_ext adaptive_max_pool3d_with_indices": Example(
            VOLUME, (2, 3, 2)
        ),
        "interpolate": (
            Example(IMAGE, (9, 5)), Example(IMAGE, (9, 5), None, "bilinear", True),
            Example(IMAGE, (9, 5), None, "bilinear", False), Example(IMAGE, (9, 5), None, "bicubic", False),
            Example(LINE, 5, None, "linear", False), Example(IMAGE, (3, 3), None, "area"),
        ),
        "MintFunctional.interpolate": (Example(IMAGE, (9, 5)), Example(IMAGE, (9, 5), None, "bilinear", True)),
        "upsample": (Example(IMAGE, (9, 5)), Example(IMAGE, (9, 5), None, "bilinear", True)),
        "upsample_bilinear upsample_nearest": Example(IMAGE, (9, 5)),
        "grid_sample": (
            Example(IMAGE, unit(2, 5, 6, 2)), Example(IMAGE, floats(2, 5, 6, 2), "nearest", "border", True),
            Example(IMAGE, floats(2, 5, 6, 2), "bilinear", "reflection", True),
        ),
        "affine_grid": (Example(floats(2, 2, 3), (2, 4, 5, 6)), Example(floats(2, 2, 3), (2, 4, 5, 6), True)),
        "unfold": (Example(IMAGE, 3), Example(IMAGE, (3, 2), 1, 1, 2)),
        "torch.Tensor.unfold": Example(IMAGE, 2, 3, 2),
        "Functional.fold Tensor.fold": Example(floats(2, 4, 9, 25), given([7, 7], "int32"), [3, 3]),
        "fold": Example(floats(2, 36, 25), (7, 7), (3, 3)),
        "col2im": Example(
            floats(2, 4, 9, 25), given([7, 7], "int32"), [3, 3], [1, 1], [0, 0], [1, 1]
        ),
        "lrn": Example(floats(2, 6, 3, 3), 2),
        "local_response_norm": Example(floats(2, 6, 3, 3), 3),
        # normalisation
        "batch_norm": (
            Example(IMAGE, floats(4), positive(4), floats(4), floats(4)),
            Example(IMAGE, floats(4), positive(4), floats(4), floats(4), True),
        ),
        "torch.Torch.batch_norm": Example(IMAGE, floats(4), floats(4), floats(4), positive(4), False, 0.1, 1e-5, False),
        "layer_norm": (Example(floats(3, 4, 5), (5,), floats(5), floats(5)), Example(floats(3, 4, 5), (4, 5))),
        "Functional.layer_norm": Example(floats(3, 4, 5), (5,), floats(5), floats(5)),
        "group_norm": (Example(IMAGE, 2, floats(4), floats(4)), Example(IMAGE, 2)),
        "torch.Torch.instance_norm": Example(
            IMAGE, floats(4), floats(4), floats(4), positive(4), True, 0.1, 1e-5, False
        ),
        "instance_norm": Example(IMAGE),
        "rms_norm": Example(floats(3, 5), floats(5)),
        "torch.Torch.rms_norm torch.Functional.rms_norm": Example(floats(3, 5), (5,), floats(5)),
        "embedding_bag": Example(integers(2, 3, high=4), floats(4, 3)),
        "torch.Torch.embedding_bag": Example(floats(4, 3), integers(6, high=4), given([0, 3], "int64")),
    }
)  # fmt: skip
