#include "tuner/spec/entry_faults.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace cubind {
namespace {

std::string to_string(const Dim3& extents) {
  return std::to_string(extents.x) + " x " + std::to_string(extents.y) + " x " + std::to_string(extents.z);
}

std::uint64_t product(const Dim3& extents) { return std::uint64_t{extents.x} * extents.y * extents.z; }

std::string described(const ParameterTemplate& argument) {
  if (argument.source == ParameterSource::TensorMap) {
    return argument.tensor_map.argument + " is a tensor map of " + argument.name +
           " (const __grid_constant__ CUtensorMap)";
  }
  const bool is_pointer = is_buffer(argument.source);
  const std::string type(to_string(argument.type)), spelled(cuda_name(argument.type));
  return argument.name + (is_pointer ? " is a buffer of " : " is a scalar ") + type + " (" + spelled +
         (is_pointer ? "*)" : ")");
}

std::string list_of(const std::vector<EntryParameter>& parameters) {
  std::vector<std::string> all;
  for (const EntryParameter& parameter : parameters) {
    all.push_back(to_string(parameter));
  }
  return join(all, ", ");
}

void compare_arguments(const LaunchTemplate& launch, const std::string& where,
                       const std::vector<EntryParameter>& parameters, std::vector<EntryFault>& faults) {
  const std::string list = where + "/arguments";
  const auto symbols = static_cast<std::size_t>(
      std::ranges::count(launch.parameters, ParameterSource::Symbol, &ParameterTemplate::source));
  if (parameters.size() != launch.parameters.size() - symbols) {
    faults.push_back({list, "has " + std::to_string(launch.parameters.size() - symbols) +
                                (symbols > 0 ? " that are passed" : "") + ", the entry takes " +
                                std::to_string(parameters.size()) + ": (" + list_of(parameters) + ")"});
    return;
  }
  auto parameter = parameters.begin();
  for (std::size_t i = 0; i < launch.parameters.size(); ++i) {
    const ParameterTemplate& argument = launch.parameters[i];
    if (argument.source == ParameterSource::Symbol) {
      continue;
    }
    if (!fits(*parameter, argument)) {
      faults.push_back({list + "/" + std::to_string(i),
                        described(argument) + ", the entry's parameter is " + to_string(*parameter)});
    }
    ++parameter;
  }
}

void compare_variables(const Launch& launch, const std::string& where, const CompiledEntries& entries,
                       std::vector<EntryFault>& faults) {
  for (std::size_t i = 0; i < launch.parameters.size(); ++i) {
    const Parameter& argument = launch.parameters[i];
    const auto variable = entries.find(variable_expression(argument.variable));
    if (argument.source != ParameterSource::Symbol || variable == entries.end()) {
      continue;
    }
    const std::uint64_t bytes = variable->second.variable_bytes;
    if (bytes > 0 && argument.extent_bytes > bytes) {
      faults.push_back({where + "/arguments/" + std::to_string(i),
                        argument.name + " has " + std::to_string(argument.extent_bytes) +
                            " bytes, the variable " + argument.variable + " holds " + std::to_string(bytes),
                        true});
    }
  }
}

std::string block_fault(const Dim3& block, const CubinEntry& limits) {
  if (limits.block && *limits.block != block) {
    return "the entry is compiled for blocks of " + to_string(*limits.block) + " threads and no others";
  }
  if (limits.max_threads != 0 && product(block) > limits.max_threads) {
    return "the entry is compiled for at most " + std::to_string(limits.max_threads) +
           " threads per block (__launch_bounds__)";
  }
  return "";
}

// An entry that is compiled for clusters of a size is launched without one.
std::string cluster_fault(const Launch& launch, const CubinEntry& limits) {
  if (limits.wants_launch_clusters && !launch.cluster) {
    return "the entry takes its cluster size from the launch: give it as \"cluster\", or to __cluster_dims__";
  }
  if (limits.grid_counts_clusters && launch.cluster) {
    return "the entry's grid counts clusters, whose size it is compiled for: leave \"cluster\" out";
  }
  if (limits.cluster && launch.cluster && *limits.cluster != *launch.cluster) {
    return "the entry is compiled for clusters of " + to_string(*limits.cluster) + " blocks and no others";
  }
  return "";
}

std::string grid_fault(const Dim3& grid, const CubinEntry& limits) {
  if (!limits.cluster || limits.grid_counts_clusters) {
    return "";
  }
  const Dim3& cluster = *limits.cluster;
  if (grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0) {
    return "";
  }
  return "the entry is compiled for clusters of " + to_string(cluster) +
         " blocks, and the grid must be a multiple of that along each axis";
}

void compare_limits(const Launch& launch, const std::string& where, const CubinEntry& limits,
                    std::vector<EntryFault>& faults) {
  if (const std::string cause = block_fault(launch.block, limits); !cause.empty()) {
    faults.push_back(
        {where + "/block",
         launch.entry + " is launched with blocks of " + to_string(launch.block) + " threads, " + cause,
         true});
  }
  if (const std::string cause = cluster_fault(launch, limits); !cause.empty()) {
    faults.push_back({where + "/cluster",
                      launch.entry + " is launched " +
                          (launch.cluster ? "with clusters of " + to_string(*launch.cluster) + " blocks"
                                          : "without clusters") +
                          ", " + cause,
                      true});
  }
  if (const std::string cause = grid_fault(launch.grid, limits); !cause.empty()) {
    faults.push_back({where + "/grid",
                      launch.entry + " is launched with a grid of " + to_string(launch.grid) + ", " + cause,
                      true});
  }
}

}  // namespace

CompiledEntries compiled_entries(std::string_view cubin, const std::vector<std::string>& entries,
                                 const std::vector<std::string>& symbols) {
  const CubinEntries read = read_cubin_entries(cubin);
  const CubinVariables variables =
      std::ranges::any_of(entries, is_variable) ? read_cubin_variables(cubin) : CubinVariables{};
  CompiledEntries compiled;
  for (std::size_t i = 0; i < std::min(entries.size(), symbols.size()); ++i) {
    if (is_variable(entries[i])) {
      const auto variable = variables.find(symbols[i]);
      compiled[entries[i]].variable_bytes = variable == variables.end() ? 0 : variable->second;
      continue;
    }
    const auto found = read.find(symbols[i]);
    const CubinEntry* entry = found == read.end() ? nullptr : &found->second;
    compiled.insert_or_assign(
        entries[i], CompiledEntry{entry_parameters(symbols[i], entry), entry ? *entry : CubinEntry{}});
  }
  return compiled;
}

std::vector<EntryFault> entry_faults(const PlanTemplate& launches, const LaunchPlan& plan,
                                     const CompiledEntries& entries) {
  std::vector<EntryFault> faults;
  auto planned = plan.launches.begin();  // those with a zero in their grid are not in it
  for (std::size_t i = 0; i < launches.launches.size(); ++i) {
    const LaunchTemplate& launch = launches.launches[i];
    const std::string where = launches.where + "/launches/" + std::to_string(i);
    const auto entry = entries.find(launch.entry);
    const bool is_launched = planned != plan.launches.end() && planned->entry == launch.entry;
    if (entry != entries.end() && entry->second.parameters) {
      compare_arguments(launch, where, *entry->second.parameters, faults);
    }
    if (entry != entries.end() && is_launched) {
      compare_limits(*planned, where, entry->second.limits, faults);
    }
    if (is_launched) {
      compare_variables(*planned, where, entries, faults);
    }
    planned += is_launched ? 1 : 0;
  }
  return faults;
}

}  // namespace cubind
