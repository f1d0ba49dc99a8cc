// The gate before every call, which identifies the caller.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "access/token.hpp"
#include "base/clock.hpp"
#include "server/access/caller.hpp"

namespace cubind {

/// Thread-safe. Reads the token file again within a second of a change. If a changed file cannot be read, the
/// tokens stay as they were and the log says so; if the file is missing, all tokens are revoked.
class Gate {
 public:
  using CallerPtr = std::shared_ptr<const Caller>;

  /// With an empty `tokens`, TCP callers are not distinguished and each is an admin. `group` has a separate
  /// socket. Throws like read_token_file().
  Gate(std::filesystem::path tokens, const Clock& clock, const std::optional<SocketGroup>& group = {},
       std::chrono::milliseconds period = std::chrono::milliseconds(250));
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// The caller behind a connection to the Unix socket.
  const CallerPtr& socket_owner() const { return socket_owner_; }
  /// The same caller, with the rights of a reader: it has sent the metadata `cubind-role: reader`.
  const CallerPtr& socket_reader() const { return socket_reader_; }
  /// The caller behind a connection to the group's socket; null if there is no such socket.
  const CallerPtr& socket_group() const { return socket_group_; }
  /// The caller that sent the metadata `authorization`. Throws Unauthenticated if there is none, or the token
  /// is wrong, revoked or expired.
  CallerPtr caller_of(std::string_view authorization) const;
  /// Whether the caller would still be admitted with the same rights.
  bool admits(const Caller& caller) const;

 private:
  using Tokens = std::unordered_map<std::string, Token>;  // by id

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  // By the whole metadata value. The duration of a lookup does not reveal a secret of 256 random bits.
  using Verified = std::unordered_map<std::string, CallerPtr, Hash, std::equal_to<>>;

  /// Returns false if the file cannot be read. `is_again`: it could not be read before either; the log says
  /// so only once.
  bool reload(bool is_again);
  void set(std::vector<Token> tokens);
  CallerPtr verify(std::string_view authorization) const;
  void refuse_expired(const Caller& caller) const;

  const std::filesystem::path file_;
  const Clock& clock_;
  const CallerPtr socket_owner_, socket_reader_, socket_group_, unknown_;

  mutable std::shared_mutex mutex_;
  std::shared_ptr<const Tokens> tokens_;  // guarded by mutex_
  mutable Verified verified_;             // of tokens_; guarded by mutex_

  std::jthread watch_;  // ends first; of the file, if there is one
};

}  // namespace cubind
