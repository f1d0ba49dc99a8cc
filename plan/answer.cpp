#include "plan/answer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/error.hpp"

namespace cubind {
namespace {

template <typename Enum>
using Named = std::pair<Enum, std::string_view>;

// Mildest first.
constexpr auto kDepartures = std::to_array<Named<Departure>>({{Departure::Bucket, "bucket"},
                                                              {Departure::Stale, "stale"},
                                                              {Departure::OtherRevision, "other_revision"},
                                                              {Departure::NearestProblem, "nearest_problem"},
                                                              {Departure::OtherDevice, "other_device"},
                                                              {Departure::Default, "default"}});
constexpr auto kEvidence = std::to_array<Named<Evidence>>({{Evidence::None, "none"},
                                                           {Evidence::Shipped, "shipped"},
                                                           {Evidence::Replayed, "replayed"},
                                                           {Evidence::Imported, "imported"},
                                                           {Evidence::Measured, "measured"}});
constexpr auto kOutcomes = std::to_array<Named<Outcome>>({{Outcome::Correct, "correct"},
                                                          {Outcome::Constraint, "constraint"},
                                                          {Outcome::Compile, "compile"},
                                                          {Outcome::Launch, "launch"},
                                                          {Outcome::Runtime, "runtime"},
                                                          {Outcome::Timeout, "timeout"},
                                                          {Outcome::WrongResult, "wrong_result"},
                                                          {Outcome::OutOfMemory, "out_of_memory"},
                                                          {Outcome::Unverified, "unverified"}});

template <typename Enum, std::size_t N>
std::string_view name_of(const std::array<Named<Enum>, N>& names, Enum value) {
  const auto found = std::ranges::find(names, value, &Named<Enum>::first);
  return found == names.end() ? throw Error(ErrorCode::Internal, "enumerator", "has no name") : found->second;
}

template <typename Enum, std::size_t N>
std::optional<Enum> find(const std::array<Named<Enum>, N>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &Named<Enum>::second);
  return found == names.end() ? std::nullopt : std::optional(found->first);
}

std::uint8_t bit(Departure departure) {
  return static_cast<std::uint8_t>(1u << static_cast<unsigned>(departure));
}

}  // namespace

std::string_view to_string(Departure departure) { return name_of(kDepartures, departure); }
std::string_view to_string(Evidence evidence) { return name_of(kEvidence, evidence); }
std::string_view to_string(Outcome outcome) { return name_of(kOutcomes, outcome); }

std::optional<Departure> parse_departure(std::string_view name) { return find(kDepartures, name); }
std::optional<Evidence> parse_evidence(std::string_view name) { return find(kEvidence, name); }
std::optional<Outcome> parse_outcome(std::string_view name) { return find(kOutcomes, name); }

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
  for (const auto& [departure, name] : kDepartures) {
    if (has(departure)) {
      members.push_back(departure);
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
  for (const auto& [departure, name] : kDepartures) {
    all.add(departure);
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
