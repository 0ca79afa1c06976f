"""What a pair of implementations says of itself: both networks, its parameters' names, a batch and the loss.

No framework is imported here; a pair imports its two zoos inside ``golden`` and ``target``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from torture.nets.values import canonical
from zoo import variation

Batch = dict[str, np.ndarray]
#: A function of logits and labels, of the framework of the side that asks.
CrossEntropy = Callable[[Any, Any], Any]


class Pair(ABC):
    """One network in PyTorch (``golden``) and in MindSpore (``target``).

    ``names``: regular expressions and replacements that turn the path of a MindSpore parameter into PyTorch's, tried in
    order on the whole path, all that match. ``optimizer``: "sgd" (momentum 0.9) or "adam". ``seed``: of weights and
    batches.
    """

    names: Sequence[tuple[str, str]] = ()
    optimizer = "sgd"
    learning_rate = variation.OPTIMIZERS["sgd"]
    seed = 0
    late = small = False
    #: Names in the golden's ``state_dict`` that the target has no use for.
    unused: frozenset[str] = frozenset()
    #: A regular expression of the target's parameters that the golden computes instead: they keep their values.
    computed = ""
    #: The target's modules whose parameters the golden holds as one, in its order: queries, keys and values.
    joined: Sequence[str] = ()

    @abstractmethod
    def golden(self) -> Any:
        """The ``torch.nn.Module``, with the framework's own random weights."""

    @abstractmethod
    def target(self) -> Any:
        """The ``mindspore.nn.Cell``."""

    def batch_of(self, step: int) -> Batch:
        """The batch of a step: other values under each seed."""
        return self.batch(np.random.default_rng([7 + self.seed, step]))

    @abstractmethod
    def batch(self, generator: np.random.Generator) -> Batch:
        """Inputs and labels of one step, for both sides."""

    @abstractmethod
    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        """The loss of a batch of PyTorch tensors."""

    def target_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        """The loss of a batch of MindSpore tensors; by default the golden's code serves both."""
        return self.golden_loss(net, batch, cross_entropy)

    def parameter(self, path: str) -> str:
        """The name in PyTorch's ``state_dict`` of the target's parameter ``path``."""
        for pattern, replacement in self.names:
            path = re.sub(pattern, replacement, path)
        return canonical(path)

    def value(self, path: str, golden: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The golden's values in the target's shape; overridden where layouts differ by more than axes of size 1."""
        part = next((index for index, name in enumerate(self.joined) if f".{name}." in path), None)
        own = golden if part is None else np.split(golden, len(self.joined))[part]
        return own.reshape(shape)


class Classifier(Pair):
    """Takes an image, gives a row of logits."""

    size = 32
    classes = 10
    rows = 4

    def batch(self, generator: np.random.Generator) -> Batch:
        image = generator.standard_normal((self.rows, 3, self.size, self.size)).astype(np.float32)
        return {"image": image, "labels": generator.integers(0, self.classes, self.rows)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"]), batch["labels"])


class LanguageModel(Pair):
    """Takes tokens, gives logits for each; the labels are the tokens that follow."""

    vocabulary = 97
    rows, length = 2, 16

    def batch(self, generator: np.random.Generator) -> Batch:
        tokens = generator.integers(0, self.vocabulary, (self.rows, self.length + 1))
        return {"tokens": tokens[:, :-1].copy(), "labels": tokens[:, 1:].reshape(-1).copy()}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        logits = net(input_ids=batch["tokens"])[0]
        return cross_entropy(logits.reshape(-1, self.vocabulary), batch["labels"])


class SameName(Pair):
    """A class that mindone names as the original does, made by the same configuration on both sides.

    ``network``: its name in ``zoo``. ``settings``: what both are given.
    """

    zoo = "transformers"
    network = ""
    settings: ClassVar[dict[str, Any]] = {}

    def config(self) -> dict[str, Any]:
        """Arguments of the class: a configuration in transformers, named values in diffusers."""
        if self.zoo == "diffusers":
            return self.settings
        kind = getattr(import_module(self.zoo), self.network).config_class
        return {"config": kind(**deepcopy(self.settings), attn_implementation="eager")}

    def golden(self) -> Any:
        return getattr(import_module(self.zoo), self.network)(**self.config())

    def target(self) -> Any:
        return getattr(import_module(f"mindone.{self.zoo}"), self.network)(**self.config())


class SentenceClassifier(SameName):
    """Takes tokens, gives a row of logits for each sentence."""

    vocabulary, classes = 97, 5

    def batch(self, generator: np.random.Generator) -> Batch:
        tokens = generator.integers(2, self.vocabulary, (4, 12))
        return {"tokens": tokens, "labels": generator.integers(0, self.classes, 4)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(input_ids=batch["tokens"])[0], batch["labels"])


def names() -> list[str]:
    """Every pair, by the name of its file."""
    return sorted(path.stem for path in (Path(__file__).parent / "pairs").glob("[a-z]*.py"))


def load(name: str, root: Path) -> Pair:
    """The pair of that name, in the variation that the folder ``root`` holds.

    Raises:
        ModuleNotFoundError: there is no such file.
    """
    pair, varied = copy(import_module(f"zoo.pairs.{name}").PAIR), variation.read(root)
    pair.seed, pair.late, pair.small, own = varied.seed, varied.late, varied.small, pair.optimizer
    pair.optimizer = varied.choose(own)
    if pair.optimizer != own:
        pair.learning_rate = variation.OPTIMIZERS[pair.optimizer]
    return pair
