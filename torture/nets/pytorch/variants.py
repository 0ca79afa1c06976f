"""The PyTorch nets under other names and structures, and which module is which: what automatic alignment has to find.

A variant moves the modules of a net about and leaves what it computes alone. The truth comes from the modules
themselves, each of which knows where it was before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from torture.nets.pytorch.module import Module

#: As the nets here name things → as other writers do.
NAMES = {
    "embedding": "word_embeddings", "embed": "embed_tokens", "wte": "token_embedding", "wpe": "position_embedding",
    "layers": "blocks", "blocks": "stages", "h": "decoder_layers", "norm": "final_layernorm", "ln_f": "norm_out",
    "head": "classifier", "lm_head": "output_layer", "norm1": "input_layernorm", "norm2": "post_attention_layernorm",
    "ln_1": "attn_norm", "ln_2": "ffn_norm", "input_norm": "attention_norm", "post_norm": "ffn_norm",
    "attention": "self_attn", "attn": "self_attention", "q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "dense",
    "o": "o_proj", "c_attn": "query_key_value", "c_proj": "dense_out", "c_fc": "dense_h_to_4h", "up": "fc1",
    "down": "fc2", "gate": "gate_proj", "act": "activation", "mlp": "feed_forward", "moe": "block_sparse_moe",
    "router": "gate", "experts": "expert_list", "entry": "in_proj", "fc1": "linear_in", "fc2": "linear_out",
    "fc3": "logits", "conv1": "conv_a", "conv2": "conv_b", "bn1": "batch_norm_a", "bn2": "batch_norm_b",
    "bn": "stem_norm", "stem": "conv1", "shortcut": "downsample", "relu1": "act1", "relu2": "act2", "relu3": "act3",
    "act1": "relu_a", "act2": "relu_b", "pool": "pooler", "score": "attention_score", "proj": "transform",
    "lstm": "encoder_rnn", "gru": "rnn", "enc1": "inc", "enc2": "down1", "dec": "up1", "patch": "patch_embeddings",
}  # fmt: skip

_CLASSES = {
    "Attention": "SelfAttention", "FusedAttention": "CausalSelfAttention", "GroupedAttention": "LlamaAttention",
    "EncoderLayer": "TransformerBlock", "GptBlock": "DecoderLayer", "LlamaLayer": "LlamaDecoderLayer",
    "MoeLayer": "SparseBlock", "Experts": "SparseMoeBlock", "Expert": "FeedForward", "SwiGlu": "LlamaMlp",
    "RMSNorm": "LlamaRMSNorm", "ResidualBlock": "BasicBlock", "DoubleConv": "ConvBlock", "GatedBlock": "GatedMlp",
    "AttentionPool": "WeightedMean", "Pool": "Downsample",
}  # fmt: skip


@dataclass
class Changed:
    """``paths``: each module → its path before; ``parts``: a path before → the modules that now do its work."""

    net: nn.Module
    paths: dict[nn.Module, str]
    parts: dict[str, list[nn.Module]] = field(default_factory=dict)

    def truth(self) -> dict[str, list[str]]:
        """Path before → paths now, of every module that is still there or taken over; wrappers are what they hold."""
        now = {module: path for path, module in self.net.named_modules() if path}
        truth = {self.paths[module]: [path] for module, path in now.items() if self.paths.get(module)}
        if self.paths.get(self.net) == "":
            truth[""] = [""]
        truth.update({path: [now[module] for module in modules] for path, modules in self.parts.items()})
        for path, paths in truth.items():
            truth[path] = [*paths, *(outer for inner in paths for outer in _wrappers(self.net, inner))]
        return dict(sorted(truth.items()))


class Wrapper(Module):
    """Hands everything on to the one module it holds."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *arguments: Any) -> Any:
        return self.inner(*arguments)


def change(net: nn.Module, variant: str) -> Changed:
    """Turn the net into a variant of itself, in place; it computes what it did."""
    changed = Changed(net, {module: path for path, module in net.named_modules()})
    for step in VARIANTS[variant]:
        step(changed)
    return changed


def _wrappers(net: nn.Module, path: str) -> Iterator[str]:
    parent = path.rpartition(".")[0]
    while parent and isinstance(net.get_submodule(parent), Wrapper):
        yield parent
        parent = parent.rpartition(".")[0]


def _own(net: nn.Module) -> list[Module]:
    return [module for module in net.modules() if isinstance(module, Module) and not isinstance(module, Wrapper)]


def _move(owner: Module, names: dict[str, str]) -> None:
    """Rename children of a module, in their order."""
    children = dict(owner._modules)
    owner._modules.clear()
    owner._modules.update({names.get(name, name): child for name, child in children.items()})
    for code, place in owner.moved.items():
        head, dot, rest = place.partition(".")
        owner.moved[code] = names.get(head, head) + dot + rest
    taken = set(owner.moved.values())
    owner.moved.update({old: new for old, new in names.items() if old in children and new not in taken})


