// A daemon that has tuned the tiny kernel for two problems, and bundles of its records.
#pragma once

#include "tests/service/cubindctl/live.hpp"
#include "tests/support/signing_keys.hpp"

namespace cubind::test {

class BundleMaker {
 public:
  BundleMaker() : daemon_({.problems = {tiny_problem(2), tiny_problem(3)}}) {
    tune(daemon_->connect(), {tiny_problem(2), tiny_problem(3)});
    write_file_atomic(path("acme.key"), kSecretKey, 0600);
    write_file_atomic(path("trust"), trust_line());
  }

  TinyDaemon& daemon() { return daemon_; }
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }

  std::vector<std::string> arguments(const std::string& file, int serial) const {
    return {"bundle",
            "create",
            "-o",
            path(file).string(),
            "--key",
            path("acme.key").string(),
            "--issuer",
            "acme",
            "--serial",
            std::to_string(serial),
            "--expires",
            "2098-12-31",
            "--replayed",
            "--kernels",
            daemon_.kernels().string()};
  }
  ProgramResult create(const std::string& file, int serial = 7) {
    return ctl(daemon_, arguments(file, serial));
  }
  /// Without the daemon.
  ProgramResult verify(const std::string& file) const {
    return ctl("unix:///nowhere",
               {"bundle", "verify", path(file).string(), "--trust", path("trust").string()});
  }

 private:
  mutable TinyDaemon daemon_;
  TempDir folder_;
};

}  // namespace cubind::test
