// Arrays of NumPy's .npy files: the data that a user gives an input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "plan/dtype.hpp"

namespace cubind {

struct NpyArray {
  DType type = DType::F32;
  std::vector<std::uint64_t> shape;  // outermost axis first
  std::uint64_t elements = 0;
  std::string_view data;  // of the text that was read: row-major, little-endian
  // Instead of data: what has them on this machine, and their digest. It is a sealed memfd of a process,
  // "/proc/PID/fd/N", named "cubind-DIGEST" in hexadecimal digits, or a file "/FOLDER/NAME.npy.data".
  std::string memory = {};
  Digest memory_digest = {};
};

/// A file of version 1.0 to 3.0 in row-major order, with numbers of an element type or bool (as u8). NumPy
/// has no bfloat16: its bits are an array of uint16. Instead of data a header may have 'memory' and 'sha256',
/// as python/cubind/_host_arrays.py writes them for large arrays. Throws Error(InvalidArgument) at `where`.
NpyArray read_npy(std::string_view text, const std::string& where);

/// "[3, 4]".
std::string shape_text(const NpyArray& array);

}  // namespace cubind
