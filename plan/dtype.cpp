#include "plan/dtype.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace cubind {
namespace {

struct TypeFacts {
  DType type;
  std::string_view name;
  std::string_view cuda;
  std::size_t size;
  bool floating;
};

// In the order of the enumerators. NVRTC knows int8_t only with a header, so the plain C++ types are printed.
constexpr std::array<TypeFacts, 15> kTypes{{
    {DType::F64, "f64", "double", 8, true},
    {DType::F32, "f32", "float", 4, true},
    {DType::F16, "f16", "__half", 2, true},
    {DType::Bf16, "bf16", "__nv_bfloat16", 2, true},
    {DType::E4m3, "e4m3", "__nv_fp8_e4m3", 1, true},
    {DType::E5m2, "e5m2", "__nv_fp8_e5m2", 1, true},
    {DType::I64, "i64", "long long", 8, false},
    {DType::I32, "i32", "int", 4, false},
    {DType::I8, "i8", "signed char", 1, false},
    {DType::U8, "u8", "unsigned char", 1, false},
    {DType::U64, "u64", "unsigned long long", 8, false},
    {DType::U32, "u32", "unsigned int", 4, false},
    {DType::I16, "i16", "short", 2, false},
    {DType::U16, "u16", "unsigned short", 2, false},
    {DType::Bool, "bool", "bool", 1, false},
}};
constexpr std::size_t kElementTypes = 10;

struct Spelling {
  std::string_view text;
  DType type;
};

// Names that follow the prefix of a library or stand alone, but for those of kAmbiguous.
constexpr Spelling kSpellings[] = {
    {"float64", DType::F64},        {"double", DType::F64},
    {"fp64", DType::F64},           {"float32", DType::F32},
    {"single", DType::F32},         {"fp32", DType::F32},
    {"float16", DType::F16},        {"half", DType::F16},
    {"fp16", DType::F16},           {"__half", DType::F16},
    {"bfloat16", DType::Bf16},      {"__nv_bfloat16", DType::Bf16},
    {"float8_e4m3fn", DType::E4m3}, {"float8e4nv", DType::E4m3},
    {"fp8e4nv", DType::E4m3},       {"e4m3fn", DType::E4m3},
    {"__nv_fp8_e4m3", DType::E4m3}, {"float8_e5m2", DType::E5m2},
    {"float8e5", DType::E5m2},      {"fp8e5", DType::E5m2},
    {"__nv_fp8_e5m2", DType::E5m2}, {"int64", DType::I64},
    {"longlong", DType::I64},       {"int32", DType::I32},
    {"intc", DType::I32},           {"int8", DType::I8},
    {"uint8", DType::U8},           {"ubyte", DType::U8},
};

struct Ambiguous {
  std::string_view text, types;
};

// Alone they mean different types in different libraries.
constexpr Ambiguous kAmbiguous[] = {
    {"float", "f32 (torch, C) or f64 (NumPy, Python)"},
    {"int", "i32 (torch, C) or i64 (NumPy)"},
    {"long", "i64 (torch, C on Linux) or i32 (C on Windows)"},
    {"byte", "i8 (NumPy) or u8 (torch)"},
    {"float8_e4m3", "e4m3 (finite only, as in CUDA; in ml_dtypes it is another format)"},
};

constexpr Spelling kScalarSpellings[] = {
    {"uint64", DType::U64}, {"uint32", DType::U32}, {"int16", DType::I16},
    {"uint16", DType::U16}, {"u64", DType::U64},    {"u32", DType::U32},
    {"i16", DType::I16},    {"u16", DType::U16},    {"bool", DType::Bool}};

// Only with the library's prefix.
constexpr Spelling kTorchSpellings[] = {{"float", DType::F32}, {"int", DType::I32}, {"long", DType::I64}};
constexpr Spelling kNumpySpellings[] = {{"byte", DType::I8}, {"intp", DType::I64}, {"float_", DType::F64}};

// NumPy's array protocol: '<' or '=' little-endian and native, '|' for single bytes. Without the sign "i8" is
// eight bits here and eight bytes there, so the sign is needed.
constexpr Spelling kArrayProtocol[] = {
    {"f8", DType::F64}, {"f4", DType::F32}, {"f2", DType::F16}, {"i8", DType::I64},
    {"i4", DType::I32}, {"i1", DType::I8},  {"u1", DType::U8},
};

constexpr std::string_view kPrefixes[] = {"torch.",     "tl.",  "triton.language.", "np.", "numpy.",
                                          "ml_dtypes.", "jnp.", "jax.numpy."};

template <std::size_t N>
std::optional<DType> find(const Spelling (&spellings)[N], std::string_view text) {
  for (const Spelling& spelling : spellings) {
    if (spelling.text == text) {
      return spelling.type;
    }
  }
  return std::nullopt;
}

std::string_view library_prefix(std::string_view text) {
  for (const std::string_view prefix : kPrefixes) {
    if (text.starts_with(prefix)) {
      return prefix;
    }
  }
  return {};
}

// Python's printed form of a NumPy type: dtype('float16'), dtype(bfloat16), <class 'numpy.float16'>.
std::string_view unwrapped(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kWrappings[] = {
      {"dtype(", ")"}, {"np.dtype(", ")"}, {"numpy.dtype(", ")"}, {"<class ", ">"}};
  for (const auto& [open, close] : kWrappings) {
    if (text.size() > open.size() + close.size() && text.starts_with(open) && text.ends_with(close)) {
      text = text.substr(open.size(), text.size() - open.size() - close.size());
      const bool in_quotes =
          text.size() > 2 && text.front() == text.back() && (text.front() == '\'' || text.front() == '"');
      return in_quotes ? text.substr(1, text.size() - 2) : text;
    }
  }
  return text;
}

std::string lowered(std::string_view spelling) {
  std::string lower(spelling);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

const TypeFacts& facts(DType type) { return kTypes.at(static_cast<std::size_t>(type)); }

}  // namespace

std::size_t size_of(DType type) { return facts(type).size; }

std::string_view to_string(DType type) { return facts(type).name; }

std::string_view cuda_name(DType type) { return facts(type).cuda; }

bool is_floating(DType type) { return facts(type).floating; }

bool is_element_type(DType type) { return static_cast<std::size_t>(type) < kElementTypes; }

bool holds_value(DType type, std::int64_t value) {
  switch (type) {
    case DType::I32:
      return std::in_range<std::int32_t>(value);
    case DType::I8:
      return std::in_range<std::int8_t>(value);
    case DType::U8:
      return std::in_range<std::uint8_t>(value);
    case DType::U64:
      return std::in_range<std::uint64_t>(value);
    case DType::U32:
      return std::in_range<std::uint32_t>(value);
    case DType::I16:
      return std::in_range<std::int16_t>(value);
    case DType::U16:
      return std::in_range<std::uint16_t>(value);
    case DType::Bool:
      return value == 0 || value == 1;
    default:
      return true;
  }
}

std::optional<DType> parse_dtype(std::string_view spelling) {
  const std::string lower = lowered(spelling);
  std::string_view text = unwrapped(lower);
  for (const TypeFacts& type : kTypes) {
    if (text == type.name && is_element_type(type.type)) {
      return type.type;
    }
  }
  if (!text.empty() && std::string_view("<=|").find(text.front()) != std::string_view::npos) {
    return find(kArrayProtocol, text.substr(1));
  }
  const std::string_view prefix = library_prefix(text);
  text.remove_prefix(prefix.size());
  std::optional<DType> type;
  if (prefix == "torch.") {
    type = find(kTorchSpellings, text);
  } else if (prefix == "np." || prefix == "numpy.") {
    type = find(kNumpySpellings, text);
  }
  return type ? type : find(kSpellings, text);
}

std::optional<DType> parse_scalar_type(std::string_view spelling) {
  if (const auto type = parse_dtype(spelling)) {
    return type;
  }
  const std::string lower = lowered(spelling);
  std::string_view text = unwrapped(lower);
  text.remove_prefix(library_prefix(text).size());
  return find(kScalarSpellings, text);
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const TypeFacts& type : kTypes) {
    if (is_element_type(type.type)) {
      names.emplace_back(type.name);
    }
  }
  return names;
}

std::string dtype_suggestion(std::string_view spelling, std::span<const std::string> also) {
  const std::string lower = lowered(spelling);
  const auto* const ambiguous = std::ranges::find(kAmbiguous, std::string_view(lower), &Ambiguous::text);
  if (ambiguous != std::end(kAmbiguous)) {
    return ": libraries disagree on it, write " + std::string(ambiguous->types);
  }
  std::vector<std::string> known = dtype_names();
  known.insert(known.end(), also.begin(), also.end());
  return suggestion(spelling, known);
}

}  // namespace cubind
