// Figures and names as the pages spell them.
#pragma once

#include <chrono>
#include <string>

#include "client/web/view.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::web {

/// "12.3 s", "4 min 5 s", "3.2 h".
std::string duration_text(double seconds);
/// The time since the date, "3 h ago", which sorts by it; "-" where the date is none.
Cell age_cell(const std::string& date, std::chrono::system_clock::time_point now);
Cell number_cell(double value, int digits);
Cell count_cell(std::uint64_t count);
Cell job_cell(const v1::Job& job);
/// Leads to the kernel's report.
Cell kernel_cell(const std::string& kernel);
std::string problem_text(const v1::Problem& problem);
bool is_running(const v1::Job& job);
/// "10 of 40", with a bar.
Cell progress_cell(const v1::Job& job);
/// The rest by the configurations that are left, each as long as those that are done.
std::string rest_of(const v1::Job& job);

}  // namespace cubind::web
