#include "tuner/spec/npy.hpp"

#include <charconv>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxAxes = 32;  // as NumPy has

// "/proc/PID/fd/N", or "/FOLDER/x.npy.data": no other file is ever opened for a header.
bool may_be_opened(std::string_view path) {
  constexpr std::string_view kBefore = "/proc/", kBetween = "/fd/", kDigits = "0123456789";
  if (!path.starts_with(kBefore)) {
    return path.starts_with('/') && path.ends_with(".npy.data");
  }
  path.remove_prefix(kBefore.size());
  const std::size_t pid = std::min(path.find_first_not_of(kDigits), path.size());
  const std::string_view rest = path.substr(pid);
  return pid > 0 && rest.starts_with(kBetween) && rest.size() > kBetween.size() &&
         rest.find_first_not_of(kDigits, kBetween.size()) == std::string_view::npos;
}

struct Npy {
  const std::string& where;

  [[noreturn]] void fail(const std::string& cause) const {
    throw Error(ErrorCode::InvalidArgument, where, cause);
  }

  // The header's dict and what follows it.
  std::pair<std::string_view, std::string_view> split(std::string_view text) const {
    if (!text.starts_with(kMagic) || text.size() < kMagic.size() + 4) {
      fail("this is no .npy file: write it with numpy.save()");
    }
    const auto byte = [&](std::size_t at) {
      return static_cast<std::size_t>(static_cast<unsigned char>(text[at]));
    };
    const std::size_t version = byte(kMagic.size());
    if (version < 1 || version > 3) {
      fail("its version is " + std::to_string(version) + ".x, 1 to 3 are known");
    }
    const std::size_t digits = version == 1 ? 2 : 4;
    std::size_t begin = kMagic.size() + 2, length = 0;
    for (std::size_t i = 0; i < digits && begin + i < text.size(); ++i) {
      length |= byte(begin + i) << (8 * i);
    }
    begin += digits;
    if (text.size() < begin || text.size() - begin < length) {
      fail("the file ends within its header");
    }
    return {text.substr(begin, length), text.substr(begin + length)};
  }

  // The text behind 'key': in the header, a dict that NumPy writes.
  std::string_view value_of(std::string_view header, const std::string& key) const {
    const std::size_t at = header.find("'" + key + "':");
    if (at == std::string_view::npos) {
      fail("its header has no " + quoted(key));
    }
    std::string_view rest = header.substr(at + key.size() + 3);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
  }

  // Empty: it is no text.
  std::string_view text_of(std::string_view header, const std::string& key) const {
    const std::string_view rest = value_of(header, key);
    const std::size_t end = rest.find('\'', 1);
    return rest.starts_with('\'') && end != std::string_view::npos ? rest.substr(1, end - 1)
                                                                   : std::string_view();
  }

  DType type_of(std::string_view header) const {
    const std::string_view descr = text_of(header, "descr");
    if (descr.empty()) {
      fail("its elements are records: an array of numbers is meant");
    }
    if (descr == "|b1") {
      return DType::U8;
    }
    if (descr == "<u2") {
      return DType::Bf16;
    }
    const std::optional<DType> type = descr.starts_with('>') ? std::nullopt : parse_dtype(descr);
    if (!type) {
      fail("its elements are of the type " + quoted(descr) + ": little-endian numbers of " +
           join(dtype_names(), ", ") + " are meant, bf16 as uint16");
    }
    return *type;
  }

  std::vector<std::uint64_t> shape_of(std::string_view header) const {
    std::string_view rest = value_of(header, "shape");
    const std::size_t end = rest.find(')');
    if (!rest.starts_with('(') || end == std::string_view::npos) {
      fail("its header has no shape");
    }
    rest = rest.substr(1, end - 1);
    std::vector<std::uint64_t> shape;
    while (rest.find_first_not_of(" ,") != std::string_view::npos) {
      rest.remove_prefix(rest.find_first_not_of(" ,"));
      std::uint64_t axis = 0;
      const auto [stop, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), axis);
      if (failed != std::errc() || shape.size() == kMaxAxes) {
        fail("its shape is not one of numbers");
      }
      rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
      shape.push_back(axis);
    }
    return shape;
  }

  void read_memory(std::string_view header, NpyArray& array) const {
    array.memory = text_of(header, "memory");
    const auto digest = Digest::from_hex(text_of(header, "sha256"));
    if (!may_be_opened(array.memory) || !digest || !array.data.empty()) {
      fail("its header names no file of data, or data follow");
    }
    array.memory_digest = *digest;
  }
};

}  // namespace

NpyArray read_npy(std::string_view text, const std::string& where) {
  const Npy npy{where};
  const auto [header, data] = npy.split(text);
  if (!npy.value_of(header, "fortran_order").starts_with("False")) {
    npy.fail("its order is column-major: save numpy.ascontiguousarray() of it");
  }
  NpyArray array{.type = npy.type_of(header), .shape = npy.shape_of(header), .elements = 1, .data = data};
  for (const std::uint64_t axis : array.shape) {
    if (axis != 0 && array.elements > std::numeric_limits<std::uint32_t>::max() / axis) {
      npy.fail("its shape " + shape_text(array) + " has more elements than a file may");
    }
    array.elements *= axis;
  }
  if (header.find("'memory':") != std::string_view::npos) {
    npy.read_memory(header, array);
    return array;
  }
  if (const std::uint64_t bytes = array.elements * size_of(array.type); bytes != data.size()) {
    npy.fail("its shape " + shape_text(array) + " needs " + std::to_string(bytes) + " bytes, and " +
             std::to_string(data.size()) + " follow the header");
  }
  return array;
}

std::string shape_text(const NpyArray& array) {
  std::vector<std::string> axes;
  for (const std::uint64_t axis : array.shape) {
    axes.push_back(std::to_string(axis));
  }
  return "[" + join(axes, ", ") + "]";
}

}  // namespace cubind
