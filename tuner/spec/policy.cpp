// Policies and numerics as text: keys and tables hold it.
#include <charconv>

#include "tuner/spec/keys.hpp"

namespace cubind {

Policy as_measured_today(Policy policy) {
  policy.flush_method = kFlushMethod;
  return policy;
}

std::string to_string(const Policy& policy) {
  const std::string cache = policy.warm_l2 ? "warm" : "cold/" + std::to_string(policy.flush_method);
  return cache + (policy.graph_launch ? ",graph" : ",stream");
}

std::optional<Policy> parse_policy(std::string_view text) {
  Policy policy;
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view cache = text.substr(0, comma);
  policy.warm_l2 = cache == "warm";
  policy.graph_launch = text.substr(comma + 1) == "graph";
  if (cache.starts_with("cold/")) {
    std::from_chars(cache.data() + 5, cache.data() + cache.size(), policy.flush_method);
  }
  if (to_string(policy) != text) {
    return std::nullopt;
  }
  return policy;
}

std::string to_string(const Numerics& numerics) {
  switch (numerics.kind) {
    case Numerics::Kind::Tolerance:
      return "tolerance";
    case Numerics::Kind::Reproducible:
      return "reproducible";
    case Numerics::Kind::Invariant:
      break;
  }
  return "invariant:" + numerics.invariant_dim;
}

std::optional<Numerics> parse_numerics(std::string_view text) {
  constexpr std::string_view kInvariant = "invariant:";
  if (text == "tolerance") {
    return Numerics{};
  }
  if (text == "reproducible") {
    return Numerics{Numerics::Kind::Reproducible, ""};
  }
  if (!text.starts_with(kInvariant) || text.size() == kInvariant.size()) {
    return std::nullopt;
  }
  return Numerics{Numerics::Kind::Invariant, std::string(text.substr(kInvariant.size()))};
}

}  // namespace cubind