def _rename(changed: Changed) -> None:
    for owner in _own(changed.net):
        _move(owner, {name: NAMES[name] for name in owner._modules if name in NAMES})
        if (name := _CLASSES.get(type(owner).__name__)) is not None:
            owner.__class__ = type(name, (type(owner),), {})


def _number(changed: Changed) -> None:
    """Names that tell nothing."""
    for owner in _own(changed.net):
        _move(owner, {name: f"m{number}" for number, name in enumerate(owner._modules)})
        owner.__class__ = type("Block", (type(owner),), {})


def _wrap(changed: Changed) -> None:
    """A level more around what has children; lists of layers move below a module that is never called."""
    for owner in _own(changed.net):
        for name, child in list(owner._modules.items()):
            if isinstance(child, Module) and child._modules:
                owner._modules[name] = Wrapper(child)
    net = changed.net
    lists = [name for name, child in net._modules.items() if isinstance(child, nn.ModuleList)]
    for name in lists:
        holder = Module()
        holder.add_module(name, net._modules.pop(name))
        net.add_module("backbone", holder)
        net.moved[name] = f"backbone.{name}"


def _wrap_net(changed: Changed) -> None:
    changed.net = Wrapper(changed.net)


def _flatten(changed: Changed) -> None:
    """A level less: what an inner module holds belongs to the outer one, which goes on calling the inner one's code."""
    for owner in _own(changed.net):
        for name, child in list(owner._modules.items()):
            if isinstance(child, Module) and child._modules and not isinstance(child, Wrapper):
                place = list(owner._modules)
                del owner._modules[name]
                object.__setattr__(owner, name, child)
                for inner, grandchild in child._modules.items():
                    owner._modules[f"{name}_{inner}"] = grandchild
                _order(owner, sorted(owner._modules, key=lambda each, name=name, place=place: _rank(each, name, place)))


def _rank(child: str, gone: str, before: list[str]) -> int:
    return before.index(child) if child in before else before.index(gone)


def _fuse(changed: Changed) -> None:
    """One projection for queries, keys and values; three where there was one."""
    for owner in _own(changed.net):
        children = owner._modules
        if all(name in children for name in ("q", "k", "v")):
            _join(changed, owner)
        elif "c_attn" in children:
            _part(changed, owner)


def _join(changed: Changed, owner: Module) -> None:
    parts = [owner._modules.pop(name) for name in ("q", "k", "v")]
    joined = _linear([part.weight for part in parts], [part.bias for part in parts])
    owner._modules["qkv"] = joined
    _order(owner, ["qkv", *(name for name in owner._modules if name != "qkv")])
    sizes = [part.out_features for part in parts]
    owner.queries_keys_values = lambda x: torch.split(joined(x), sizes, -1)
    changed.parts.update({changed.paths[part]: [joined] for part in parts})


def _part(changed: Changed, owner: Module) -> None:
    whole = owner._modules.pop("c_attn")
    names = ("query", "key", "value")
    pairs = zip(whole.weight.chunk(3), whole.bias.chunk(3), strict=True)
    parts = [_linear([weight], [bias]) for weight, bias in pairs]
    owner._modules.update(zip(names, parts, strict=True))
    _order(owner, [*names, *(name for name in owner._modules if name not in names)])
    owner.queries_keys_values = lambda x: tuple(part(x) for part in parts)
    changed.parts[changed.paths[whole]] = parts


def _linear(weights: list[Tensor], biases: list[Tensor | None]) -> nn.Linear:
    weight = torch.cat([each.detach() for each in weights])
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=biases[0] is not None)
    linear.weight.data.copy_(weight)
    if biases[0] is not None:
        linear.bias.data.copy_(torch.cat([each.detach() for each in biases if each is not None]))
    return linear


def _reorder(changed: Changed) -> None:
    """Definitions in another order than calls."""
    for owner in _own(changed.net):
        _order(owner, list(owner._modules)[::-1])


def _shift(changed: Changed) -> None:
    """Layers numbered as in a later stage of a pipeline."""
    for module in changed.net.modules():
        if isinstance(module, nn.ModuleList):
            children = list(module._modules.values())
            module._modules.clear()
            module._modules.update({str(number + 4): child for number, child in enumerate(children)})


def _order(owner: nn.Module, names: list[str]) -> None:
    children = {name: owner._modules[name] for name in names}
    owner._modules.clear()
    owner._modules.update(children)


VARIANTS: dict[str, tuple[Callable[[Changed], None], ...]] = {
    "renamed": (_rename,),
    "nameless": (_number,),
    "wrapped": (_wrap, _wrap_net),
    "flattened": (_flatten,),
    "fused": (_fuse,),
    "reordered": (_reorder,),
    "shifted": (_shift,),
    "everything": (_fuse, _reorder, _rename, _shift, _wrap, _wrap_net),
}
