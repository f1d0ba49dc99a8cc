// Limits of requests, each with an error that names the field and the limit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plan/facts/value_check.hpp"
#include "schemas/cubind.pb.h"
#include "schemas/limits.hpp"

namespace cubind {

inline constexpr std::size_t kMaxListBytes = std::size_t{3} << 20;  // of a list; a message holds 4 MiB
inline constexpr int kMaxNames = 64;                                // dims, types or flags of a problem
inline constexpr int kMaxHaveArtifacts = 64;
inline constexpr std::size_t kMaxHintBytes = 128;
inline constexpr int kMaxArchitectures = 16;
inline constexpr int kMaxSourceFiles = 1000;
inline constexpr unsigned kMaxCompileWaitMs = 60'000;

/// check_text() for each of them.
void check_texts(const google::protobuf::RepeatedPtrField<std::string>& texts, std::string_view field,
                 std::size_t max = kMaxNameBytes);
/// Not empty either.
void check_name(std::string_view text, std::string_view field);
/// Throws InvalidArgument above `max` elements.
void check_count(int count, int max, std::string_view field);
void check_problem(const v1::Problem& problem, const std::string& field);
void check_facts(const v1::DeviceFacts& facts, const std::string& field);
void check_device(const v1::Device& device, const std::string& field);

}  // namespace cubind
