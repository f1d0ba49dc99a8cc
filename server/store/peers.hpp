// The daemons that have the same database open.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.hpp"

namespace cubind {

/// What the agents of a daemon can do.
struct Offer {
  std::vector<Digest> classes;  // of the GPUs that may measure
  bool compiles = false;
  bool operator==(const Offer&) const = default;
};

/// Another daemon, which has been alive within the last seconds.
struct Peer {
  std::string id;    // 16 bytes
  std::string name;  // with its process and its address
  Offer offer;
};

namespace store {

/// Thread-safe.
class Peers {
 public:
  Peers() = default;
  virtual ~Peers() = default;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// This daemon's: each start draws another one.
  virtual const std::string& self() const = 0;
  virtual std::vector<Peer> alive() const = 0;
  /// Whether a daemon has not renewed its presence for too long, by the database's clock. After this one was
  /// cut off from the database, all count as alive until they have had the time to come back.
  virtual bool is_gone(const std::string& id) const = 0;
  /// What this daemon offers from now on.
  virtual void offer(const Offer& offer) = 0;
  /// Calls `changed`, in a thread of its own, after another daemon has changed records or jobs, and at least
  /// once a second while the database can be reached. Empty: never again, and no call is under way.
  virtual void follow(std::function<void()> changed) = 0;
  /// Grows when changes may have been missed, or a write may have been done although it has failed.
  virtual std::uint64_t interruptions() const = 0;
};

/// Follows the other daemons for as long as it lives.
class Following {
 public:
  Following(Peers& peers, std::function<void()> changed) : peers_(peers) {
    peers_.follow(std::move(changed));
  }
  ~Following() { peers_.follow({}); }
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;

 private:
  Peers& peers_;
};

}  // namespace store
}  // namespace cubind
