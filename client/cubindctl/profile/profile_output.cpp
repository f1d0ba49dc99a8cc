#include "client/cubindctl/profile/profile_output.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/terminal/text_wrap.hpp"
#include "client/cubindctl/tune/progress_bar.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

constexpr std::size_t kTopStalls = 3;

std::string megabytes(double bytes) { return fixed(bytes * 1e-6, 2); }

std::string share_or_dash(const std::optional<double>& share) { return share ? percent(*share, 0) : "-"; }

// The median when it was tuned; absent if this problem was not measured.
std::optional<double> tuned_us(const Answer& answer) {
  const v1::Provenance& provenance = answer.reply().provenance();
  const bool is_measured =
      provenance.timing().samples() > 0 &&
      problem_from_wire(provenance.measured_problem(), "measured_problem") == answer.problem();
  return is_measured ? std::optional(provenance.timing().median_us()) : std::nullopt;
}

std::string occupancy_text(const ProfiledLaunch& launch) {
  return percent(launch.occupancy, 0) +
         (launch.occupancy_limit ? " of " + percent(*launch.occupancy_limit, 0) : "");
}

std::string limit_text(const ProfiledLaunch& launch) {
  return launch.block_limits.empty()
             ? "-"
             : launch.block_limits.front().resource + " " + fixed(launch.block_limits.front().blocks, 0);
}

std::string stalls_text(const ProfiledLaunch& launch) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kTopStalls, launch.stalls.size()); ++i) {
    parts.push_back(launch.stalls[i].reason + " " + fixed(launch.stalls[i].cycles, 1));
  }
  return parts.empty() ? "-" : join(parts, ", ");
}

std::string entry_of(const Answer& answer, const std::string& symbol) {
  const std::vector<Launch>& launches = answer.plan().launches;
  const auto found = std::ranges::find(launches, symbol, &Launch::entry_symbol);
  return found == launches.end() ? symbol : found->entry;
}

// "33.56 MB (the kernel moves 1.01 x)".
std::string compared(const VariantProfile& profile, std::uint64_t bytes) {
  const auto other = static_cast<double>(bytes);
  return megabytes(other) + " MB" +
         (bytes > 0 ? " (the kernel moves " + fixed(profile.moved_bytes() / other, 2) + " x)" : "");
}

void print_launches(std::ostream& out, const VariantProfile& profile, const Answer& answer,
                    std::size_t columns, const std::string& prefix) {
  TextTable table({">TIME_US", ">?READ_MB", ">?WRITTEN_MB", ">MEMORY", ">SMS", ">??TENSOR_CORES",
                   ">??REGISTERS", ">OCCUPANCY", "?BLOCKS_PER_SM", "?STALLS", "LAUNCH"});
  for (const ProfiledLaunch& launch : profile.launches) {
    table.add({fixed(launch.time_us, 2), megabytes(launch.read_bytes), megabytes(launch.write_bytes),
               percent(launch.memory_share, 0), percent(launch.sm_share, 0),
               share_or_dash(launch.tensor_share), launch.registers ? fixed(*launch.registers, 0) : "-",
               occupancy_text(launch), limit_text(launch), stalls_text(launch),
               entry_of(answer, launch.entry_symbol)});
  }
  table.print(out, columns, prefix + "  ");
}

template <typename Value>
void add_known(OutputJson& json, const char* name, const std::optional<Value>& value) {
  if (value) {
    json[name] = *value;
  }
}

OutputJson launch_json(const ProfiledLaunch& launch, const Answer& answer) {
  OutputJson json = {{"entry", entry_of(answer, launch.entry_symbol)},
                     {"entry_symbol", launch.entry_symbol},
                     {"time_us", launch.time_us},
                     {"read_bytes", launch.read_bytes},
                     {"write_bytes", launch.write_bytes},
                     {"memory_ratio", launch.memory_share},
                     {"sm_ratio", launch.sm_share}};
  add_known(json, "tensor_cores_ratio", launch.tensor_share);
  json["occupancy_ratio"] = launch.occupancy;
  add_known(json, "occupancy_limit_ratio", launch.occupancy_limit);
  add_known(json, "waves", launch.waves);
  add_known(json, "registers", launch.registers);
  json["blocks_per_sm"] = OutputJson::object();
  for (const BlockLimit& limit : launch.block_limits) {
    json["blocks_per_sm"][limit.resource] = limit.blocks;
  }
  json["stalls"] = OutputJson::array();
  for (const Stall& stall : launch.stalls) {
    json["stalls"].push_back({{"reason", stall.reason}, {"cycles", stall.cycles}});
  }
  return json;
}

}  // namespace

OutputJson json_of(const VariantProfile& profile, const Answer& answer, const Diagnosis& diagnosis) {
  OutputJson json = {{"kernel", answer.kernel()},
                     {"problem", json_of(answer.problem())},
                     {"device", answer.reply().device()},
                     {"configuration", json_of(answer.configuration())},
                     {"match", to_string(answer.match())},
                     {"diagnosis", {{"rule", to_string(diagnosis.rule)}, {"sentence", diagnosis.sentence}}},
                     {"time_us", profile.time_us()}};
  add_known(json, "tuned_us", tuned_us(answer));
  json["moved_bytes"] = profile.moved_bytes();
  add_known(json, "must_move_bytes", profile.work.bytes);
  add_known(json, "traffic_ratio", profile.traffic_ratio());
  add_known(json, "unfused_bytes", profile.work.unfused_bytes);
  json["spilled_bytes"] = profile.spilled_bytes;
  json["launches"] = OutputJson::array();
  for (const ProfiledLaunch& launch : profile.launches) {
    json["launches"].push_back(launch_json(launch, answer));
  }
  return json;
}

void print(std::ostream& out, const VariantProfile& profile, const Answer& answer, const Diagnosis& diagnosis,
           std::size_t columns) {
  const std::string prefix = replay_prefix(answer.reply().device());
  const auto line = [&](std::string name, const std::string& text) {
    constexpr std::size_t kName = 14;
    name.resize(kName, ' ');
    const std::size_t taken = prefix.size() + 2 + kName;
    out << prefix << "  " << name
        << wrapped_under(text, columns > 2 * taken ? columns - taken : 0,
                         prefix + std::string(2 + kName, ' '))
        << "\n";
  };
  out << prefix << answer.kernel() << " " << to_string(answer.problem()) << " on " << answer.reply().device()
      << ": " << to_string(answer.configuration()) << "\n";
  if (!answer.match().exact() || answer.evidence() == Evidence::None) {
    line("match", to_string(answer.match()) + ": this is not the winner of the problem's own tuning");
  }
  line("diagnosis", diagnosis.sentence);
  const auto tuned = tuned_us(answer);
  line("time", fixed(profile.time_us(), 2) + " us by ncu" +
                   (tuned ? ", " + fixed(*tuned, 2) + " us when it was tuned" : ""));
  line("bytes moved", megabytes(profile.moved_bytes()) + " MB");
  line("must move", profile.work.bytes ? compared(profile, *profile.work.bytes)
                                       : "unknown: the spec does not say work.bytes");
  if (profile.work.unfused_bytes) {
    line("unfused", compared(profile, *profile.work.unfused_bytes));
  }
  print_launches(out, profile, answer, columns, prefix);
}

}  // namespace cubind::ctl
