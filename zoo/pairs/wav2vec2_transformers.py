"""wav2vec 2.0: convolutions of a wave, then a transformer: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


def _train_norm_and_direction(conv: Any) -> None:
    """Let gradients reach norm and direction; mindone assigns the weight made of them, and they never train."""
    from mindone.utils.weight_norm import _weight_norm

    inner = conv.weight_norm_cell
    del inner._params["weight"]

    def construct(x: Any) -> Any:
        vars(inner)["weight"] = _weight_norm(conv.weight_v, conv.weight_g, conv.dim)
        return inner(x)

    conv.construct = construct


class Wav2Vec2(SameName):
    network = "Wav2Vec2ForSequenceClassification"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "conv_dim": (16, 16, 24),
        "conv_stride": (5, 2, 2),
        "conv_kernel": (10, 3, 2),
        "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4,
        "num_feat_extract_layers": 3,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "feat_proj_dropout": 0.0,
        "final_dropout": 0.0,
        "layerdrop": 0.0,
        "apply_spec_augment": False,
        "classifier_proj_size": 16,
        "num_labels": 5,
    }

    names = (
        (r"pos_conv_embed\.conv\.weight_norm_cell\.bias", "pos_conv_embed.conv.bias"),
        (r"conv\.weight_g$", "conv.parametrizations.weight.original0"),
        (r"conv\.weight_v$", "conv.parametrizations.weight.original1"),
    )

    def target(self) -> Any:
        net = super().target()
        _train_norm_and_direction(net.wav2vec2.encoder.pos_conv_embed.conv)
        return net

    def batch(self, generator: np.random.Generator) -> Batch:
        wave = generator.standard_normal((3, 800)).astype(np.float32)
        return {"wave": wave, "labels": generator.integers(0, 5, 3)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["wave"])[0], batch["labels"])


PAIR = Wav2Vec2()
