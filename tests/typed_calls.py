"""Right and wrong calls as a type checker sees them: ``make lint`` has mypy read this file, nothing runs it.

mypy is strict: a comment that lets a mistake pass where it finds none is itself an error.
"""

from __future__ import annotations

import msprobe_ms
import msprobe_ms.pytorch
from msprobe_ms import MsprobeStep, PrecisionDebugger, compare, load, record

debugger = PrecisionDebugger("config.json", level="L0", task="tensor", step=[0, "2-4"])
debugger.start(object(), token_range=[0, 3], rank_id=1)
PrecisionDebugger.step()
MsprobeStep(debugger)
PrecisionDebugger(levl="L0")  # type: ignore[arg-type]
PrecisionDebugger(level="L9")  # type: ignore[arg-type]
PrecisionDebugger(task="dump")  # type: ignore[arg-type]
debugger.start(modle=object())  # type: ignore[call-arg]
debugger.set_init_step("3")  # type: ignore[arg-type]

msprobe_ms.pytorch.PrecisionDebugger(dump_path="./dump", model=object())
msprobe_ms.pytorch.PrecisionDebugger(levl="L0")  # type: ignore[arg-type]

with record(level="mix", task="tensor") as recorded:
    pass
print(recorded["Cell.fc1.Dense.forward.0"]["output.0"].numpy().shape)
record(levl="L0")  # type: ignore[call-arg]
record(data_mode=["forward"], list=["attention"])
record(data_mode=3)  # type: ignore[arg-type]
msprobe_ms.pytorch.record(task="tensors")  # type: ignore[arg-type]

print(load("./dump", step=0, rank=1).path.name, compare("./dump", recorded).verdict)
load(7)  # type: ignore[arg-type]
compare("./dump", "./golden", layer_maping=True)  # type: ignore[call-arg]
