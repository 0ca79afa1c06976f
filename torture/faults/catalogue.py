"""The nets, and the faults planted in each: what is changed, and where compare has to find it.

Code outside of recorded modules has no entry of its own. A fault in the code of a Cell is found where that Cell is
named, or the input of the module (``takes``) that is the first to take the wrong value in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torture.faults.edits import Attribute, Edit, Half, Layer, Loss, Weight


@dataclass(frozen=True)
class Fault:
    """``takes``: paths of modules whose input is the first to be wrong, where the edit is in a Cell's own code.

    ``unseen``: in these modes what they take in does not show it (statistics of values that only moved; a gradient cut
    off), and the error begins in them.
    """

    name: str
    edit: Edit
    takes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def node(self) -> str:
        """The path of the planted module; "" is the net itself."""
        return self.edit.cell


@dataclass(frozen=True)
class Net:
    """``kind`` of input and number of classes as ``values.batch`` wants them.

    ``random``: holds what no two frameworks compute alike, which is nobody's fault.
    """

    kind: str
    classes: int
    faults: tuple[Fault, ...]
    compiled: bool = False
    random: bool = False


def layer_norm(cell: str, width: int) -> Fault:
    return Fault("eps", Layer(cell, "LayerNorm", ((width,),), (("epsilon", 1e-3),)))


def gelu(cell: str, tanh: bool = True) -> Fault:
    return Fault("gelu", Layer(cell, "GELU", (tanh,)))


def attribute(fault: str, cell: str, name: str, value: Any, *takes: str) -> Fault:
    return Fault(fault, Attribute(cell, name, value), takes)


def order(name: str, value: bool, *takes: str) -> Fault:
    """Values of the right kind in the wrong order, in the net's own code."""
    return Fault("order", Attribute("", name, value), takes, unseen=("statistics",))


def detached(cell: str, *takes: str) -> Fault:
    """Forward is right; backward ends where it should go on."""
    return Fault("detached", Attribute(cell, "detached", True), takes, unseen=("statistics", "tensor"))


def loss(name: str, value: Any, *takes: str) -> Fault:
    return Fault("loss", Loss(((name, value),)), takes)


def convolution(cell: str, channels: int, out: int, **options: Any) -> Fault:
    """Three wide and stride 2 on an even size: ``same`` pads (0, 1) where the twin pads (1, 1); shapes are equal."""
    options = {"stride": 2, "pad_mode": "same", **options}
    return Fault("padding", Layer(cell, "Conv2d", (channels, out, 3), tuple(options.items())))


def transposed(name: str, *axes: int) -> Fault:
    return Fault("transposed", Weight(name, "transposed", (axes[0], axes[1]) if axes else (0, 1)))


def half(cell: str) -> Fault:
    return Fault("half", Half(cell))


def unloaded(name: str) -> Fault:
    return Fault("unloaded", Weight(name, "unloaded"))


_TAGGER = (
    layer_norm("norm", 16),
    gelu("act"),
    attribute("axis", "pool", "axis", 0),
    attribute("mask", "pool", "masked", False),
    attribute("residual", "", "residual", False, "norm"),
    transposed("proj.weight"),
    half("proj"),
)

_ENCODER = (
    layer_norm("layers.1.norm1", 32),
    gelu("layers.1.act"),
    attribute("scale", "layers.1.attention", "scale", 1.0, "layers.1.attention.out"),
    attribute("axis", "layers.1.attention", "axis", -2, "layers.1.attention.out"),
    transposed("layers.1.attention.v.weight"),
    half("layers.1.up"),
    unloaded("layers.1.down.bias"),
)

_DETACHED = detached("layers.1.attention", "layers.1.attention.k")

_PADDED = (attribute("mask", "layers.1.attention", "masked", False, "layers.1.attention.out"),)

_MLP = (
    layer_norm("blocks.1.norm", 32),
    gelu("blocks.1.act"),
    attribute("scale", "blocks.1", "scale", 1.0),
    attribute("residual", "blocks.1", "residual", False),
    attribute("axis", "blocks.1", "axis", 0, "blocks.1.fc2"),
    transposed("blocks.1.fc1.weight"),
    Fault("half", Half("blocks.1.fc2", cast_back=False)),
    attribute("bias", "blocks.1.fc2", "has_bias", False),
    detached("blocks.1", "blocks.1.gate"),
    loss("reduction", "sum", "head"),
    unloaded("blocks.1.norm.weight"),
)

