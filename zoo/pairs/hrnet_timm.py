"""The features of an HRNet on four scales, without the wide layers of its classifier: mindcv beside timm."""

from typing import Any

from zoo.pair import Classifier, CrossEntropy

WIDTHS = (8, 12, 16, 20)


class HRNet(Classifier):
    size = 64
    rows = 2
    names = ((r"\bdown_sample\b", "downsample"),)

    def _stages(self, kind: str) -> dict[str, Any]:
        stages = {"stage1": {"num_branches": 1, "num_blocks": [1], "num_channels": [64], kind: "BOTTLENECK"}}
        for stage in (2, 3, 4):
            branches = {"num_branches": stage, "num_blocks": [1] * stage, "num_channels": list(WIDTHS[:stage])}
            stages[f"stage{stage}"] = {**branches, kind: "BASIC"}
        return {name: {**stage, "num_modules": 1} for name, stage in stages.items()}

    def golden(self) -> Any:
        from timm.models.hrnet import HighResolutionNet

        stages = {name: {**stage, "fuse_method": "SUM"} for name, stage in self._stages("block_type").items()}
        return HighResolutionNet({"stem_width": 64, **stages}, head="")

    def target(self) -> Any:
        from mindcv.models.hrnet import HRModule, HRNet
        from mindspore import ops

        class Float32Module(HRModule):
            """mindcv rounds what it enlarges to float16."""

            def construct(self, x: Any) -> Any:
                x = [branch(each) for branch, each in zip(self.branches, x, strict=True)]
                fused = []
                for scale, layers in enumerate(self.fuse_layers):
                    total = 0
                    for other, layer in enumerate(layers):
                        each = layer(x[other])
                        if other > scale:
                            each = ops.ResizeNearestNeighbor(x[scale].shape[2:])(each)
                        total = total + each if other else each
                    fused.append(self.relu(total))
                return fused

        class Features(HRNet):
            """All scales, pooled by the loss."""

            def _make_head(self, pre_stage_channels: Any) -> Any:
                return None, None, None

            def construct(self, x: Any) -> Any:
                return self.forward_features(x)

        net = Features(self._stages("block"), num_classes=self.classes)
        del net.classifier
        for _, module in net.cells_and_names():
            if type(module) is HRModule:
                module.__class__ = Float32Module
        return net

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        pooled = [scale.mean((2, 3))[:, : WIDTHS[0]] for scale in net(batch["image"])]
        return cross_entropy(sum(pooled[1:], pooled[0]), batch["labels"] % WIDTHS[0])


PAIR = HRNet()
