// Arguments of a kernel as the launchers pack them that Triton generates in C.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cuda_api/driver_api.hpp"
#include "python/extension/python_object.hpp"

namespace cubind::python {

/// One entry of a signature. Triton's types have these names, but for what differs between its versions:
///   ""                            compiled in: takes an argument and packs none
///   "*"                           pointer
///   "i8"                          0 to 255, as Triton reads it
///   "i16" "i32" "i64"             within the type's range
///   "u8" "u16" "u32" "u64"        the low bits of any int
///   "fp16" "fp32" "fp64"          rounded to nearest even; "fp16" refuses what is beyond its range
///   "bf16"                        cut off
///   a tuple of entries            a tuple of arguments
struct TritonParameter {
  enum class Kind : std::uint8_t { Constant, Pointer, Byte, Signed, Unsigned, Fp16, Bf16, Fp32, Fp64, Tuple };

  Kind kind = Kind::Constant;
  int bits = 0;  // of Signed
  std::vector<TritonParameter> items;
};

/// Throws PythonError with a ValueError for any other name.
std::vector<TritonParameter> triton_parameters(PyObject* names);
/// Of all tuples.
std::size_t flat_count(const std::vector<TritonParameter>& parameters);

/// What an argument points to: an int, None, or an object with data_ptr(), which must be memory that the GPU
/// can access. `position` is for the message. Throws PythonError with Triton's exception.
cuda::DevicePtr triton_pointer(const cuda::DriverApi& driver, PyObject* object, int position);

/// The parameters of one launch.
class TritonArguments {
 public:
  static constexpr std::size_t kMost = 256;
  static constexpr std::size_t kAreas = 2;  // of scratch memory, whose addresses may be added

  /// Packs the numbers, and finds what is a pointer. `given` has as many objects as there are `parameters`,
  /// with at most kMost entries. Throws PythonError for what is no such number.
  void read(const std::vector<TritonParameter>& parameters, PyObject* const* given);
  void resolve_pointers(const cuda::DriverApi& driver);
  void add(std::uint64_t bits);

  /// For the driver: valid while this lives.
  void** parameters() { return addresses_.data(); }

 private:
  struct Pointer {
    PyObject* object;
    int position;
    std::size_t value;
  };

  void read(const TritonParameter& parameter, PyObject* object);
  void read_tuple(const TritonParameter& parameter, PyObject* object);

  // Not initialized: a launch fills a few.
  std::array<std::uint64_t, kMost + kAreas> values_;  // in the low bytes
  std::array<void*, kMost + kAreas> addresses_;
  std::array<Pointer, kMost> pointers_;
  std::size_t count_ = 0, pointer_count_ = 0;
  int position_ = 0;          // among the flat arguments
  std::vector<Object> kept_;  // the tuples, until the pointers among their items are resolved
};

}  // namespace cubind::python
