"""A Llama decoder with grouped queries: mindone.transformers beside transformers."""

from typing import Any

from zoo.pair import LanguageModel


class Llama(LanguageModel):
    optimizer = "adam"
    learning_rate = 1e-3

    def _config(self) -> Any:
        from transformers import LlamaConfig

        return LlamaConfig(
            vocab_size=self.vocabulary,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            use_cache=False,
            attn_implementation="eager",
        )

    def golden(self) -> Any:
        from transformers import LlamaForCausalLM

        return LlamaForCausalLM(self._config())

    def target(self) -> Any:
        from mindone.transformers import LlamaForCausalLM

        return LlamaForCausalLM(self._config())


PAIR = Llama()
