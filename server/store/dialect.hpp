// The SQL of the two engines, where it differs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cubind::store {

enum class Dialect : std::uint8_t { Sqlite, Postgresql };

/// A statement, or a part of one, that the engines spell differently. Empty: the engine has nothing to do.
struct DialectText {
  std::string sqlite, postgresql;

  const std::string& in(Dialect dialect) const { return dialect == Dialect::Sqlite ? sqlite : postgresql; }

  friend DialectText operator+(const DialectText& head, std::string_view tail) {
    return {head.sqlite + std::string(tail), head.postgresql + std::string(tail)};
  }
  friend DialectText operator+(std::string_view head, const DialectText& tail) {
    return {std::string(head) + tail.sqlite, std::string(head) + tail.postgresql};
  }
  friend DialectText operator+(const DialectText& head, const DialectText& tail) {
    return {head.sqlite + tail.sqlite, head.postgresql + tail.postgresql};
  }
};

}  // namespace cubind::store
