"""Record a small transformer in MindSpore, compare it with the same model in PyTorch, and print the verdict.

This is done twice: once with the correct model, once with a fault planted in one layer, which compare has to find.

    make demo        # or: python samples/demo.py
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from net_mindspore import Reverser, load

from msprobe_ms import PrecisionDebugger
from msprobe_ms.support.translation import tr, translated

HERE = Path(__file__).resolve().parent
OUTPUT = HERE.parent / "demo_output"


def brief(path: Path) -> str:
    """Return a path from the current folder, where it lies below it; else the path itself."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def say(message: str) -> None:
    """Print a message in the language of the user."""
    print(translated(message), flush=True)


def batches(count: int) -> list[tuple[Tensor, Tensor]]:
    """Return sequences and the sequences expected of them, the same as in net_pytorch.py."""
    generator = np.random.default_rng(5)
    sequences = [generator.integers(0, 32, (16, 12)).astype(np.int32) for _ in range(count)]
    return [(Tensor(sequence), Tensor(sequence[:, ::-1].copy())) for sequence in sequences]


def train(dump_path: Path, faulty_layer: int | None) -> None:
    net = load(Reverser(faulty_layer=faulty_layer), dict(np.load(HERE / "first_weights.npz")))
    net.set_train()
    cross_entropy = nn.CrossEntropyLoss()
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.1)

    def forward(ids: Tensor, expected: Tensor) -> Tensor:
        return cross_entropy(net(ids).reshape(-1, 32), expected.reshape(-1))

    training_step = ms.value_and_grad(forward, None, net.trainable_params())

    debugger = PrecisionDebugger(task="statistics", level="L0", dump_path=brief(dump_path), step=[0])
    for ids, expected in batches(3):
        debugger.start(net)
        loss, gradients = training_step(ids, expected)
        debugger.stop()
        optimizer(gradients)
        debugger.step()
        print(f"  loss {float(loss):.6f}", flush=True)


def compare(dump_path: Path, report_path: Path) -> None:
    arguments = [
        "compare", "-tp", brief(dump_path / "step0"), "-gp", brief(HERE / "golden" / "step0"),
        "-lm", brief(HERE / "layer_mapping.yaml"), "-o", brief(report_path),
    ]  # fmt: skip
    command = shlex.join(["msprobe", *arguments])
    say(tr("compared with the PyTorch dump in samples/golden: {command}", command=command))
    subprocess.run([sys.executable, "-m", "msprobe_ms", *arguments], check=True)


def main() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    for title, name, faulty_layer in (
        (tr("The correct network"), "good", None),
        (tr("The same network with a fault: layers.1.norm1 has epsilon 1e-2 instead of 1e-5"), "faulty", 1),
    ):
        say(tr("\n{title}: training 3 steps in MindSpore, recording step 0", title=title))
        train(OUTPUT / name, faulty_layer)
        compare(OUTPUT / name, OUTPUT / f"{name}_report")
    (page,) = (OUTPUT / "faulty_report").glob("*.html")
    say(tr("\nopen this page in a browser: {page}", page=brief(page)))


if __name__ == "__main__":
    main()
