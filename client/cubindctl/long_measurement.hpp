// Problems that are tuned, and then measured for long with chosen configurations.
#pragma once

#include <cstdint>
#include <vector>

#include "client/connection.hpp"
#include "client/cubindctl/choices.hpp"
#include "client/cubindctl/options.hpp"
#include "client/cubindctl/stop_signals.hpp"
#include "client/cubindctl/tune_requests.hpp"

namespace cubind::ctl {

class LongMeasurement {
 public:
  LongMeasurement(const CommonOptions& common, const StopSignals& interrupt);

  enum class Search : std::uint8_t { Stored, FromScratch };
  /// Tunes the problems; each winner becomes a choice of its problem. A job that fails is printed to stderr.
  void tune(const KernelTune& tune, Search search);
  /// Measures these configurations and the default of one problem. rounds: 0 is until they separate or tie.
  void measure(const v1::TuneRequest& like, const RepeatedProblem& one,
               const std::vector<Configuration>& listed, std::uint32_t rounds);
  /// Everything that the daemon has stored of the kernel for a device class: by default that of the problems.
  Table trials_of(const std::string& kernel, const std::string& device = {}) const;

  const Connection& connection() const { return connection_; }
  const std::vector<RepeatedProblem>& problems() const { return problems_; }
  bool any_failed() const { return any_failed_; }

 private:
  void run(const v1::TuneRequest& request);
  void note(const v1::TuneEvent& event);

  const CommonOptions& common_;
  const StopSignals& interrupt_;
  const Connection connection_;
  std::vector<RepeatedProblem> problems_;
  bool notes_choices_ = false;
  bool any_failed_ = false;
};

}  // namespace cubind::ctl
