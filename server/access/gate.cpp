#include "server/access/gate.hpp"

#include <mutex>
#include <system_error>
#include <utility>

#include "access/token_file.hpp"
#include "base/file_watch.hpp"
#include "base/log.hpp"
#include "server/access/unauthenticated.hpp"

namespace cubind {
namespace {

constexpr std::string_view kScheme = "Bearer ";

[[noreturn]] void refuse_caller(const std::string& why) { throw Unauthenticated(why); }

}  // namespace

Gate::Gate(std::filesystem::path tokens, const Clock& clock, const std::optional<SocketGroup>& group,
           std::chrono::milliseconds period)
    : file_(std::move(tokens)),
      clock_(clock),
      socket_owner_(std::make_shared<const Caller>(caller_of_socket())),
      socket_reader_(std::make_shared<const Caller>(reader_of_socket())),
      socket_group_(group ? std::make_shared<const Caller>(caller_of_group(*group)) : nullptr),
      unknown_(std::make_shared<const Caller>(unknown_caller())),
      tokens_(std::make_shared<const Tokens>()) {
  if (file_.empty()) {
    return;
  }
  FileStamps seen = stamps_of({file_});
  set(read_token_file(file_));
  watch_ = watch_files({file_}, std::move(seen), period, [this](bool is_again) { return reload(is_again); });
}

bool Gate::reload(bool is_again) {
  try {
    std::error_code failed;
    const bool is_there = std::filesystem::exists(file_, failed);
    set(is_there ? read_token_file(file_) : std::vector<Token>());
    is_there ? log_info("tokens: " + file_.string() + " was read again")
             : log_error("tokens: " + file_.string() + " is gone: no token is accepted");
    return true;
  } catch (const std::exception& fault) {
    if (!is_again) {
      log_error(std::string("tokens: the earlier ones stay, since the file cannot be read: ") + fault.what());
    }
    return false;
  }
}

void Gate::set(std::vector<Token> tokens) {
  auto by_id = std::make_shared<Tokens>();
  for (Token& token : tokens) {
    const std::string id = token.id;
    by_id->emplace(id, std::move(token));
  }
  const std::unique_lock lock(mutex_);
  tokens_ = std::move(by_id);
  verified_.clear();
}

Gate::CallerPtr Gate::caller_of(std::string_view authorization) const {
  if (file_.empty()) {
    return unknown_;
  }
  CallerPtr caller;
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = verified_.find(authorization); found != verified_.end()) {
      caller = found->second;
    }
  }
  if (!caller) {
    caller = verify(authorization);
  }
  refuse_expired(*caller);
  return caller;
}

Gate::CallerPtr Gate::verify(std::string_view authorization) const {
  if (authorization.empty()) {
    refuse_caller("the call has none: CUBIND_TOKEN_FILE names the file that holds the caller's token");
  }
  const auto parts =
      authorization.starts_with(kScheme) ? split_token(authorization.substr(kScheme.size())) : std::nullopt;
  if (!parts) {
    refuse_caller("the metadata `authorization` is not \"Bearer cubind_ID_SECRET\"");
  }
  std::shared_ptr<const Tokens> tokens;
  {
    const std::shared_lock lock(mutex_);
    tokens = tokens_;
  }
  const std::string id(parts->id);
  const auto token = tokens->find(id);
  if (token == tokens->end() || !is_secret_of(token->second, parts->secret)) {
    refuse_caller(
        "the daemon does not accept token " + id +
        ": it was revoked, or issued for another daemon. An admin issues one (`cubindctl token new`)");
  }
  auto caller = std::make_shared<const Caller>(caller_of_token(token->second));
  const std::unique_lock lock(mutex_);
  if (tokens_ == tokens) {
    verified_.emplace(authorization, caller);
  }
  return caller;
}

void Gate::refuse_expired(const Caller& caller) const {
  if (caller.expires && *caller.expires <= clock_.wall_now()) {
    refuse_caller("token " + caller.token + " of " + caller.name + " has expired at " +
                  iso8601_utc(*caller.expires) + ": an admin issues another (`cubindctl token new`)");
  }
}

bool Gate::admits(const Caller& caller) const {
  if (caller.known != Caller::Known::ByToken) {
    return true;
  }
  const std::shared_lock lock(mutex_);
  const auto token = tokens_->find(caller.token);
  if (token == tokens_->end() || token->second.has_expired(clock_.wall_now())) {
    return false;
  }
  const Token& now = token->second;
  return now.secret == caller.secret && now.roles == caller.roles && now.namespaces == caller.namespaces &&
         now.device_classes == caller.device_classes;
}

}  // namespace cubind
