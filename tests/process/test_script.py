"""``msprobe run``: scripts that know nothing of the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
from forked import run_forked
from repository import ROOT

from msprobe_ms.dump.reading.reader import read_dump

PYTORCH = """
import torch
from torch import nn
torch.manual_seed(1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 5), nn.Linear(5, 2)
    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))
net, loss = nn.DataParallel(Net()) if 0 else Net(), nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(3, 4)
with torch.no_grad():
    net(x)
for _ in range(2):
    optimizer.zero_grad()
    loss(net(x), torch.zeros(3, 2)).backward()
    optimizer.step()
torch.save(net.fc1.weight.detach(), "weight.pt")
"""

MINDSPORE = """
import sys
import mindspore as ms, numpy as np
from mindspore import nn, ops
ms.runtime.launch_blocking()
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(4, 5, weight_init="ones"), nn.Dense(5, 2, weight_init="ones")
    def construct(self, x):
        return self.fc2(ops.relu(self.fc1(x)))
net, loss_fn = Net(), nn.MSELoss()
optimizer = nn.SGD(net.trainable_params(), 0.01)
x, y = ms.Tensor(np.ones((3, 4), np.float32)), ms.Tensor(np.zeros((3, 2), np.float32))
def train_functional():
    def forward(x, y):
        output = net(x)
        return loss_fn(output, y), output
    gradient = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
    for _ in range(2):
        (loss, _), gradients = gradient(x, y)
        optimizer(gradients)
def train_cell():
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer)
    for _ in range(2):
        step(x, y)
def train_model():
    data = ms.dataset.NumpySlicesDataset({"x": np.ones((6, 4), np.float32), "y": np.zeros((6, 2), np.float32)}, shuffle=False)
    ms.train.Model(net, loss_fn, optimizer).train(1, data.batch(3), dataset_sink_mode=False)
globals()["train_" + sys.argv[1]]()
"""  # noqa: E501


def run(folder: Path, *arguments: str, code: str | None = None, fresh: bool = False) -> CompletedProcess[str]:
    """``msprobe run`` in ``folder``, where ``code`` is train.py.

    The framework that it imports has been imported before, unless the interpreter is to be ``fresh``.
    """
    if code is not None:
        (folder / "train.py").write_text(code)
    return python(folder, "-m", "msprobe_ms", "run", *arguments, fresh=fresh)


def plain(folder: Path, *arguments: str, fresh: bool = False) -> CompletedProcess[str]:
    return python(folder, *arguments, fresh=fresh)


def python(folder: Path, *arguments: str, fresh: bool) -> CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    code = (folder / "train.py").read_text() if (folder / "train.py").exists() else ""
    frameworks = [name for name in ("mindspore", "torch") if f"import {name}" in code]
    if not fresh and frameworks:
        return run_forked(*arguments, framework=frameworks[0], cwd=folder, env=environment)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip


def dump_of(folder: Path, step: int) -> Any:
    (process,) = (folder / "dump" / f"step{step}").iterdir()
    return read_dump(process)


def names_by_step(folder: Path) -> list[list[str]]:
    """Names of the entries of every step."""
    steps = len(list((folder / "dump").iterdir()))
    return [list(dump_of(folder, step).entries) for step in range(steps)]


def test_a_pytorch_script_is_recorded_step_by_step(tmp_path: Path) -> None:
    config = {"task": "tensor", "level": "mix", "dump_path": "dump", "tensor": {}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    result = run(tmp_path, "--config", "config.json", "train.py", code=PYTORCH, fresh=True)
    assert result.returncode == 0, result.stderr
    assert "msprobe run: the network is Net (train.py), the outermost module called" in result.stderr
    assert "msprobe run: a step ends with each call of the optimizer SGD" in result.stderr
    dumps = [dump_of(tmp_path, step) for step in (0, 1)]
    for dump in dumps:
        names = list(dump.entries)
        # The pass without gradients belongs to no step; the loss does; what the optimizer computes does not.
        assert [name for name in names if name.endswith("fc1.Linear.forward.0")] == ["Module.fc1.Linear.forward.0"]
        assert "Functional.mse_loss.0.forward" in names and "Module.fc1.Linear.backward.0" in names
        assert "Module.fc1.Linear.parameters_grad.0" in names
        assert not any("fc1.Linear.forward.1" in name for name in names)
    weights = [
        dump.tensors.load(next(i for i in dump.entries["Module.fc1.Linear.forward.0"].items if i.path == ("weight",)))
        for dump in dumps
    ]
    assert not np.array_equal(*weights)
    recorded = (tmp_path / "weight.pt").read_bytes()
    assert plain(tmp_path, "train.py").returncode == 0
    assert (tmp_path / "weight.pt").read_bytes() == recorded
    assert {path.name for path in (tmp_path / "dump").iterdir()} == {"step0", "step1"}


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("functional", "given to grad or value_and_grad"),
        ("cell", "given to TrainOneStepCell"),
        ("model", "given to TrainOneStepCell"),
    ],
)
def test_a_mindspore_script_is_recorded_step_by_step(tmp_path: Path, form: str, found: str) -> None:
    arguments = ("--level", "mix", "--dump_path", "dump", "train.py", form)
    result = run(tmp_path, *arguments, code=MINDSPORE, fresh=form == "functional")
    assert result.returncode == 0, result.stderr
    assert f"msprobe run: the network is Net (train.py), {found}" in result.stderr
    assert "msprobe run: a step ends with each call of the optimizer SGD" in result.stderr
    firsts = []
    for step in (0, 1):
        entries = dump_of(tmp_path, step).entries
        assert {"Cell.fc1.Dense.forward.0", "Cell.fc2.Dense.backward.0", "Functional.relu.0.forward"} <= set(entries)
        assert "Cell.fc1.Dense.parameters_grad.0" in entries
        firsts.append(next(i for i in entries["Cell.fc1.Dense.forward.0"].items if i.path == ("weight",)).norm)
    assert firsts[0] == pytest.approx(np.sqrt(20)) and firsts[1] != firsts[0]
    assert {path.name for path in (tmp_path / "dump").iterdir()} == {"step0", "step1"}


COMPILED = """
import mindspore as ms, numpy as np
from mindspore import nn
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 2)
    def construct(self, x):
        return self.fc(x)
