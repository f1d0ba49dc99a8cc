#include "server/store/connection.hpp"

#include <cmath>

#include "base/text.hpp"

namespace cubind::store {

bool Statement::step() {
  next_column_ = 0;
  return prepared_.step();
}

void Statement::run() {
  while (step()) {
  }
}

double Statement::real() {
  const double value = prepared_.real(next_column_++);
  if (!std::isfinite(value)) {
    throw Error(ErrorCode::DataLoss, "", "is not a finite number");
  }
  return value;
}

std::string Statement::text() {
  std::string text(prepared_.text(next_column_++));
  // A protobuf string with such a byte is written and never read.
  if (valid_utf8(text) != text) {
    throw Error(ErrorCode::DataLoss, "", "is not in UTF-8: " + quoted(valid_utf8(text)));
  }
  return text;
}

Digest Statement::digest() {
  const auto digest = Digest::from_bytes(prepared_.blob(next_column_++));
  if (!digest) {
    throw Error(ErrorCode::DataLoss, "", "holds no digest of 32 bytes");
  }
  return *digest;
}

bool Statement::skip_null() {
  const bool is_null = prepared_.is_null(next_column_);
  next_column_ += is_null ? 1 : 0;
  return is_null;
}

std::optional<std::string> Statement::optional_blob() {
  return skip_null() ? std::nullopt : std::optional(blob());
}

std::optional<std::uint64_t> Statement::optional_unsigned() {
  return skip_null() ? std::nullopt : std::optional(unsigned_integer());
}

Value Statement::value() {
  switch (prepared_.kind(next_column_)) {
    case ValueKind::Integer:
      return integer();
    case ValueKind::Real:
      return real();
    case ValueKind::Text:
      return text();
    case ValueKind::Bytes:
      return RawBytes{blob()};
    case ValueKind::Null:
      break;
  }
  ++next_column_;
  return {};
}

std::vector<Value> Statement::values(std::size_t count) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(value());
  }
  return values;
}

std::string Statement::row_name(std::size_t columns) {
  std::string name;
  for (int i = 0; i < static_cast<int>(columns); ++i) {
    const std::string part(prepared_.blob(i));
    const bool is_digest = prepared_.kind(i) == ValueKind::Bytes;
    name.append(i == 0 ? "" : "/")
        .append(is_digest ? Digest::from_bytes(part).value_or(Digest{}).hex() : part);
  }
  return name;
}

}  // namespace cubind::store
