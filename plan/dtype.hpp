// Element types. One spelling is printed; the spellings of torch, NumPy and Triton are accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cubind {

/// The last five are types of scalars alone: no buffer has such elements.
enum class DType : std::uint8_t {
  F64,
  F32,
  F16,
  Bf16,
  E4m3,
  E5m2,
  I64,
  I32,
  I8,
  U8,
  U64,
  U32,
  I16,
  U16,
  Bool
};

/// Bytes of one element.
std::size_t size_of(DType type);

/// "bf16": the one spelling that cubind prints and keys hold.
std::string_view to_string(DType type);

/// "__nv_bfloat16": it replaces `{T}` in an entry expression.
std::string_view cuda_name(DType type);

/// Accepts "bf16", "bfloat16", "torch.bfloat16", "tl.bfloat16", "fp16", "float16", "half", "np.float16",
/// "float8_e4m3fn",
/// "<f4", ... Case does not matter. Absent for an unknown spelling, and for the bare words "float", "int" and
/// "long", whose size depends on the library.
std::optional<DType> parse_dtype(std::string_view spelling);

/// The same for the type of a scalar: "u32", "torch.uint32", "bool", ... too.
std::optional<DType> parse_scalar_type(std::string_view spelling);

/// Every printed spelling of an element type, for messages.
std::vector<std::string> dtype_names();

/// What to write instead of an unknown spelling, to be appended to a message: `, did you mean "bf16"?`,
/// or for a word that libraries disagree on the types that it may mean. `also`: further names that are known.
std::string dtype_suggestion(std::string_view spelling, std::span<const std::string> also = {});

bool is_floating(DType type);

/// Whether buffers have elements of it.
bool is_element_type(DType type);

/// Whether a scalar of the type can be the number. A floating type takes any, rounded.
bool holds_value(DType type, std::int64_t value);

}  // namespace cubind
