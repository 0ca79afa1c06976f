"""What a call computes, as far as judging its error needs to know it, told by its class or function name."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from msprobe_ms.dump.dialects import COLLECTIVE_PREFIXES
from msprobe_ms.dump.names import EntryName


class Kind(Enum):
    """``OTHER``: anything at all, user code included.

    ``LINEAR``, ``NORM``, ``ACTIVATION``  single layers whose error follows from what they take in (see ``propagation``)
    ``CHANNEL_NORM``  normalises each channel by itself, of whose spread the statistics of the whole do not tell
    ``BATCH_NORM``    the same over all rows of a batch, of whose channels each may have few values
    ``SUM``         sums and differences, which may cancel
    ``MEAN``        means, also those of pooling: sums that are divided by the number of their terms
    ``PART``        parts of what it takes in, as they are
    ``PERIODIC``    sines and cosines of angles, of which only the remainder of a turn counts
    ``EXPONENTIAL`` exponentials
    ``STEEP``       powers, roots, logarithms and quotients, which multiply the error of their smallest elements
    ``SOFTMAX``     exponentials as parts of their sum, of which only differences count
    ``COARSE``      layers in which a kernel's approximation may show beyond rounding
    ``RANDOM``      draws numbers: with another seed or generator its results differ by right
    ``COLLECTIVE``  hands on what other ranks put in
    """

    OTHER = "other"
    LINEAR = "linear"
    NORM = "norm"
    CHANNEL_NORM = "channel norm"
    BATCH_NORM = "batch norm"
    ACTIVATION = "activation"
    SUM = "sum"
    MEAN = "mean"
    PART = "part"
    PERIODIC = "periodic"
    EXPONENTIAL = "exponential"
    STEEP = "steep"
    SOFTMAX = "softmax"
    COARSE = "coarse"
    RANDOM = "random"
    COLLECTIVE = "collective"

    __hash__ = object.__hash__  # that of Enum runs in Python, and every call is asked for its kind many times


#: Kinds of which it is known how far error that they take in may set their results apart.
BOUNDED = frozenset(
    {Kind.LINEAR, Kind.NORM, Kind.CHANNEL_NORM, Kind.BATCH_NORM, Kind.ACTIVATION, Kind.SUM, Kind.MEAN, Kind.PART}
    | {Kind.SOFTMAX}
)

#: By name in lower case without underscores: MindSpore's, PyTorch's and what users call theirs (``LlamaRMSNorm``).
_PATTERNS = (
    (Kind.RANDOM, r".*dropout\w*|.*droppath|stochasticdepth|rand\w*|(log|standard|truncated|parameterized)?normal|"
                  r"\w*uniform\w*|\w*bernoulli|multinomial\w*|gumbel\w*|poisson|randomshuffle|shuffle|exponential|"
                  r"geometric|cauchy|rrelu|fractionalmaxpool\w*"),
    (Kind.COLLECTIVE, r"(all|reduce|neighbor)?(reduce|gather|scatter|alltoall|toall)\w*tensor|allreduce\w*|"
                      r"allgather\w*|reducescatter\w*|alltoall\w*|neighborexchange\w*|broadcast|receive|recv|irecv"),
    (Kind.LINEAR, r".*(dense|linear)|conv[123]d|matmul|batchmatmul|bmm|mm|addmm|baddbmm"),
    (Kind.NORM, r".*(layer|rms)norm([123]d)?\w{0,3}"),
    (Kind.CHANNEL_NORM, r".*(group|instance)norm([123]d)?\w{0,3}"),
    (Kind.BATCH_NORM, r".*batchnorm([123]d)?\w{0,5}"),
    (Kind.ACTIVATION, r"(leaky|p)?relu6?|((fast)?gelu|silu)(activation)?|swish|h(ard)?swish|h(ard)?sigmoid|"
                      r"h(ard)?tanh|mish|softplus"),
    (Kind.SUM, r"[ir]?(add|sub)(ext)?|subtract|(reduce)?sum(ext)?|cumsum"),
    (Kind.MEAN, r"(reduce)?mean(ext)?|(adaptive|global)?(avg|average)pool(ing)?([123]d)?(ext)?"),
    (Kind.PART, r"getitem|narrow|(strided)?slice|select|split(tensor|withsize)?|chunk|unbind|unstack"),
    (Kind.PERIODIC, r"sin|cos|.*(timestep|sinusoid|rotary|rope|fourier|positionalencod)\w*"),
    (Kind.EXPONENTIAL, r"exp|expm1|rpow"),
    (Kind.STEEP, r"pow|r?sqrt|reciprocal|inv|log(2|10|1p)?|(real|true)?div(ide)?|truedivide"),
    (Kind.SOFTMAX, r"softmax(2d)?"),
    # MindSpore's tanh on CPU is off by 1e-4 in single spots, by 2e-5 over a saturated tensor; recurrent layers use it.
    (Kind.COARSE, r".*tanh|.*(lstm|gru|rnn)(cell)?\w*"),
)  # fmt: skip
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


def kind_of(parsed: EntryName | None) -> Kind:
    """What the call of an entry computes; ``OTHER`` where its name does not tell."""
    if parsed is None:
        return Kind.OTHER
    return _kind_named(parsed.prefix, parsed.class_name if parsed.is_module else parsed.name, parsed.is_module)


def plain_name(parsed: EntryName | None) -> str:
    """The name of a module's class or of a function, as the patterns of kinds have it."""
    if parsed is None:
        return ""
    return _plain(parsed.class_name if parsed.is_module else parsed.name, parsed.is_module)


def _plain(name: str, is_class: bool) -> str:
    return (name if is_class else name.rpartition(".")[2]).lower().replace("_", "")


@lru_cache(maxsize=4096)
def _kind_named(prefix: str, name: str, is_class: bool) -> Kind:
    """The kind of calls of a function, or of modules of a class, of which there are many."""
    if prefix in COLLECTIVE_PREFIXES:
        return Kind.COLLECTIVE
    plain = _plain(name, is_class)
    return next((kind for kind, pattern in _COMPILED if pattern.fullmatch(plain)), Kind.OTHER)
