#include "bundle/archive.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

constexpr std::size_t kBlock = 512;

/// The header of POSIX's ustar format. Numbers are octal texts.
struct Header {
  std::array<char, 100> name{};
  std::array<char, 8> mode{}, user{}, group{};
  std::array<char, 12> size{}, modified{};
  std::array<char, 8> checksum{};
  char type = '\0';
  std::array<char, 100> link{};
  std::array<char, 8> magic{};
  std::array<char, 64> owners{};
  std::array<char, 16> device{};
  std::array<char, 155> prefix{};
  std::array<char, 12> padding{};
};
static_assert(sizeof(Header) == kBlock);

constexpr std::string_view kMagic{"ustar\00000", 8};

template <std::size_t Size>
std::string text_of(const std::array<char, Size>& field) {
  return {field.begin(), std::ranges::find(field, '\0')};
}

template <std::size_t Size>
void put(std::array<char, Size>& field, std::string_view text) {
  std::ranges::copy(text, field.begin());
}

template <std::size_t Size>
void put_number(std::array<char, Size>& field, std::uint64_t value) {
  for (std::size_t i = Size - 1; i-- > 0; value >>= 3) {
    field[i] = static_cast<char>('0' + (value & 7));
  }
}

/// Counts the checksum's own field as spaces.
std::uint64_t checksum_of(Header header) {
  header.checksum.fill(' ');
  std::array<unsigned char, kBlock> bytes{};
  std::memcpy(bytes.data(), &header, kBlock);
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

std::string header_of(const std::string& path, std::uint64_t size) {
  Header header;
  // A name that is too long is split at a slash.
  const std::size_t slash = path.size() <= header.name.size()
                                ? std::string::npos
                                : path.find('/', path.size() - header.name.size() - 1);
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  if (path.size() - name > header.name.size() || name > header.prefix.size() + 1) {
    throw Error(ErrorCode::InvalidArgument, quoted(path), "is too long a path for a tar archive");
  }
  put(header.name, std::string_view(path).substr(name));
  put(header.prefix, std::string_view(path).substr(0, name == 0 ? 0 : name - 1));
  put_number(header.mode, 0644);
  put_number(header.user, 0);
  put_number(header.group, 0);
  put_number(header.size, size);
  put_number(header.modified, 0);
  header.type = '0';
  put(header.magic, kMagic);
  put_number(header.checksum, checksum_of(header));
  return {reinterpret_cast<const char*>(&header), kBlock};
}

class TarReader {
 public:
  TarReader(std::string_view bytes, const std::string& where, const ArchiveLimits& limits)
      : rest_(bytes), where_(where), limits_(limits) {}

  Members read() {
    while (const auto header = next_header()) {
      const std::string_view content = take(number(header->size));
      take((kBlock - content.size() % kBlock) % kBlock);
      add(*header, content);
    }
    return std::move(members_);
  }

 private:
  [[noreturn]] void refuse(const std::string& cause) const {
    throw Error(ErrorCode::DataLoss, where_,
                "is not a whole tar archive: it was cut off, or is another file (" + cause + ")");
  }

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) {
      refuse("it ends within a member");
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  /// Absent at the end, which is two blocks of zeros; nothing but more of them follows.
  std::optional<Header> next_header() {
    const std::string_view block = take(kBlock);
    if (block.find_first_not_of('\0') == std::string_view::npos) {
      if (rest_.empty() || rest_.size() % kBlock != 0) {
        refuse("its end is not whole");
      }
      if (rest_.find_first_not_of('\0') != std::string_view::npos) {
        refuse("bytes follow its end");
      }
      return std::nullopt;
    }
    Header header;
    std::memcpy(&header, block.data(), kBlock);
    if (std::string_view(header.magic.data(), 5) != kMagic.substr(0, 5) ||
        number(header.checksum) != checksum_of(header)) {
      refuse("a header is damaged");
    }
    return header;
  }

  template <std::size_t Size>
  std::uint64_t number(const std::array<char, Size>& field) const {
    const std::string text = text_of(field);
    const std::size_t begin = text.find_first_not_of(' ');
    const std::size_t end = text.find_last_not_of(' ') + 1;
    std::uint64_t value = 0;
    if (begin == std::string::npos ||
        std::from_chars(text.data() + begin, text.data() + end, value, 8).ptr != text.data() + end) {
      refuse("a number of a header is damaged");
    }
    return value;
  }

  void add(const Header& header, std::string_view content) {
    const std::string prefix = text_of(header.prefix);
    const std::string path = (prefix.empty() ? "" : prefix + "/") + text_of(header.name);
    const std::string where = where_ + " " + quoted(valid_utf8(path));
    if (header.type == '5') {  // a folder
      return;
    }
    if (header.type == 'g' || header.type == 'x') {
      check_extensions(content, where);
      return;
    }
    if (!is_member_path(path)) {
      throw Error(ErrorCode::InvalidArgument, where, "is not a path below the archive");
    }
    if (header.type != '0' && header.type != '\0') {
      throw Error(ErrorCode::InvalidArgument, where, "is a link or a device, where files alone are allowed");
    }
    if (members_.size() >= limits_.members) {
      throw Error(ErrorCode::ResourceExhausted, where_,
                  "has more than " + std::to_string(limits_.members) + " members");
    }
    bytes_ += content.size();
    if (bytes_ > limits_.bytes) {
      throw Error(ErrorCode::ResourceExhausted, where_,
                  "has more than " + std::to_string(limits_.bytes) + " bytes");
    }
    if (!members_.try_emplace(path, content).second) {
      throw Error(ErrorCode::InvalidArgument, where, "is there twice");
    }
  }

  /// pax: dates and owners do not matter. What would change a member's name or size is refused.
  void check_extensions(std::string_view content, const std::string& where) const {
    for (const std::string_view word : {" path=", " size=", " linkpath=", " GNU."}) {
      if (content.find(word) != std::string_view::npos) {
        throw Error(ErrorCode::InvalidArgument, where,
                    "is a pax header with" + std::string(word) + ", which is not read");
      }
    }
  }

  std::string_view rest_;
  const std::string& where_;
  const ArchiveLimits& limits_;
  Members members_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

bool is_member_path(std::string_view path) {
  const std::filesystem::path read(path);
  return !path.empty() && path.find('\\') == std::string_view::npos &&
         path.find('\0') == std::string_view::npos && read.is_relative() &&
         read.lexically_normal().native() == path && *read.begin() != ".." && *read.begin() != "." &&
         !path.ends_with('/');
}

std::string write_tar(const Members& members) {
  std::string text;
  for (const auto& [path, content] : members) {
    text += header_of(path, content.size());
    text += content;
    text.resize((text.size() + kBlock - 1) / kBlock * kBlock);
  }
  return text + std::string(2 * kBlock, '\0');
}

Members read_tar(std::string_view bytes, const std::string& where, const ArchiveLimits& limits) {
  return TarReader(bytes, where, limits).read();
}

}  // namespace cubind
