"""A CRNN of mindocr, convolutions and an LSTM in both directions, beside one of PyTorch's modules in a row."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from zoo.pair import Batch, CrossEntropy, Pair

#: Channels in, channels out, batch normalisation, and the pooling after it; as mindocr has them, an eighth as wide.
_CONVS = (
    (3, 8, False, (2, 2)),
    (8, 16, False, (2, 2)),
    (16, 32, True, None),
    (32, 32, False, (2, 1)),
    (32, 64, True, None),
    (64, 64, False, (2, 1)),
    (64, 64, True, None),
)


def _module(name: str) -> ModuleType:
    """A module of mindocr, without the packages above it, which import what MindSpore 2.10 no longer has."""
    parts = ("mindocr", "mindocr.models", f"mindocr.models.{name.partition('.')[0]}")
    for package in (part for part in parts if part not in sys.modules):
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(Path(folder, *package.split("."))) for folder in sys.path]
    return import_module(f"mindocr.models.{name}")


class CRNN(Pair):
    learning_rate = 0.02
    classes = 11
    names = (
        (r"^backbone\.conv(\d)\.conv\.", r"features.conv\1."),
        (r"^backbone\.conv(\d)\.bn\.", r"features.norm\1."),
        (r"^neck\.seq_encoder\.", "reader."),
        (r"^head\.dense1\.", "head."),
    )

    def golden(self) -> Any:
        from torch import nn

        features = nn.Sequential()
        for index, (inputs, outputs, norm, pool) in enumerate(_CONVS, 1):
            last = index == len(_CONVS)
            features.add_module(f"conv{index}", nn.Conv2d(inputs, outputs, 2 if last else 3, padding=0 if last else 1))
            if norm:
                features.add_module(f"norm{index}", nn.BatchNorm2d(outputs, eps=1e-4))
            features.add_module(f"relu{index}", nn.ReLU())
            if pool:
                features.add_module(f"pool{index}", nn.MaxPool2d(pool))

        class Reader(nn.Module):
            def __init__(self, classes: int) -> None:
                super().__init__()
                self.features = features
                self.reader = nn.LSTM(64, 24, num_layers=2, bidirectional=True)
                self.head = nn.Linear(48, classes)

            def forward(self, image: Any) -> Any:
                columns = self.features(image).squeeze(2).permute(2, 0, 1)
                return self.head(self.reader(columns)[0])

        return Reader(self.classes)

    def target(self) -> Any:
        import mindspore as ms
        from mindspore import nn

        rec_vgg, rnn, rec_ctc_head = (
            _module(name) for name in ("backbones.rec_vgg", "necks.rnn", "heads.rec_ctc_head")
        )
        wide = rec_vgg.Conv

        def narrow(inputs: int, outputs: int, **settings: Any) -> Any:
            rec_vgg.Conv = wide  # its __init__ asks for itself by this name
            conv = wide(inputs if inputs == 3 else inputs // 8, outputs // 8, **settings)
            rec_vgg.Conv = narrow
            return conv

        class Reader(nn.Cell):
            def __init__(self, classes: int) -> None:
                super().__init__()
                self.backbone = rec_vgg.RecVGG()
                self.neck = rnn.RNNEncoder(64, 24)
                self.head = rec_ctc_head.CTCHead(48, classes)
                # mindocr runs the LSTM in float16.
                self.neck.encoder_cast_to_fp16 = False
                self.neck.seq_encoder.to_float(ms.float32)

            def construct(self, image: Any) -> Any:
                return self.head(self.neck(self.backbone(image)))

        rec_vgg.Conv = narrow
        try:
            return Reader(self.classes)
        finally:
            rec_vgg.Conv = wide

    def batch(self, generator: np.random.Generator) -> Batch:
        image = generator.standard_normal((2, 3, 32, 48)).astype(np.float32)
        return {"image": image, "labels": generator.integers(0, self.classes, 11 * 2)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        logits = net(batch["image"])
        return cross_entropy(logits.reshape(-1, self.classes), batch["labels"])


PAIR = CRNN()
