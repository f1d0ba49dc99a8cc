#include "python/extension/triton_arguments.hpp"

#include <bit>
#include <cmath>
#include <string_view>

#include "plan/narrow_float.hpp"
#include "python/extension/triton_driver.hpp"

namespace cubind::python {
namespace {

using Kind = TritonParameter::Kind;

struct Name {
  std::string_view text;
  Kind kind;
  int bits;
};

constexpr Name kNames[] = {
    {"", Kind::Constant, 0},     {"*", Kind::Pointer, 64},    {"i8", Kind::Byte, 8},
    {"i16", Kind::Signed, 16},   {"i32", Kind::Signed, 32},   {"i64", Kind::Signed, 64},
    {"u8", Kind::Unsigned, 8},   {"u16", Kind::Unsigned, 16}, {"u32", Kind::Unsigned, 32},
    {"u64", Kind::Unsigned, 64}, {"fp16", Kind::Fp16, 16},    {"bf16", Kind::Bf16, 16},
    {"fp32", Kind::Fp32, 32},    {"fp64", Kind::Fp64, 64}};

TritonParameter parameter_of(PyObject* entry) {
  if (PyTuple_Check(entry) != 0) {
    return {Kind::Tuple, 0, triton_parameters(entry)};
  }
  const std::string text = text_of(entry);
  for (const Name& name : kNames) {
    if (name.text == text) {
      return {name.kind, name.bits, {}};
    }
  }
  raise(PyExc_ValueError, "\"" + text + "\" is no type that a launcher packs");
}

[[noreturn]] void refuse_number(const std::string& value, int position, const std::string& type) {
  raise(PyExc_OverflowError, "argument " + std::to_string(position) + ": " + value + " does not fit " + type);
}

std::uint64_t signed_bits(PyObject* object, int bits, int position) {
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    throw PythonError();
  }
  const long long most = static_cast<long long>((1ULL << (bits - 1)) - 1);
  if (value < -most - 1 || value > most) {
    refuse_number(std::to_string(value), position, "i" + std::to_string(bits));
  }
  return static_cast<std::uint64_t>(value);
}

std::uint64_t byte_bits(PyObject* object, int position) {
  const int value = c_int(object);
  if (value < 0 || value > 255) {
    refuse_number(std::to_string(value), position, "0 to 255");
  }
  return static_cast<std::uint64_t>(value);
}

double float_of(PyObject* object) {
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    throw PythonError();
  }
  return value;
}

std::uint64_t fp16_bits(PyObject* object, int position) {
  constexpr std::uint16_t kInfinity = 0x7c00;
  const double value = float_of(object);
  const std::uint16_t bits = encode_narrow(DType::F16, value);
  if ((bits & 0x7fff) == kInfinity && std::isfinite(value)) {
    refuse_number(std::to_string(value), position, "fp16");
  }
  return bits;
}

std::uint32_t fp32_bits(PyObject* object) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(float_of(object)));
}

}  // namespace

std::vector<TritonParameter> triton_parameters(PyObject* names) { return each_of(names, parameter_of); }

std::size_t flat_count(const std::vector<TritonParameter>& parameters) {
  std::size_t count = 0;
  for (const TritonParameter& parameter : parameters) {
    count += parameter.kind == Kind::Tuple ? flat_count(parameter.items) : 1;
  }
  return count;
}

cuda::DevicePtr triton_pointer(const cuda::DriverApi& driver, PyObject* object, int position) {
  if (object == Py_None) {
    return 0;
  }
  if (PyLong_Check(object) != 0) {
    return address_of(object);
  }
  static PyObject* const data_ptr = interned("data_ptr").release();
  PyObject* returned = PyObject_CallMethodObjArgs(object, data_ptr, nullptr);
  if (returned == nullptr) {
    PyErr_Clear();
    raise(PyExc_TypeError, "Pointer argument must be either uint64 or have data_ptr method");
  }
  const Object address = Object::take(returned);
  if (PyLong_Check(returned) == 0) {
    raise(PyExc_TypeError, "data_ptr method of Pointer object must return 64-bit int");
  }
  const cuda::DevicePtr pointer = address_of(returned);
  if (pointer == 0) {
    return 0;
  }
  cuda::DevicePtr on_device = 0;
  const cuda::Result result =
      driver.pointer_get_attribute(&on_device, cuda::PointerAttribute::DevicePointer, pointer);
  if (result == cuda::Result::InvalidValue) {
    raise(PyExc_ValueError, "Pointer argument (at " + std::to_string(position) +
                                ") cannot be accessed from Triton (cpu tensor?)");
  }
  check_as_triton(driver, result);
  return on_device;
}

void TritonArguments::add(std::uint64_t bits) {
  values_[count_] = bits;
  addresses_[count_] = &values_[count_];
  ++count_;
}

void TritonArguments::read(const std::vector<TritonParameter>& parameters, PyObject* const* given) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    read(parameters[i], given[i]);
  }
}

void TritonArguments::read(const TritonParameter& parameter, PyObject* object) {
  if (parameter.kind == Kind::Tuple) {
    read_tuple(parameter, object);
    return;
  }
  const int position = position_++;
  switch (parameter.kind) {
    case Kind::Pointer:
      pointers_[pointer_count_++] = {object, position, count_};
      return add(0);
    case Kind::Byte:
      return add(byte_bits(object, position));
    case Kind::Signed:
      return add(signed_bits(object, parameter.bits, position));
    case Kind::Unsigned:
      return add(low_bits(object));
    case Kind::Fp16:
      return add(fp16_bits(object, position));
    case Kind::Bf16:
      return add(fp32_bits(object) >> 16);
    case Kind::Fp32:
      return add(fp32_bits(object));
    case Kind::Fp64:
      return add(std::bit_cast<std::uint64_t>(float_of(object)));
    default:
      return;
  }
}

void TritonArguments::read_tuple(const TritonParameter& parameter, PyObject* object) {
  Object tuple = PyTuple_Check(object) != 0 ? Object::share(object) : Object::take(PySequence_Tuple(object));
  const std::size_t size = size_of(tuple.get());
  if (size != parameter.items.size()) {
    raise(PyExc_TypeError, "argument " + std::to_string(position_) + " must be a sequence of length " +
                               std::to_string(parameter.items.size()) + ", not " + std::to_string(size));
  }
  for (std::size_t i = 0; i < size; ++i) {
    read(parameter.items[i], PyTuple_GetItem(tuple.get(), static_cast<Py_ssize_t>(i)));
  }
  kept_.push_back(std::move(tuple));
}

void TritonArguments::resolve_pointers(const cuda::DriverApi& driver) {
  for (std::size_t i = 0; i < pointer_count_; ++i) {
    values_[pointers_[i].value] = triton_pointer(driver, pointers_[i].object, pointers_[i].position);
  }
}

}  // namespace cubind::python
