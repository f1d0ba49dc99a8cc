// The form of the domain's values in columns: enumerations by name, problems and lists as JSON in declared
// order. A value that does not read back throws Error(DataLoss) without a place: read_row() adds it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/rows.hpp"

namespace cubind::store {

std::string write_problem(const Problem& problem);
Problem read_problem(const std::string& text);
std::string write_problems(const std::vector<Problem>& problems);
std::vector<Problem> read_problems(const std::string& text);

std::string write_configuration(const Configuration& configuration);
Configuration read_configuration(const std::string& text);
std::string write_configurations(const std::vector<Configuration>& configurations);
std::vector<Configuration> read_configurations(const std::string& text);

std::string write_strings(const std::vector<std::string>& strings);
std::vector<std::string> read_strings(const std::string& text);
std::string write_resources(const std::vector<EntryResources>& resources);
std::vector<EntryResources> read_resources(const std::string& text);
/// Null: there are none.
std::optional<std::string> write_comparisons(const std::vector<LibraryComparison>& comparisons);
/// Leaves out what is damaged: it is measured again, and its record still answers.
std::vector<LibraryComparison> read_comparisons(const std::string& text);
std::string write_outcomes(const std::vector<OutcomeCount>& outcomes);
std::vector<OutcomeCount> read_outcomes(const std::string& text);
std::string write_stages(const std::vector<StageTime>& stages);
std::vector<StageTime> read_stages(const std::string& text);
std::string write_facts(const DeviceFacts& facts);
DeviceFacts read_facts(const std::string& text);

std::string write_doubles(const std::vector<double>& values);
std::vector<double> read_doubles(const std::string& bytes);
std::string write_digests(const std::vector<Digest>& digests);
std::vector<Digest> read_digests(const std::string& bytes);

Outcome read_outcome(std::string_view name);
Evidence read_evidence(std::string_view name);
std::string_view origin_name(Origin origin);
Origin read_origin(std::string_view name);
std::string_view state_name(JobState state);
JobState read_state(std::string_view name);
std::string_view kind_name(JobKind kind);
JobKind read_kind(std::string_view name);

Policy read_policy(std::string_view text);
Numerics read_numerics(std::string_view text);

}  // namespace cubind::store