net = Net()
optimizer = nn.SGD(net.trainable_params(), 0.01)
def forward(x):
    return net(x).sum()
gradient = ms.value_and_grad(forward, None, optimizer.parameters)
@ms.jit
def step(x):
    loss, gradients = gradient(x)
    optimizer(gradients)
    return loss
@ms.jit
def evaluate(x):
    return net(x)
x = ms.Tensor(np.ones((3, 4), np.float32))
for _ in range(2):
    print("loss", step(x).shape)
    evaluate(x)
"""


def test_a_jitted_step_is_one_entry_a_step(tmp_path: Path) -> None:
    result = run(tmp_path, "--level", "mix", "--dump_path", "dump", "train.py", code=COMPILED)
    assert plain(tmp_path, "train.py").stdout == result.stdout == "loss ()\nloss ()\n", result.stderr
    assert (
        "the network is Net (train.py), run by the jitted step, one entry in all; "
        "Set MS_JIT=0 in the environment to run and record it call by call" in result.stderr
    )
    assert "a step ends with each call of the optimizer SGD" in result.stderr
    for step in range(2):  # and none of the jitted evaluation
        (python,) = (tmp_path / "dump" / "pynative" / f"step{step}").iterdir()
        assert list(read_dump(python).entries) == ["Jit.step.0.forward"]
        (graph,) = (tmp_path / "dump" / "graph" / f"step{step}").iterdir()
        assert "Cell.fc.Dense.backward.0" in read_dump(graph).entries


def test_a_compiled_pytorch_net_trains_as_it_does_alone(tmp_path: Path) -> None:
    code = PYTORCH.replace("else Net()", "else torch.compile(Net(), backend='eager')") + "print('done')"
    result = run(tmp_path, "--level", "mix", "--dump_path", "dump", "train.py", code=code)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    recorded = (tmp_path / "weight.pt").read_bytes()
    assert plain(tmp_path, "train.py").returncode == 0
    assert (tmp_path / "weight.pt").read_bytes() == recorded


SHOWS = """
import sys, pickle
class Mine: pass
print(__name__, sys.argv, sys.path[0] in ({here!r}, ""), sys.modules["__main__"].__dict__ is globals())
print(type(pickle.loads(pickle.dumps(Mine()))) is Mine)
"""


@pytest.mark.parametrize("flag", [[], ["-m"]])
def test_arguments_main_and_path_are_as_with_python(tmp_path: Path, flag: list[str]) -> None:
    target = "train" if flag else "train.py"
    result = run(tmp_path, *flag, target, "--lr", "1", "-m", code=SHOWS.format(here=str(tmp_path)))
    assert result.stdout == plain(tmp_path, *flag, target, "--lr", "1", "-m").stdout
    assert "True True\nTrue\n" in result.stdout


@pytest.mark.parametrize(
    "code", ["raise SystemExit(7)", "import sys; sys.exit('no data')", "def f():\n    1 / 0\nf()", "syntax error ("]
)
def test_exit_code_and_traceback_are_those_of_python(tmp_path: Path, code: str) -> None:
    result = run(tmp_path, "train.py", code=code)
    alone = plain(tmp_path, "train.py")
    assert result.returncode == alone.returncode
    kept = [line for line in result.stderr.split("\n") if "[WARNING] msprobe run: nothing is recorded" not in line]
    assert "\n".join(kept).replace(str(tmp_path) + "/", "") == alone.stderr.replace(str(tmp_path) + "/", "")


def test_a_script_without_a_framework_is_told_that_nothing_is_recorded(tmp_path: Path) -> None:
    code = "import os, sys\nif os.fork():\n    os.wait()\n    print('hi')\nelse:\n    sys.exit()"
    result = run(tmp_path, "train.py", code=code)
    assert (result.returncode, result.stdout) == (0, "hi\n")
    assert result.stderr.count("[WARNING] msprobe run: nothing is recorded: the script imported neither") == 1


def test_an_exception_in_a_step_keeps_what_was_recorded(tmp_path: Path) -> None:
    code = PYTORCH.replace("    optimizer.step()", "    raise ValueError('mine')")
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=code)
    assert result.returncode == 1
    assert "ValueError: mine" in result.stderr
    assert "Module.fc2.Linear.backward.0" in dump_of(tmp_path, 0).entries


def test_mistakes_are_told_before_the_script_runs(tmp_path: Path) -> None:
    missing = run(tmp_path, "absent.py")
    assert (missing.returncode, missing.stderr) == (
        2,
        "msprobe: run: absent.py: no such script; give a Python file, or -m and the name of a module\n",
    )
    wrong = run(tmp_path, "--level", "L7", "train.py", code="print('ran')")
    assert wrong.returncode == 2 and "argument level: " in wrong.stderr and wrong.stdout == ""


def test_the_network_is_found_behind_functions(ms: Any) -> None:
    from msprobe_ms.frameworks.mindspore.training import networks_of

    generator, critic = ms.nn.Dense(2, 2), ms.nn.SequentialCell(ms.nn.Dense(2, 1))
    loss = ms.nn.MSELoss()
    optimizer = ms.nn.SGD(critic.trainable_params(), 0.1)

    class Trainer:
        def __init__(self) -> None:
            self.net = generator

        def forward(self, x: Any) -> Any:
            return loss(self.net(x), x)

    def inner(x: Any) -> Any:
        optimizer(x)
        return critic[0](generator(x))

    def outer(x: Any) -> Any:
        return inner(x) + later(x)

    assert networks_of(critic, None) == [critic]
    assert networks_of(Trainer().forward, None) == [generator]
    found = networks_of(outer, None)
    assert {id(cell) for cell in found} == {id(generator), id(critic)} and len(found) == 2
    assert networks_of(outer, critic.trainable_params()) == [critic]
    assert networks_of(loss, None) == networks_of(len, None) == []
    later = generator


PYTORCH_NETS = """
import torch
from torch import nn
torch.manual_seed(1)
class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)
    def forward(self, z):
        return torch.tanh(self.fc(z))