NETS: dict[str, Net] = {
    "mlp": Net("vector", 10, _MLP),
    "dropout_mlp": Net(
        "vector", 10, tuple(fault for fault in _MLP if fault.name not in ("detached", "loss")), random=True
    ),
    "lenet": Net(
        "digit",
        10,
        (
            gelu("act"),
            attribute("scale", "", "deviation", 1.0, "conv1"),
            convolution("conv2", 6, 16, has_bias=True),
            attribute("pooling", "pool", "average", True),
            order("channels_last", True, "fc1"),
            attribute("dropped", "", "activated", False, "pool"),
            transposed("fc2.weight"),
            half("fc1"),
            attribute("bias", "conv1", "has_bias", False),
            unloaded("conv2.bias"),
        ),
    ),
    "encoder": Net(
        "padded_tokens",
        10,
        (*_ENCODER, *_PADDED, _DETACHED, attribute("residual", "layers.1", "residual", False, "layers.1.norm2")),
    ),
    "gpt": Net(
        "tokens",
        50,
        (
            layer_norm("h.1.ln_1", 32),
            gelu("h.1.act", tanh=False),
            attribute("scale", "h.1.attn", "scale", 1.0, "h.1.attn.c_proj"),
            attribute("axis", "h.1.attn", "axis", -2, "h.1.attn.c_proj"),
            attribute("mask", "h.1.attn", "ahead", 1, "h.1.attn.c_proj"),
            attribute("order", "h.1.attn", "keys_first", True, "h.1.attn.c_proj"),
            attribute("residual", "h.1", "residual", False),
            transposed("h.1.attn.c_proj.weight"),
            half("h.1.c_fc"),
            loss("label_smoothing", 0.1, "lm_head"),
            unloaded("wpe.weight"),
        ),
    ),
    "resnet": Net(
        "thumb",
        10,
        (
            Fault("eps", Layer("blocks.1.bn1", "BatchNorm2d", (16,), (("eps", 1e-3),))),
            attribute("scale", "blocks.1", "scale", 1.0, "blocks.1.relu2"),
            attribute("residual", "blocks.2", "residual", False, "blocks.2.relu2"),
            convolution("blocks.1.conv1", 8, 16),
            attribute("statistics", "blocks.1.bn1", "use_batch_statistics", False),
            attribute("pooling", "", "maximum", True, "head"),
            detached("blocks.2"),
            transposed("blocks.2.conv2.weight"),
            half("head"),
            unloaded("blocks.1.bn2.weight"),
        ),
    ),
    "unet": Net(
        "pixels",
        4,
        (
            Fault("eps", Layer("dec.norm1", "GroupNorm", (4, 8), (("eps", 1e-3),))),
            Fault("activation", Layer("enc2.act1", "LeakyReLU", (0.2,))),
            attribute("scale", "", "scale", 2.0, "dec", "dec.conv1"),
            attribute("residual", "", "skip", False, "dec", "dec.conv1"),
            order("swapped", True, "dec", "dec.conv1"),
            convolution("down", 8, 8, has_bias=True),
            transposed("enc2.conv2.weight", 2, 3),
            half("out"),
            attribute("bias", "enc2.conv1", "has_bias", False),
            unloaded("up.bias"),
        ),
    ),
    "lstm": Net(
        "padded_tokens",
        10,
        (
            *_TAGGER,
            attribute("scale", "", "scale", 1.0, "lstm"),
            Fault("gates", Weight("lstm.weight_ih_l0", "gates"), ("lstm.rnn",), unseen=("statistics",)),
            unloaded("lstm.bias_hh_l1"),
        ),
    ),
    "gru": Net(
        "padded_series",
        10,
        (
            *_TAGGER,
            attribute("state", "", "state", 1.0, "gru"),
            Fault("gates", Weight("gru.weight_hh_l0", "gates"), ("gru.rnn",), unseen=("statistics",)),
            unloaded("gru.weight_ih_l0_reverse"),
        ),
    ),
    "llama": Net(
        "tokens",
        50,
        (
            attribute("eps", "layers.1.input_norm", "eps", 1e-3),
            attribute("scale", "layers.1.attention", "scale", 1.0, "layers.1.attention.o"),
            attribute("axis", "layers.1.attention", "axis", -2, "layers.1.attention.o"),
            attribute("mask", "layers.1.attention", "ahead", 1, "layers.1.attention.o"),
            attribute("base", "layers.1.attention", "base", 100.0, "layers.1.attention.o"),
            attribute("rotation", "layers.1.attention", "interleaved", True, "layers.1.attention.o"),
            attribute("groups", "layers.1.attention", "tiled", True, "layers.1.attention.o"),
            attribute("swapped", "layers.1.mlp", "swapped", True, "layers.1.mlp.act"),
            attribute("residual", "layers.1", "residual", False, "layers.1.post_norm"),
            transposed("layers.1.attention.o.weight"),
            half("layers.1.mlp.gate"),
            unloaded("layers.1.input_norm.weight"),
        ),
    ),
    "moe": Net(
        "tokens",
        50,
        (
            layer_norm("layers.1.norm1", 32),
            gelu("layers.1.moe.experts.2.act"),
            attribute("scale", "layers.1.moe", "scale", 2.0),
            attribute("axis", "layers.1.moe", "axis", 0),
            attribute("chosen", "layers.1.moe", "chosen", 1),
            attribute("normalised", "layers.1.moe", "normalised", False),
            attribute("mask", "layers.1.attention", "ahead", 1, "layers.1.attention.out"),
            attribute("residual", "layers.1", "residual", False),
            transposed("layers.1.attention.out.weight"),
            half("layers.1.moe.experts.1.up"),
            unloaded("layers.1.moe.experts.3.down.weight"),
        ),
    ),
    "vit": Net(
        "image",
        10,
        (
            *_ENCODER,
            _DETACHED,
            attribute("residual", "layers.1", "residual", False, "layers.1.norm2"),
            order("columns_first", True, "layers.0", "layers.0.norm1"),
            attribute("pooling", "", "averaged", True, "head"),
            Fault("position", Weight("position", "unloaded"), ("layers.0", "layers.0.norm1")),
        ),
    ),
    "compiled_encoder": Net(
        "padded_tokens",
        10,
        (*_ENCODER, *_PADDED, attribute("residual", "layers.1", "residual", False, "layers.1.norm1")),
        compiled=True,
    ),
}
