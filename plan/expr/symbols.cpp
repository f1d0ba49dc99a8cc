#include "base/text.hpp"
#include "plan/expr/expression.hpp"

namespace cubind {

std::optional<std::int64_t> literal_type_size(std::string_view type) {
  static constexpr std::pair<std::string_view, std::int64_t> kSizes[] = {
      {"f64", 8},  {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"e4m3", 1},
      {"e5m2", 1}, {"i64", 8}, {"i32", 4}, {"i8", 1},   {"u8", 1}};
  for (const auto& [name, bytes] : kSizes) {
    if (name == type) {
      return bytes;
    }
  }
  return std::nullopt;
}

std::string sizeof_variable(std::string_view type) { return "sizeof(" + std::string(type) + ")"; }

SymbolTable::SymbolTable(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    add(name);
  }
}

std::size_t SymbolTable::add(std::string_view name) {
  const std::size_t slot = names_.size();
  if (!slots_.emplace(std::string(name), slot).second) {
    throw Error(ErrorCode::AlreadyExists, "symbols", quoted(name) + " is declared twice");
  }
  names_.emplace_back(name);
  return slot;
}

std::optional<std::size_t> SymbolTable::find(std::string_view name) const {
  const auto found = slots_.find(name);
  return found == slots_.end() ? std::nullopt : std::optional(found->second);
}

Scope::Scope(std::initializer_list<std::pair<std::string_view, std::int64_t>> values) {
  for (const auto& [name, value] : values) {
    set(name, value);
  }
}

void Scope::set(std::string_view name, std::int64_t value) {
  values_.insert_or_assign(std::string(name), value);
}

std::optional<std::int64_t> Scope::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> Scope::names() const {
  std::vector<std::string> names;
  for (const auto& [name, unused] : values_) {
    names.push_back(name);
  }
  return names;
}

}  // namespace cubind
