// Ctrl-C as a stop request.
#pragma once

#include <memory>
#include <stop_token>

namespace cubind::ctl {

/// While it lives SIGINT and SIGTERM request a stop and do not end the process. Make it before any other
/// thread is made (a connection makes some): they inherit the blocked signals. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const;
  bool requested() const { return token().stop_requested(); }

 private:
  struct Waiter;
  std::unique_ptr<Waiter> waiter_;
};

}  // namespace cubind::ctl
