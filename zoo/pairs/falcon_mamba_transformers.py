"""Falcon Mamba, a scanned state between norms without weights: mindone.transformers beside transformers."""

from zoo.pairs.mamba_transformers import Mamba


class FalconMamba(Mamba):
    network = "FalconMambaForCausalLM"
    computed = r"_rms$"


PAIR = FalconMamba()
