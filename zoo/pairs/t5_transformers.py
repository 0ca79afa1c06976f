"""T5: encoder and decoder with relative biases: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import CrossEntropy, LanguageModel, SameName


class T5(SameName, LanguageModel):
    unused = frozenset({"lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"})
    network = "T5ForConditionalGeneration"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 2,
        "num_heads": 4,
        "dropout_rate": 0.0,
        "use_cache": False,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        logits = net(input_ids=batch["tokens"], decoder_input_ids=batch["tokens"][:, :9])[0]
        return cross_entropy(logits.reshape(-1, self.vocabulary), batch["labels"][: 9 * self.rows])


PAIR = T5()
