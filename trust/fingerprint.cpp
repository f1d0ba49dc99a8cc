#include "trust/fingerprint.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "trust/serials.hpp"

namespace cubind {
namespace {

constexpr std::string_view kFormat = "cubind/1";
constexpr char kSeparator = ';', kEscape = '%';
constexpr std::size_t kMaxBytes = 16384;

bool is_plain(char c) { return c >= ' ' && c <= '~' && c != kSeparator && c != kEscape; }

std::string escaped(std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string field;
  for (const char c : text) {
    if (is_plain(c)) {
      field += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      field += {kEscape, kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return field;
}

class Fields {
 public:
  Fields(std::string_view line, const std::string& where) : where_(where) {
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = std::min(line.find(kSeparator, begin), line.size());
      fields_.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  std::size_t size() const { return fields_.size(); }

  std::string text() {
    const std::string_view field = fields_.at(next_++);
    std::string plain;
    for (std::size_t i = 0; i < field.size(); ++i) {
      if (field[i] != kEscape) {
        plain += field[i];
        continue;
      }
      unsigned byte = 0;
      const char* const from = field.data() + i + 1;
      if (i + 2 >= field.size() || std::from_chars(from, from + 2, byte, 16).ptr != from + 2) {
        fail("has a '%' without two hexadecimal digits");
      }
      plain += static_cast<char>(byte);
      i += 2;
    }
    return plain;
  }

  Digest digest() {
    const auto read = Digest::from_hex(fields_.at(next_));
    if (!read) {
      fail(quoted(fields_.at(next_)) + " is not a digest");
    }
    ++next_;
    return *read;
  }

  std::uint64_t number() {
    const std::string_view field = fields_.at(next_++);
    std::uint64_t value = 0;
    const char* const end = field.data() + field.size();
    if (const auto [at, failed] = std::from_chars(field.data(), end, value);
        failed != std::errc() || at != end) {
      fail(quoted(field) + " is not a number");
    }
    return value;
  }

  bool flag() { return number() != 0; }

  std::chrono::system_clock::time_point time() {
    const auto read = parse_iso8601_utc(fields_.at(next_));
    if (!read) {
      fail(quoted(fields_.at(next_)) + " is not a time in UTC");
    }
    ++next_;
    return *read;
  }

  [[noreturn]] void fail(const std::string& cause) const {
    throw Error(ErrorCode::InvalidArgument, where_,
                "is not a fingerprint of the format " + std::string(kFormat) + ": " + cause);
  }

 private:
  const std::string& where_;
  std::vector<std::string_view> fields_;
  std::size_t next_ = 0;
};

constexpr std::size_t kFields = 20;

}  // namespace

std::string print_fingerprint(const Fingerprint& from) {
  const std::vector<std::string> fields{std::string(kFormat),
                                        escaped(from.name_space),
                                        escaped(from.kernel),
                                        from.artifact.hex(),
                                        escaped(from.problem),
                                        escaped(from.bucket),
                                        from.device_class.hex(),
                                        escaped(from.policy),
                                        escaped(from.toolchain),
                                        escaped(from.architecture),
                                        escaped(from.configuration),
                                        escaped(from.numerics),
                                        from.launches.hex(),
                                        from.cubin.hex(),
                                        std::to_string(from.cubin_bytes),
                                        escaped(from.evidence),
                                        from.provisional ? "1" : "0",
                                        escaped(from.issuer),
                                        std::to_string(from.serial),
                                        iso8601_utc(from.expires)};
  return join(fields, std::string_view(&kSeparator, 1));
}

Fingerprint parse_fingerprint(std::string_view line, const std::string& where) {
  Fields fields(line.substr(0, kMaxBytes), where);
  if (fields.size() != kFields || fields.text() != kFormat) {
    fields.fail("it has " + std::to_string(fields.size()) + " fields, of which the first is the format");
  }
  Fingerprint read;
  read.name_space = fields.text();
  read.kernel = fields.text();
  read.artifact = fields.digest();
  read.problem = fields.text();
  read.bucket = fields.text();
  read.device_class = fields.digest();
  read.policy = fields.text();
  read.toolchain = fields.text();
  read.architecture = fields.text();
  read.configuration = fields.text();
  read.numerics = fields.text();
  read.launches = fields.digest();
  read.cubin = fields.digest();
  read.cubin_bytes = fields.number();
  read.evidence = fields.text();
  read.provisional = fields.flag();
  read.issuer = fields.text();
  read.serial = fields.number();
  read.expires = fields.time();
  if (!is_issuer(read.issuer)) {
    fields.fail(quoted(read.issuer) + " is not an issuer");
  }
  if (print_fingerprint(read) != line) {
    fields.fail("it is not written as cubind writes it");
  }
  return read;
}

}  // namespace cubind
