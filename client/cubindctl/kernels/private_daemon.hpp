// A daemon for one command.
#pragma once

#include <string>

#include "base/file.hpp"
#include "base/subprocess.hpp"

namespace cubind::ctl {

/// Serves no kernel, offers no GPU and keeps nothing: it compiles. It ends with this object, and with this
/// process.
class PrivateDaemon {
 public:
  /// Returns when it serves and knows its compilers. Throws Error(Unavailable) if it does not in time.
  PrivateDaemon();

  std::string address() const;

 private:
  TempDir folder_{"cubind-check"};  // removed after the daemon's end
  Subprocess process_;
};

}  // namespace cubind::ctl
