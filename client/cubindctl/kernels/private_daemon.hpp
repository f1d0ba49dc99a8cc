// A daemon for one command.
#pragma once

#include <filesystem>
#include <string>

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
  /// Removed after the daemon's end.
  struct Folder {
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::filesystem::path path;
  };

  Folder folder_;
  Subprocess process_;
};

}  // namespace cubind::ctl
