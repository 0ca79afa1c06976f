"""Numbers of calls stay theirs, whatever dies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from remote_calls import leaf, record_step

from msprobe_ms.remote.messages import Call, Dropped, from_client
from msprobe_ms.remote.outbox import Numbered, Outbox
from msprobe_ms.remote.spool import NO_ROOM, Spool


def message(numbered: Numbered) -> Call | Dropped:
    """What is sent under a number."""
    frame = b"".join(map(bytes, numbered[1]()))
    read = from_client(frame[8 : 8 + int.from_bytes(frame[4:8], "big")])
    assert isinstance(read, (Call, Dropped)) and read.number == numbered[0]
    return read


def beyond(outbox: Outbox, number: int = 0) -> list[str]:
    return [f"{each.number} {each.name}" for each in map(message, outbox.beyond(number, unfinished=False))]


def test_a_number_means_the_same_call_after_the_sender_died(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    record_step(spool, 1)
    record_step(spool, 2, calls=2)
    outbox = Outbox(spool)
    first = beyond(outbox)
    assert first == [f"{number} step1.Functional.relu.{number - 1}" for number in (1, 2, 3)] + [
        "4 step2.Functional.relu.0", "5 step2.Functional.relu.1",
    ]  # fmt: skip
    outbox.acknowledge(2)
    assert len(spool.samples()) == 2, "a step is deleted once all of it is acknowledged"
    outbox.acknowledge(4)
    assert [sample.step for sample in spool.samples()] == ["step2"]
    again = Outbox(spool)
    record_step(spool, 3, calls=1)
    assert beyond(again) == [*first[3:], "6 step3.Functional.relu.0"]
    assert beyond(again, 4) == [first[4], "6 step3.Functional.relu.0"]
    again.acknowledge(100)
    assert (spool.samples(), again.count, again.acknowledged) == ([], 6, 6)
    record_step(spool, 4, calls=1)
    assert beyond(Outbox(spool)) == ["7 step4.Functional.relu.0"]


def test_what_is_not_sent_has_a_number_and_a_reason(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.hand_over_dropped(1, "step0-step4", "no room")
    record_step(spool, 2, calls=2)
    (step,) = (sample.folder for sample in spool.samples() if sample.step == "step2")
    (step / NO_ROOM).touch()
    dump = json.loads((step / "dump.json").read_text())
    dump["data"]["Functional.relu.1.forward"]["output"][0]["data_name"] = None
    (step / "dump.json").write_text(json.dumps(dump))
    record_step(spool, 3)
    (spool.samples()[-1].folder / "dump.json").write_text('{"data": {"Functional.relu.0.forw')
    found = list(map(message, Outbox(spool).beyond(0, unfinished=False)))
    assert [(each.number, each.name, type(each)) for each in found] == [
        (1, "step0-step4", Dropped),
        (2, "step2.Functional.relu.0", Call),
        (3, "step2.Functional.relu.1", Dropped),
        (4, "step3", Dropped),
    ]
    assert isinstance(found[0], Dropped) and found[0].reason == "no room"
    assert isinstance(found[2], Dropped) and "no room for its tensors" in found[2].reason
    assert isinstance(found[3], Dropped) and "cannot be read" in found[3].reason


def test_forward_and_backward_go_together_and_a_tensor_goes_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    dump = spool.folder / "step0" / "proc1"
    (dump / "dump_tensor_data").mkdir(parents=True)
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    for name in ("a.npy", "b.npy"):
        np.save(dump / "dump_tensor_data" / name, array.T if name == "b.npy" else array)
    data = {
        "Tensor.add.0.forward": {"input_args": [leaf("a.npy", array), leaf("a.npy", array)], "output": []},
        "Distributed.all_reduce.0.forward": {"input_args": [leaf("a.npy", array)], "output": []},
        "Tensor.add.0.backward": {"input": [leaf("b.npy", array.T)], "output": [leaf("none.npy", array)]},
    }
    (dump / "dump.json").write_text(json.dumps({"framework": "pytorch", "task": "tensor", "data": data}))
    spool.hand_over(dump, 1, "step0")
    (number, frame), other = Outbox(spool).beyond(0, unfinished=False)
    call = message((number, frame))
    assert isinstance(call, Call) and list(call.entries) == ["Tensor.add.0.forward", "Tensor.add.0.backward"]
    assert [(tensor.dtype, tensor.shape) for tensor in call.tensors] == [("int64", [2, 3]), ("int64", [3, 2])]
    names = [each["data_name"] for each in call.entries["Tensor.add.0.forward"]["input_args"]]
    assert names == ["0", "0"] and call.entries["Tensor.add.0.backward"]["output"][0]["data_name"] is None
    raw = b"".join(map(bytes, frame()))
    assert raw[:-4].endswith(array.tobytes() + array.T.tobytes())
    collective = message(other)
    assert isinstance(collective, Call) and collective.tensors == []
