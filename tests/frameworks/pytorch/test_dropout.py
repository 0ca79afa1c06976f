"""``seed_all(rm_dropout=True)``: no dropout of PyTorch drops, in modules made before and after, and all give back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from msprobe_ms.pytorch import PrecisionDebugger, seed_all

early_dropout = F.dropout


@pytest.fixture(autouse=True)
def dropout_given_back() -> Iterator[None]:
    yield
    seed_all(1)


def attention(inside: bool) -> Callable[[Tensor], Tensor]:
    layer = nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True)
    return lambda x: layer(x[..., 0], x[..., 0], x[..., 0], need_weights=inside)[0]


def recurrent(kind: type[nn.RNNBase], packed: bool) -> Callable[[Tensor], Tensor]:
    layer = kind(4, 4, num_layers=3, dropout=0.5, batch_first=True)
    if packed:
        return lambda x: layer(pack_padded_sequence(x[..., 0], [3, 3], batch_first=True))[0].data
    return lambda x: layer(x[..., 0])[0]


DROPOUTS: dict[str, Callable[[], Callable[[Tensor], Tensor]]] = {
    "Dropout": lambda: nn.Dropout(0.5),
    "Dropout1d": lambda: nn.Sequential(nn.Flatten(2), nn.Dropout1d(0.5)),
    "Dropout2d": lambda: nn.Dropout2d(0.5),
    "Dropout3d": lambda: nn.Sequential(nn.Unflatten(3, (4, 1)), nn.Dropout3d(0.5)),
    "AlphaDropout": lambda: nn.AlphaDropout(0.5),
    "FeatureAlphaDropout": lambda: nn.FeatureAlphaDropout(0.5),
    "in place": lambda: lambda x: nn.Dropout(0.5, inplace=True)(x.clone()),
    "imported early": lambda: lambda x: early_dropout(x, 0.5, True),
    "keywords": lambda: lambda x: torch.dropout(input=x, p=0.5, train=True),
    "native": lambda: lambda x: torch.native_dropout(x, 0.5, True)[0],
    "attention": lambda: attention(False),
    "attention with weights": lambda: attention(True),
    "lstm": lambda: recurrent(nn.LSTM, False),
    "packed gru": lambda: recurrent(nn.GRU, True),
    "rnn": lambda: recurrent(nn.RNN, False),
}


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_goes_and_comes_back(name: str) -> None:
    x = torch.ones(2, 3, 4, 4).requires_grad_()
    before = DROPOUTS[name]()
    assert not torch.equal(before(x), before(x)), "never unasked"
    seed_all(1, rm_dropout=True)
    seed_all(1, rm_dropout=True)
    state = torch.get_rng_state()
    after = DROPOUTS[name]() if name in ("Dropout", "in place") else before
    for dropout in (before, after):
        assert torch.equal(dropout(x), dropout(x))
    assert torch.equal(torch.get_rng_state(), state), "no random number is drawn"
    before(x).sum().backward()
    assert x.grad is not None
    seed_all(1)
    assert not torch.equal(before(x), before(x)) and not torch.equal(after(x), after(x))


def test_dropout_given_back_leaves_nothing_behind() -> None:
    was = [dict(vars(holder)) for holder in (torch._VF, torch, F)]
    seed_all(1, rm_dropout=True)
    assert [dict(vars(holder)) for holder in (torch._VF, torch, F)] != was
    seed_all(1)
    assert [dict(vars(holder)) for holder in (torch._VF, torch, F)] == was


def test_dropout_is_recorded_as_ever_and_drops_nothing(tmp_path) -> None:
    seed_all(1, rm_dropout=True)
    layer, x = nn.Dropout(0.5), torch.ones(4)
    debugger = PrecisionDebugger(level="mix", dump_path=tmp_path)
    debugger.start(layer)
    assert torch.equal(layer(x), x)
    debugger.stop()
    debugger.step()
    assert "Functional.dropout.0.forward" in next(tmp_path.rglob("dump.json")).read_text()
    seed_all(1)
    assert not torch.equal(torch.cat([layer(x) for _ in range(9)]), torch.ones(36))
