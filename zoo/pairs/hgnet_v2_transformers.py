"""HGNet v2, aggregated convolutions with batch norms: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import Classifier, CrossEntropy, SameName


class HGNetV2(SameName, Classifier):
    size = 64
    network = "HGNetV2ForImageClassification"
    optimizer = "sgd"
    learning_rate = 0.05
    settings: ClassVar[dict[str, Any]] = {
        "embedding_size": 16,
        "stem_channels": [3, 8, 16],
        "stage_in_channels": [16, 24],
        "stage_mid_channels": [8, 16],
        "stage_out_channels": [24, 32],
        "stage_num_blocks": [1, 1],
        "stage_downsample": [False, True],
        "stage_light_block": [False, True],
        "stage_kernel_size": [3, 5],
        "stage_numb_of_layers": [3, 3],
        "depths": [1, 1],
        "hidden_sizes": [24, 32],
        "use_learnable_affine_block": True,
        "num_labels": 10,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = HGNetV2()