class Critic(Generator):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)
generator, critic, judge = Generator(), Critic(), Critic()
z = torch.ones(4, 2)
"""

PYTORCH_GAN = """
first = torch.optim.Adam(generator.parameters())
second = torch.optim.SGD(critic.parameters(), 0.1)
for _ in range(2):
    judge(torch.ones(1, 3))
    fake = generator(z)
    critic(fake.detach()).mean().backward()
    second.step()
    first.zero_grad()
    critic(fake).mean().backward()
    first.step()
torch.save([*generator.parameters(), *critic.parameters()], "weights.pt")
"""


@pytest.mark.parametrize("arguments", [("pytorch",), ("mindspore", "functional"), ("mindspore", "cell")])
def test_updates_belong_to_the_step_that_the_optimizer_ends(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    config = {"level": "L0", "dump_path": "dump", "optimizer": True}
    (tmp_path / "config.json").write_text(json.dumps(config))
    framework, *form = arguments
    code = PYTORCH if framework == "pytorch" else MINDSPORE
    result = run(tmp_path, "--config", "config.json", "train.py", *form, code=code)
    assert result.returncode == 0, result.stderr
    for step in (0, 1):
        entries = dump_of(tmp_path, step).entries
        made = [name for name in entries if name.startswith("Optimizer")]
        assert made == [f"Optimizer.fc{layer}.{name}.0.forward" for layer in (1, 2) for name in ("weight", "bias")]
        for name in made:
            norms = {item.path: item.norm for item in entries[name].items}
            assert norms["parameter",] != norms["0",]


@pytest.mark.parametrize(("code", "arguments"), [(PYTORCH, ()), (MINDSPORE, ("functional",))])
def test_gradients_of_every_step_are_written(tmp_path: Path, code: str, arguments: tuple[str, ...]) -> None:
    result = run(tmp_path, "--task", "grad_probe", "--dump_path", "dump", "train.py", *arguments, code=code)
    assert result.returncode == 0, result.stderr
    assert "the gradients of 2 steps" in result.stderr
    for step in range(2):
        table = (tmp_path / f"dump/rank0/grad_summary_{step}.csv").read_text()
        assert [name in table for name in ("fc1.weight", "fc2.bias")] == [True, True]


def test_gradients_of_two_networks_are_refused_with_a_sentence(tmp_path: Path) -> None:
    code = """
