#include "tuner/plan/answer.hpp"

#include <array>
#include <bit>

namespace cubind {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, kDepartureCount> kDepartures = {
    "bucket", "stale", "other_revision", "nearest_problem", "other_device", "predicted", "default"};
constexpr std::array<std::string_view, 6> kEvidence = {"none",     "predicted", "replayed",
                                                       "imported", "reported",  "measured"};
constexpr std::array<std::string_view, 9> kOutcomes = {"correct",      "constraint",    "compile",
                                                       "launch",       "runtime",       "timeout",
                                                       "wrong_result", "out_of_memory", "unverified"};

template <typename Enum, std::size_t N>
std::optional<Enum> find(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) {
      return static_cast<Enum>(i);
    }
  }
  return std::nullopt;
}

std::uint8_t bit(Departure departure) {
  return static_cast<std::uint8_t>(1u << static_cast<unsigned>(departure));
}

}  // namespace

std::string_view to_string(Departure departure) {
  return kDepartures.at(static_cast<std::size_t>(departure));
}
std::string_view to_string(Evidence evidence) { return kEvidence.at(static_cast<std::size_t>(evidence)); }
std::string_view to_string(Outcome outcome) { return kOutcomes.at(static_cast<std::size_t>(outcome)); }

std::optional<Departure> parse_departure(std::string_view name) { return find<Departure>(kDepartures, name); }
std::optional<Evidence> parse_evidence(std::string_view name) { return find<Evidence>(kEvidence, name); }
std::optional<Outcome> parse_outcome(std::string_view name) { return find<Outcome>(kOutcomes, name); }

Match::Match(std::initializer_list<Departure> departures) {
  for (const Departure departure : departures) {
    add(departure);
  }
}

Match& Match::add(Departure departure) {
  bits_ = static_cast<std::uint8_t>(bits_ | bit(departure));
  return *this;
}

bool Match::has(Departure departure) const { return (bits_ & bit(departure)) != 0; }

std::size_t Match::count() const { return static_cast<std::size_t>(std::popcount(bits_)); }

std::vector<Departure> Match::departures() const {
  std::vector<Departure> members;
  for (std::size_t i = 0; i < kDepartureCount; ++i) {
    if (has(static_cast<Departure>(i))) {
      members.push_back(static_cast<Departure>(i));
    }
  }
  return members;
}

std::strong_ordering Match::operator<=>(const Match& other) const {
  if (const auto by_worst = std::bit_width(bits_) <=> std::bit_width(other.bits_); std::is_neq(by_worst)) {
    return by_worst;
  }
  if (const auto by_count = count() <=> other.count(); std::is_neq(by_count)) {
    return by_count;
  }
  return bits_ <=> other.bits_;
}

Match all_departures() {
  Match all;
  for (std::size_t i = 0; i < kDepartureCount; ++i) {
    all.add(static_cast<Departure>(i));
  }
  return all;
}

std::string to_string(const Match& match) {
  std::string text;
  for (const Departure departure : match.departures()) {
    if (!text.empty()) {
      text += '+';
    }
    text += to_string(departure);
  }
  return text.empty() ? "exact" : text;
}

std::optional<Match> parse_match(std::string_view text) {
  Match match;
  if (text == "exact") {
    return match;
  }
  while (true) {
    const auto plus = text.find('+');
    const auto departure = parse_departure(text.substr(0, plus));
    if (!departure) {
      return std::nullopt;
    }
    match.add(*departure);
    if (plus == std::string_view::npos) {
      return match;
    }
    text.remove_prefix(plus + 1);
  }
}

}  // namespace cubind
