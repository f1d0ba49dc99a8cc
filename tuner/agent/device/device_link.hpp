#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "schemas/worker.pb.h"

namespace cubind {

/// A device worker process, as RemoteDevice sees it. The real one is WorkerLink; tests answer in memory.
/// Used from one thread; interrupt() from any.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;

  /// Starts a fresh worker; an old one is ended first. Throws Error where it cannot be started.
  virtual void start() = 0;
  /// Goes on with a spare worker instead, which has initialised the driver. False: none is there.
  virtual bool start_spare() { return false; }
  /// Ends the worker and waits until it is gone: its context and its memory are free then.
  virtual void stop() noexcept = 0;
  /// Whether a worker was started and not ended since. It may have died unnoticed.
  virtual bool is_started() const = 0;

  struct CallResult {
    std::optional<v1::DeviceReply> reply;  // absent: the worker is gone or was killed
    bool timed_out = false;
    std::string death;  // "exit code 134", "signal 11 (Segmentation fault)", "no answer within 20000 ms"
  };
  /// `meanwhile`, unless it is empty, is called once when the worker has the request, and does not count for
  /// the deadline. After an Error of it the worker has to be ended: its reply was not read.
  virtual CallResult call(const v1::DeviceRequest& request, std::chrono::milliseconds deadline,
                          const std::function<void()>& meanwhile) = 0;

  /// Kills the worker, so that a call in flight returns.
  virtual void interrupt() noexcept = 0;
};

}  // namespace cubind
