// The bundle that a daemon serves (--bundle): verified, then unpacked into a folder of its own.
#pragma once

#include <chrono>
#include <filesystem>

#include "base/file.hpp"
#include "bundle/bundle.hpp"
#include "server/answer/signed_records.hpp"
#include "server/config.hpp"

namespace cubind {

class Store;

class ServedBundle {
 public:
  /// Verifies the bundle, remembers its serial next to the database that the daemon would have without one,
  /// and writes its specs. Throws as verify_bundle() and Serials::accept() do.
  ServedBundle(const Config& config, std::chrono::system_clock::time_point now);

  /// The settings with which a daemon serves it and nothing else: a store in the folder, no agent.
  Config settings(Config config) const;
  /// Into an empty store.
  void put_into(Store& store) const;
  SignedRecords records() const;
  /// "acme.bundle: acme 7 until 2027-03-01, 12 records"
  std::string text() const;

 private:
  const std::filesystem::path file_;
  const TempDir folder_;
  Bundle bundle_;
};

}  // namespace cubind
