#include "client/web/terms.hpp"

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/progress.hpp"
#include "plan/wire.hpp"

namespace cubind::web {

std::string duration_text(double seconds) {
  if (seconds < 60) {
    return ctl::fixed(seconds, 1) + " s";
  }
  if (seconds < 3600) {
    const auto whole = std::lround(seconds);
    return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  }
  return seconds < 48 * 3600 ? ctl::fixed(seconds / 3600, 1) + " h"
                             : ctl::fixed(seconds / 86400, 1) + " days";
}

Cell age_cell(const std::string& date, std::chrono::system_clock::time_point now) {
  const auto time = parse_iso8601_utc(date);
  if (!time) {
    return {"-"};
  }
  const double seconds = std::max(0.0, std::chrono::duration<double>(now - *time).count());
  const double minutes = seconds / 60;
  const std::string text = minutes < 1    ? std::to_string(std::lround(std::floor(seconds))) + " s"
                           : minutes < 60 ? std::to_string(std::lround(std::floor(minutes))) + " min"
                           : minutes < 48 * 60
                               ? std::to_string(std::lround(std::floor(minutes / 60))) + " h"
                               : std::to_string(std::lround(std::floor(minutes / 1440))) + " days";
  return {text + " ago", seconds};
}

Cell number_cell(double value, int digits) { return {ctl::fixed(value, digits), value}; }

Cell count_cell(std::uint64_t count) { return {std::to_string(count), static_cast<double>(count)}; }

Cell job_cell(const v1::Job& job) { return {.text = job.id(), .link = "/job?id=" + url_encoded(job.id())}; }

Cell kernel_cell(const std::string& kernel) {
  return {.text = kernel, .link = "/report?kernel=" + url_encoded(kernel)};
}

std::string problem_text(const v1::Problem& problem) {
  return to_string(problem_from_wire(problem, "problem"));
}

bool is_running(const v1::Job& job) { return !ctl::has_ended(job.state()); }

Cell progress_cell(const v1::Job& job) {
  Cell done{"-"};
  if (job.configurations() > 0) {
    done = {std::to_string(job.configurations_done()) + " of " + std::to_string(job.configurations())};
    done.share = static_cast<double>(job.configurations_done()) / job.configurations();
  }
  return done;
}

std::string rest_of(const v1::Job& job) {
  if (job.configurations_done() == 0 || job.configurations() <= job.configurations_done()) {
    return "-";
  }
  const double each = job.elapsed_ms() / 1000 / job.configurations_done();
  return "about " + duration_text(each * (job.configurations() - job.configurations_done()));
}

}  // namespace cubind::web
