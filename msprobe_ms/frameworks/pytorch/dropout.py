"""Switch PyTorch's dropout off, and back on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

import torch
import torch.nn.functional

from msprobe_ms.frameworks.dropout import switch

#: What modules and functions of ``torch.nn`` end in; the probability is their second argument.
_DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def set_dropout(active: bool) -> None:
    """Give every dropout the probability 0, in modules made before and after alike, or its own again.

    Attention and recurrent layers included. A function of C++ that a script imported by name before
    (``from torch.nn.functional import scaled_dot_product_attention``) keeps its dropout, and so does what was compiled.
    """
    places = ((holder, name, partial(_replacement, without)) for holder, name, without in _dropouts())
    switch(places, active=active)


#: Takes positional and keyword arguments of a call and changes them so that nothing is dropped.
_Without = Callable[[list[Any], dict[str, Any]], None]


def _dropouts() -> Iterator[tuple[Any, str, _Without]]:
    probability = partial(_set, 1, "p", 0.0)
    for holder in (torch._VF, torch):
        for name in _DROPOUTS:
            yield holder, name, probability
            yield holder, f"{name}_", probability
        yield holder, "native_dropout", partial(_set, 2, "train", False)  # at probability 0 it draws all the same
        for name in _RECURRENT:
            yield holder, name, _zero_recurrent
    yield torch.nn.functional, "scaled_dot_product_attention", partial(_set, 4, "dropout_p", 0.0)


def _set(position: int, keyword: str, value: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    if len(args) > position:
        args[position] = value
    elif keyword in kwargs:
        kwargs[keyword] = value


def _zero_recurrent(args: list[Any], kwargs: dict[str, Any]) -> None:
    """Sequences that are packed come with the sizes of their batches, before the rest."""
    _set(5 if len(args) > 3 and isinstance(args[3], bool) else 6, "dropout", 0.0, args, kwargs)


def _replacement(without: _Without, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        positional = list(args)
        without(positional, kwargs)
        return original(*positional, **kwargs)

    return replacement
