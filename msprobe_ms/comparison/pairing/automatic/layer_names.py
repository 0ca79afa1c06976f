"""Tell the kind of a layer by its class: ``Dense`` and ``ColumnParallelLinear`` are both linear layers.

Which classes are one layer in the two frameworks ``operations`` says; here is which layers do the same kind of work, so
that one may stand where the other should. Of any class that neither knows nothing is assumed.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msprobe_ms.comparison.pairing.operations import layer_kind

#: Family → layers, in lower case; names of one layer that ``operations`` does not tell stand in one text.
_FAMILIES: dict[str, tuple[str, ...]] = {
    "linear": ("linear", "bilinear"),
    "convolution": ("conv1d", "conv2d", "conv3d", "convtranspose1d", "convtranspose2d", "convtranspose3d"),
    "embedding": ("embedding",),
    "normalization": (
        "layernorm", "rmsnorm", "groupnorm", "batchnorm1d", "batchnorm2d", "batchnorm3d", "instancenorm1d",
        "instancenorm2d", "instancenorm3d", "syncbatchnorm",
    ),
    "activation": (
        "relu", "relu6", "gelu fastgelu quickgelu newgelu gelutanh", "silu", "sigmoid", "tanh", "softmax",
        "logsoftmax", "leakyrelu", "elu", "celu", "selu", "prelu", "rrelu", "mish", "softplus", "softsign",
        "logsigmoid", "hardswish", "hardsigmoid", "hardtanh", "hardshrink", "softshrink", "softmin", "threshold", "glu",
    ),
    "pooling": (
        "maxpool1d", "maxpool2d", "maxpool3d", "avgpool1d", "avgpool2d", "avgpool3d", "adaptiveavgpool1d",
        "adaptiveavgpool2d", "adaptiveavgpool3d", "adaptivemaxpool1d", "adaptivemaxpool2d", "adaptivemaxpool3d",
    ),
    "dropout": ("dropout", "dropout1d", "dropout2d", "dropout3d", "droppath stochasticdepth", "identity"),
    "recurrent": ("lstm", "gru", "rnn"),
    "recurrent cell": ("lstmcell", "grucell", "rnncell"),
    "attention": ("multiheadattention",),
    "reshape": ("flatten", "unflatten", "unfold", "fold", "pixelshuffle", "pixelunshuffle", "channelshuffle"),
    "upsample": ("upsample resizebilinear",),
    "loss": (
        "crossentropyloss crossentropy", "mseloss", "l1loss", "nllloss", "bceloss", "bcewithlogitsloss", "smoothl1loss",
        "huberloss", "kldivloss",
    ),
}  # fmt: skip

_KNOWN: dict[str, tuple[str, str]] = {
    name: (family, names.split()[0])
    for family, layers in _FAMILIES.items()
    for names in layers
    for name in names.split()
}
#: Names looked for inside of longer ones; short ones (``elu``) stand in words that mean something else.
_INSIDE = sorted((name for name in _KNOWN if len(name) >= 4), key=len, reverse=True)


@lru_cache(maxsize=4096)
def kind_of(class_name: str, exact: bool = False) -> tuple[str, str] | None:
    """Return (family, layer) of a class, by its name or, unless ``exact``, by the longest known name inside of it.

    >>> kind_of("Dense"), kind_of("ColumnParallelLinear"), kind_of("Block")
    (('linear', 'linear'), ('linear', 'linear'), None)
    """
    text = layer_kind(class_name.replace("_", ""))
    if text in _KNOWN or exact:
        return _KNOWN.get(text)
    return next((_KNOWN[name] for name in _INSIDE if name in text), None)


@lru_cache(maxsize=65536)
def words(name: str) -> frozenset[str]:
    """Split a name into its words, in lower case and without numbers.

    >>> sorted(words("ParallelSelfAttention")), sorted(words("dense_4h_to_h"))
    (['attention', 'parallel', 'self'], ['dense', 'h', 'to'])
    """
    return frozenset(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name))


def likeness(name: str, other: str) -> float:
    """Return how alike two names are, 0…1: equal words count whole, abbreviations (``attn``, ``q``) half."""
    if name == other:
        return 1.0
    ours, theirs = words(name), words(other)
    if not ours or not theirs:
        return 0.0
    common = ours & theirs
    short = sum(any(_abbreviates(word, one) for one in theirs - common) for word in ours - common)
    return (len(common) + 0.7 * short) / max(len(ours), len(theirs))


def _abbreviates(word: str, other: str) -> bool:
    """One is the beginning of the other, or its letters in their order from the first: ``attn`` of ``attention``."""
    short, long = sorted((word, other), key=len)
    if short[0] != long[0] or len(short) == len(long):
        return False
    letters = iter(long)
    return all(letter in letters for letter in short)
