"""Makes ``import torch`` give mindtorch of mindnlp 0.5.1, PyTorch's interface on MindSpore: its ``torch.Tensor`` is
``mindspore.Tensor``. It is MSAdapter's kin that can be installed from PyPI. Works with MindSpore 2.7.0 to 2.10.0 on
CPU, whether PyTorch is installed or not, where this folder's parent comes first on the path."""

import importlib
import importlib.abc
import importlib.util
import inspect
import sys

import mindspore as ms
import mindspore.ops.operations._inner_ops as _inner

# --- 1. import mindtorch (two compat fixes, only needed for MindSpore >= 2.8) -------------------------------
_native_gen, _native_ver = _inner.Generator, ms.__version__
_native_register_hook = ms.Tensor.register_hook
_Type = ms._c_expression.typing.Type
_native_dtype_str = _Type.__str__
if len(inspect.signature(_native_gen.__init__).parameters) > 1:  # >=2.8: Generator(seed, offset)
    from mindspore.ops.auto_generate.gen_ops_prim import Generator as _Gen

    class _GenCompat(_Gen):
        def __call__(self, cmd, inputs):  # >=2.8: step must be a Tensor, not an int
            return super().__call__(cmd, tuple(ms.Tensor(i, ms.int64) if isinstance(i, int) else i for i in inputs))

    _inner.Generator = _GenCompat
    ms.__version__ = "2.9.0"  # mindtorch compares versions as strings
try:
    import mindtorch
    from mindtorch import torch_proxy
finally:
    _inner.Generator, ms.__version__ = _native_gen, _native_ver

# --- 2. tensors born inside MindSpore (grads, hook outputs) carry no `_device`: default to CPU --------------
_cpu = mindtorch.device("cpu")
mindtorch.Tensor.device = property(lambda self: self.__dict__.get("_device", _cpu))
# mindtorch 0.5.1 overwrites Tensor.register_hook with a broken one (self._data): put MindSpore's back
mindtorch.Tensor.register_hook = _native_register_hook
# mindtorch makes str(ms.float32) == 'mindspore.float32'; plain MindSpore and MSAdapter both print 'Float32'
_Type.__str__ = _native_dtype_str


# --- 3. `torch[.x]` IS `mindtorch[.x]` (same module object: dir() and setattr() behave like a real package) --
class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        for fake, real in (("torch_npu", "mindtorch.npu"), ("torch", "mindtorch")):
            if name == fake or name.startswith(fake + "."):
                real = real + name[len(fake) :]
                if importlib.util.find_spec(real) is None:
                    return None
                return importlib.util.spec_from_loader(name, self, origin=real)
        return None

    def create_module(self, spec):
        mod = importlib.import_module(spec.origin)
        spec.loader_state = mod.__spec__
        return mod

    def exec_module(self, module):
        pass


sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, torch_proxy.RedirectFinder)]
for _k in [k for k in sys.modules if k == "torch" or k.startswith("torch.")]:
    del sys.modules[_k]
_alias = _Alias()
sys.meta_path.insert(0, _alias)
mindtorch.__version__ = torch_proxy.TORCH_VERSION
sys.modules["torch"] = mindtorch  # `import torch` returns this
