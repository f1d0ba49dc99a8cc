// How often the winners of a kernel have changed when their problems were measured again.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "client/connection.hpp"
#include "client/cubindctl/options.hpp"
#include "client/cubindctl/terminal/exit_code.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::ctl {

/// How one question's winners followed each other.
struct Stability {
  v1::ListedRecord today;
  std::size_t measured = 0;  // how often, at least twice
  std::size_t changes = 0;   // of the winner
  double first_us = 0;       // the first winner's time, when it won

  double today_us() const { return today.provenance().timing().median_us(); }
  /// Above 1: today's winner is faster than the first one was.
  double first_over_today() const;
};

/// The questions that were measured more than once, those measured most often first. `records`: the kernel's
/// current ones. Asks the daemon for those that they replaced. Throws like Connection, and NotFound if there
/// is no such kernel.
std::vector<Stability> stability_of(const Connection& connection, const std::string& kernel,
                                    std::span<const v1::ListedRecord> records,
                                    std::chrono::milliseconds deadline);

/// `cubindctl report KERNEL --stability`.
ExitCode print_stability(const ReportOptions& options, const CommonOptions& common);

}  // namespace cubind::ctl
