#include "base/request_id.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>

namespace cubind {
namespace {

RequestScope*& innermost() {
  thread_local RequestScope* scope = nullptr;
  return scope;
}

bool is_well_formed(std::string_view id) {
  constexpr std::size_t kLongest = 64;
  return !id.empty() && id.size() <= kLongest && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string made_id() {
  thread_local std::mt19937_64 numbers{std::random_device()()};
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(numbers()));
  return text.data();
}

}  // namespace

RequestId current_request() {
  RequestScope* const scope = innermost();
  if (!scope) {
    return nullptr;
  }
  if (const auto* make = std::exchange(scope->make_, nullptr)) {
    scope->id_ = (*make)();
  }
  return scope->id_;
}

RequestId request_id_from(std::string_view given) {
  return std::make_shared<const std::string>(is_well_formed(given) ? std::string(given) : made_id());
}

RequestScope::RequestScope(RequestId id, const std::function<RequestId()>* make)
    : id_(std::move(id)), make_(make), outer_(std::exchange(innermost(), this)) {}

RequestScope::~RequestScope() { innermost() = outer_; }

}  // namespace cubind
