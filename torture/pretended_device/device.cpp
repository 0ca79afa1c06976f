// A device that lies in this machine's memory, at addresses from which the host cannot read.
//
// What computes with its tensors is the CPU, by PyTorch's fallback; its backward runs on a thread of its own, as that of
// every device does. Launches of operations and read-backs are counted.

#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>
#include <torch/library.h>

#include <atomic>

using c10::Device, c10::DeviceIndex, c10::DeviceType, c10::IntArrayRef, c10::Stream;

constexpr auto KIND = DeviceType::PrivateUse1;
// Between the address that a tensor has and where its elements are.
constexpr intptr_t SHIFT = intptr_t(1) << 46;

static std::atomic<int64_t> launches{0}, read_backs{0};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return KIND; }
  Device exchangeDevice(Device) const override { return getDevice(); }
  Device getDevice() const override { return Device(KIND, 0); }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const override { return Stream(Stream::DEFAULT, getDevice()); }
  Stream getDefaultStream(Device device) const override { return getStream(device); }
  Stream exchangeStream(Stream stream) const override { return stream; }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  bool isAvailable() const override { return true; }
};
static Hooks hooks;

struct Allocator final : c10::Allocator {
  static void nothing(void*) {}

  c10::DataPtr allocate(size_t size) override {
    if (!size) return {nullptr, nullptr, &nothing, Device(KIND, 0)};
    void* there = malloc(size);
    memset(there, 0x7f, size);  // what is read before it was written is seen
    return {reinterpret_cast<char*>(there) + SHIFT, there, &free, Device(KIND, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, size_t size) const override {
    memcpy(static_cast<char*>(to) - SHIFT, static_cast<const char*>(from) - SHIFT, size);
  }
};
static Allocator allocator;
REGISTER_ALLOCATOR(KIND, &allocator);

static const c10::DispatchKeySet KEYS(c10::DispatchKey::PrivateUse1);

static at::Tensor empty(
    IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>, std::optional<Device>,
    std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, KEYS, c10::dtype_or_default(dtype), format);
}

static at::Tensor empty_strided(
    IntArrayRef size, IntArrayRef strides, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, strides, &allocator, KEYS, c10::dtype_or_default(dtype));
}

// The elements of a tensor as the CPU finds them.
static at::Tensor where_it_is(const at::Tensor& tensor) {
  auto options = tensor.options().device(at::kCPU);
  if (tensor.device().type() != KIND) return tensor;
  if (!tensor.numel()) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  return at::from_blob(static_cast<char*>(tensor.data_ptr()) - SHIFT, tensor.sizes(), tensor.strides(), options);
}

static at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  (to.is_cpu() ? read_backs : launches)++;
  if (from.numel()) where_it_is(to).copy_(where_it_is(from));
  return to;
}

static at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

static const at::Tensor& resize(const at::Tensor& tensor, IntArrayRef size, std::optional<at::MemoryFormat>) {
  auto storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  size_t bytes = (c10::multiply_integers(size) + tensor.storage_offset()) * tensor.element_size();
  if (bytes > storage->nbytes()) {
    storage->set_data_ptr_noswap(allocator.allocate(bytes));
    storage->set_nbytes(bytes);
  }
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return tensor;
}

static at::Tensor& set_storage(at::Tensor& tensor, at::Storage storage, int64_t offset, IntArrayRef size, IntArrayRef strides) {
  return at::native::set_storage_cpu_(tensor, std::move(storage), offset, size, strides);
}

// One launch, whatever the CPU copies for it; a number that a script asks for is one read-back.
static void on_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  bool is_read = operation.schema().name() == "aten::_local_scalar_dense";
  int64_t launched = launches + !is_read, read = read_backs + is_read;
  at::native::cpu_fallback(operation, stack);
  launches = launched;
  read_backs = read;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, library) { library.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) { library.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("resize_", &resize);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("view", static_cast<at::Tensor (*)(const at::Tensor&, IntArrayRef)>(&at::native::view));
  library.impl("view_as_real", at::native::view_as_real);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  at::RegisterPrivateUse1HooksInterface(&hooks);
  module.def("counts", [] { return std::make_tuple(launches.load(), read_backs.load()); });
}