import torch
nets = [torch.nn.Sequential(torch.nn.Linear(2, 2)) for _ in range(2)]
optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in nets]
(nets[0](torch.ones(1, 2)) + nets[1](torch.ones(1, 2))).sum().backward()
[optimizer.step() for optimizer in optimizers]
print("trained")
"""
    result = run(tmp_path, "--task", "grad_probe", "--dump_path", "dump", "train.py", code=code)
    assert (result.returncode, result.stdout) == (0, "trained\n")
    assert "task grad_probe watches one network, the script has 2; call debugger.monitor" in result.stderr


def test_both_networks_of_a_gan_are_recorded_in_one_step(tmp_path: Path) -> None:
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=PYTORCH_NETS + PYTORCH_GAN)
    assert result.returncode == 0, result.stderr
    assert (
        "the networks are 0: Generator (train.py), 1: Critic (train.py); names of their entries begin with the number"
        in result.stderr
    )
    assert "a step ends when each of the optimizers Adam, SGD has run" in result.stderr
    assert result.stderr.count("Critic (train.py) is called too and not recorded: no optimizer trains it") == 1
    expected = [
        "Module.0.fc.Linear.forward.0", "Module.1.fc.Linear.forward.0", "loss.0.debug",
        "Module.1.fc.Linear.backward.0", "Module.1.fc.Linear.parameters_grad.0",
        "Module.1.fc.Linear.forward.1", "loss.1.debug", "Module.1.fc.Linear.backward.1",
        "Module.1.fc.Linear.parameters_grad.1", "Module.0.fc.Linear.backward.0", "Module.0.fc.Linear.parameters_grad.0",
    ]  # fmt: skip
    assert names_by_step(tmp_path) == [expected, expected]
    recorded = (tmp_path / "weights.pt").read_bytes()
    assert plain(tmp_path, "train.py").returncode == 0
    assert (tmp_path / "weights.pt").read_bytes() == recorded


PARTS = """
class System(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Generator(), nn.Linear(3, 2)
        self.decoder.weight = nn.Parameter(torch.ones(2, 3))
system = System()
optimizer = torch.optim.SGD(system.parameters(), 0.1)
for _ in range(2):
    system.decoder(system.encoder(z)).mean().backward()
    optimizer.step()
"""


def test_parts_of_a_network_that_are_called_one_by_one_are_the_network(tmp_path: Path) -> None:
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=PYTORCH_NETS + PARTS)
    assert "the network is System (train.py), whose parts are called" in result.stderr, result.stderr
    for names in names_by_step(tmp_path):
        assert [name for name in names if ".forward." in name] == [
            "Module.encoder.fc.Linear.forward.0",
            "Module.encoder.Generator.forward.0",
            "Module.decoder.Linear.forward.0",
        ]


LEAVES = """
first, second = nn.Linear(2, 2), nn.Linear(2, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1)
second(first(z)).mean().backward()
optimizer.step()
"""


def test_networks_without_modules_inside_are_recorded_themselves(tmp_path: Path) -> None:
    run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=PYTORCH_NETS + LEAVES)
    (names,) = names_by_step(tmp_path)
    assert [name for name in names if ".forward." in name] == [
        "Module.0.Linear.forward.0",
        "Module.1.Linear.forward.0",
    ]


MINDSPORE_NETS = """
import mindspore as ms, numpy as np
from mindspore import nn, ops
class Generator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(2, 3)
    def construct(self, z):
        return ops.tanh(self.fc(z))
class Critic(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 1)
    def construct(self, x):
        return self.fc(x)
generator, critic = Generator(), Critic()
z = ms.Tensor(np.ones((4, 2), np.float32))
"""

MINDSPORE_GAN = """
first, second = nn.Momentum(generator.trainable_params(), 0.1, 0.9), nn.SGD(critic.trainable_params(), 0.1)
gradient_of_critic = ms.value_and_grad(lambda: critic(generator(z)).mean(), None, second.parameters)
gradient_of_generator = ms.value_and_grad(lambda: -critic(generator(z)).mean(), None, first.parameters)
for _ in range(2):
    for _ in range(2):
        _, gradients = gradient_of_critic()
    second(gradients)
    _, gradients = gradient_of_generator()
    first(gradients)
"""


def test_both_networks_of_a_mindspore_gan_too_and_gradients_that_add_up(tmp_path: Path) -> None:
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=MINDSPORE_NETS + MINDSPORE_GAN)
    assert "the networks are 0: Generator (train.py), 1: Critic (train.py)" in result.stderr, result.stderr
    assert "a step ends when each of the optimizers Momentum, SGD has run" in result.stderr
    assert "a step holds all calls until then: Critic is called 2 times in this one" in result.stderr
    for names in names_by_step(tmp_path):
        assert [name for name in names if ".forward." in name] == [
            f"Cell.{net}.fc.Dense.forward.{call}" for call in range(3) for net in (0, 1)
        ]
        assert "Cell.0.fc.Dense.parameters_grad.0" in names and "Cell.1.fc.Dense.parameters_grad.1" in names


ACCUMULATION = """
optimizer = torch.optim.SGD(generator.parameters(), 0.1)
for _ in range(2):
    generator.train()
    for _ in range(3):
        generator(z).mean().backward()
    optimizer.step()
    generator.eval()
    generator(z)
"""


def test_a_script_may_change_its_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"dump_path": "dump", "level": "L0"}')
    (tmp_path / "elsewhere").mkdir()
    code = PYTORCH_NETS + "import os; os.chdir('elsewhere')" + ACCUMULATION
    result = run(tmp_path, "--config", "config.json", "train.py", code=code)
    assert result.returncode == 0, result.stderr
    assert len(names_by_step(tmp_path)) == 2


def test_gradient_accumulation_is_one_step_and_evaluation_none(tmp_path: Path) -> None:
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=PYTORCH_NETS + ACCUMULATION)
    assert "a step holds all calls until then: Generator is called 3 times in this one" in result.stderr
    forward = [[name for name in names if ".forward." in name] for names in names_by_step(tmp_path)]
    assert forward == [[f"Module.fc.Linear.forward.{call}" for call in range(3)]] * 2


CLOSURE = """
optimizer = torch.optim.LBFGS(generator.parameters(), max_iter=2, line_search_fn="strong_wolfe")
def closure():
    optimizer.zero_grad()
    loss = generator(z).square().sum()
    loss.backward()
    return loss
for _ in range(2):
    optimizer.step(closure)
"""

SCALED = """
optimizer, scaler = torch.optim.SGD(generator.parameters(), 0.1), torch.amp.GradScaler("cpu")
for step in range(3):
    optimizer.zero_grad()
    scaler.scale(generator(z).sum() * (float("inf") if step == 1 else 1)).backward()
    scaler.step(optimizer)
    scaler.update()
"""


@pytest.mark.parametrize(("code", "steps"), [(CLOSURE, 2), (SCALED, 3)])
def test_steps_of_closures_and_of_skipped_updates(tmp_path: Path, code: str, steps: int) -> None:
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=PYTORCH_NETS + code)
    assert result.returncode == 0, result.stderr
    found = names_by_step(tmp_path)
    assert len(found) == steps
    assert all({"Module.fc.Linear.forward.0", "Module.fc.Linear.parameters_grad.0"} <= set(names) for names in found)


UNUSED = """
unused, optimizer = torch.optim.Adam(generator.parameters()), torch.optim.SGD(generator.parameters(), 0.1)
for _ in range(4):
    generator(z).mean().backward()
    optimizer.step()
"""


def test_an_optimizer_that_never_runs_is_waited_for_once(tmp_path: Path) -> None:
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=PYTORCH_NETS + UNUSED)
    assert "the optimizer SGD ran twice before others did: they are waited for no more" in result.stderr
    assert "a step ends with each call of the optimizer SGD" in result.stderr
    assert [sum(".forward." in name for name in names) for names in names_by_step(tmp_path)] == [2, 1, 1]


INFERENCE = {
    "pytorch": """
with torch.no_grad():
    for _ in range(3):
        critic(generator(z))
""",
    "mindspore": """
model = ms.train.Model(generator)
for _ in range(3):
    critic(model.predict(z))
""",
}


@pytest.mark.parametrize("framework", ["pytorch", "mindspore"])
def test_inference_is_a_step_a_call(tmp_path: Path, framework: str) -> None:
    code = (PYTORCH_NETS if framework == "pytorch" else MINDSPORE_NETS) + INFERENCE[framework]
    result = run(tmp_path, "--level", "L0", "--step", "0,2", "--dump_path", "dump", "train.py", code=code)
    assert "the network is Generator (train.py), the outermost" in result.stderr, result.stderr
    assert "there is no optimizer: a step ends when the network is called again" in result.stderr
    assert (
        "Critic (train.py) is called too and not recorded: give a list of networks to PrecisionDebugger.start"
        in result.stderr
    )
    assert {path.name for path in (tmp_path / "dump").iterdir()} == {"step0", "step2"}
    module, layer = ("Module", "Linear") if framework == "pytorch" else ("Cell", "Dense")
    assert list(dump_of(tmp_path, 2).entries) == [f"{module}.fc.{layer}.forward.0"]


DRY = """
generator(z)
optimizer = nn.SGD(generator.trainable_params(), 0.1)
def forward(z):
    return generator(z).mean()
gradient = ms.value_and_grad(forward, None, optimizer.parameters)
for _ in range(2):
    optimizer(gradient(z)[1])
"""


def test_a_call_before_training_does_not_count(tmp_path: Path) -> None:
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=MINDSPORE_NETS + DRY)
    assert "training begins: there is an optimizer now, and steps are counted from 0 again" in result.stderr
    earlier, later = sorted((tmp_path / "dump" / "step0").iterdir())
    assert earlier.name == f"earlier1_{later.name}"
    assert "Cell.fc.Dense.parameters_grad.0" in read_dump(later).entries
    assert {path.name for path in (tmp_path / "dump").iterdir()} == {"step0", "step1"}


OWN = """
from msprobe_ms.pytorch import PrecisionDebugger
optimizer = torch.optim.SGD(generator.parameters(), 0.1)
def train(debugger):
    for _ in range(2):
        if debugger: debugger.start(generator)
        generator(z).mean().backward()
        optimizer.step()
        if debugger: debugger.stop(), debugger.step()
"""


@pytest.mark.parametrize("before", [False, True])
def test_a_debugger_of_the_scripts_own_wins(tmp_path: Path, before: bool) -> None:
    """Also when it is made in the middle: what was recorded until then stays."""
    code = PYTORCH_NETS + OWN + ("train(None)\n" if before else "")
    code += "train(PrecisionDebugger(dump_path='own', level='L1'))\n"
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=code)
    said = "the script uses a PrecisionDebugger of its own: it alone records, as without msprobe run"
    assert result.stderr.count(said) == 1, result.stderr
    assert (tmp_path / "dump").exists() == before
    for step in (0, 1):
        (process,) = (tmp_path / "own" / f"step{step}").iterdir()
        assert "Functional.linear.0.forward" in read_dump(process).entries
        if before:
            assert "Module.fc.Linear.backward.0" in dump_of(tmp_path, step).entries


def test_level_debug_is_refused_before_the_script_runs(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"dump_path": "dump", "level": "debug"}')
    result = run(tmp_path, "--config", "config.json", "train.py", code="print('ran')")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "msprobe: run: level debug records what a script itself gives to debugger.save; use one of L0, L1, mix, L2, or "
        "run the script with python\n"
    )


WORKERS = """
import torch
from torch import nn
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.relu(nn.Linear(2, 2)(torch.full((2,), float(index)))).detach()
if __name__ == "__main__":
    net = nn.Sequential(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for context in ("fork", "spawn"):
        for batch in torch.utils.data.DataLoader(Data(), 4, num_workers=1, multiprocessing_context=context):
            net(batch).sum().backward()
            optimizer.step()
"""


def test_workers_of_data_loaders_write_nothing(tmp_path: Path) -> None:
    """They call networks too, and those that are spawned import the script anew."""
    result = run(tmp_path, "--level", "mix", "--dump_path", "dump", "train.py", code=WORKERS)
    assert result.returncode == 0, result.stderr
    assert all("Module.0.Linear.parameters_grad.0" in names for names in names_by_step(tmp_path))
    assert len(names_by_step(tmp_path)) == 2
    assert not any("relu" in name for names in names_by_step(tmp_path) for name in names)


FORKED = """
import torch, multiprocessing
from torch import nn
def train(rank):
    net = nn.Sequential(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(2):
        net(torch.ones(3, 2)).sum().backward()
        optimizer.step()
if __name__ == "__main__":
    torch.set_num_threads(1)
    processes = [multiprocessing.get_context("fork").Process(target=train, args=(rank,)) for rank in range(2)]
    [process.start() for process in processes]
    [process.join() for process in processes]
"""


def test_forked_processes_that_train_are_recorded_each_for_itself(tmp_path: Path) -> None:
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=FORKED)
    assert result.returncode == 0, result.stderr
    for step in (0, 1):
        first, second = (tmp_path / "dump" / f"step{step}").iterdir()
        assert list(read_dump(first).entries) == list(read_dump(second).entries)
        assert "Module.0.Linear.parameters_grad.0" in read_dump(first).entries


def test_a_rank_that_no_process_has_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"level": "L0", "dump_path": "dump", "rank": [3]}')
    done = run(tmp_path, "--config", "config.json", "train.py", code=PYTORCH)
    assert done.returncode == 0, done.stderr
    said = "rank: nothing is recorded: this process is part of no distributed job that is initialised, and taken for"
    assert done.stderr.count(f"{said} rank 0; the configuration selects 3.") == 1
    assert not list((tmp_path / "dump").glob("*/*"))


PYTORCH_WITH_METHODS_OF_ITS_OWN = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(x)
    def parameters(self, group):
        return self.fc.parameters() if group == "all" else []
class Unhashable(torch.optim.SGD):
    __hash__ = None
    def __eq__(self, other):
        raise ValueError("of the script")
class Around:  # what GradScaler is given need not be an optimizer of PyTorch's
    def __init__(self, optimizer):
        self.param_groups, self.step = optimizer.param_groups, optimizer.step
net = Net()
print(tuple(net(torch.ones(3, 4)).shape))
optimizers = [Unhashable(net.parameters("all"), lr=0.1), torch.optim.SGD(net.parameters("all"), lr=0.1)]
for _ in range(2):
    net(torch.ones(3, 4)).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
torch.amp.GradScaler("cpu", enabled=False).step(Around(optimizers[1]))
print("trained")
"""

MINDSPORE_WITH_METHODS_OF_ITS_OWN = """
import mindspore as ms
from mindspore import nn, ops
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 2)
    def construct(self, x):
        return self.fc(x)
    def trainable_params(self, group):
        return self.fc.trainable_params()
class Strange:
    @property
    def __class__(self):
        raise ValueError("of the script")
net, strange, x = Net(), Strange(), ops.ones((3, 4), ms.float32)
print(net(x).shape)
def loss(x):
    strange
    return net(x).sum()
optimizer = nn.SGD(net.trainable_params("all"), 0.1)
optimizer(ms.value_and_grad(loss, None, optimizer.parameters)(x)[1])
@ms.jit
def summed(x):
    return net(x).sum()
summed(x)
print("trained")
"""


@pytest.mark.parametrize("code", [PYTORCH_WITH_METHODS_OF_ITS_OWN, MINDSPORE_WITH_METHODS_OF_ITS_OWN])
def test_what_the_scripts_own_methods_raise_does_not_reach_it(tmp_path: Path, code: str) -> None:
    ended = run(tmp_path, "train.py", code=code)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == plain(tmp_path, "train.py").stdout == "(3, 2)\ntrained\n"
