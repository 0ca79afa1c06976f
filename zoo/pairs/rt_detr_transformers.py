"""RT-DETR: a ResNet, an encoder of scales and deformable attention: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class RTDetr(SameName):
    unused = frozenset(
        f"{head}_embed.{layer}.{rest}"
        for layer in range(2)
        for head, parts in (("class", ("",)), ("bbox", ("layers.0.", "layers.1.", "layers.2.")))
        for rest in (part + kind for part in parts for kind in ("weight", "bias"))
    )
    network = "RTDetrForObjectDetection"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "backbone_config": {
            "model_type": "rt_detr_resnet",
            "embedding_size": 8,
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "layer_type": "basic",
            "out_features": ["stage2", "stage3", "stage4"],
        },
        "d_model": 16,
        "encoder_hidden_dim": 16,
        "encoder_in_channels": [16, 24, 32],
        "encoder_ffn_dim": 32,
        "encoder_attention_heads": 4,
        "decoder_ffn_dim": 32,
        "decoder_attention_heads": 4,
        "decoder_layers": 2,
        "num_queries": 12,
        "num_denoising": 0,
        "hidden_expansion": 0.5,
        "num_labels": 5,
        "decoder_in_channels": [16, 16, 16],
    }

    def target(self) -> Any:
        import mindspore as ms
        from mindspore import ops

        net = super().target()
        # mindone trains the frozen norms, their running statistics too.
        for name, parameter in net.parameters_and_names():
            if ".normalization." in name:
                parameter.requires_grad = False
        # Where the original detaches queries and boxes, mindone copies them.
        decoder = net.model.decoder
        construct = decoder.construct

        def stopped(**named: Any) -> Any:
            for name in ("inputs_embeds", "reference_points"):
                named[name] = ops.stop_gradient(named[name])
            copy, ms.Tensor.copy = ms.Tensor.copy, lambda tensor: ops.stop_gradient(tensor)
            try:
                return construct(**named)
            finally:
                ms.Tensor.copy = copy

        decoder.construct = stopped
        return net

    def batch(self, generator: np.random.Generator) -> Batch:
        return {
            "image": generator.standard_normal((2, 3, 64, 64)).astype(np.float32),
            "boxes": generator.random((2, 12, 4)).astype(np.float32),
            "labels": generator.integers(0, 5, 24),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        output = net(batch["image"], return_dict=False)
        return cross_entropy(output[0].reshape(-1, 5), batch["labels"]) + 5 * abs(output[1] - batch["boxes"]).mean()


PAIR = RTDetr()
