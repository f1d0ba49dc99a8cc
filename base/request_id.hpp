// Which request a thread works for: its log lines and its internal errors carry the id.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace cubind {

using RequestId = std::shared_ptr<const std::string>;  // null: none

/// The id of the innermost scope of this thread.
RequestId current_request();

/// The given id if it is well formed (1 to 64 letters, digits, '.', '_' and '-'), else one that is made.
RequestId request_id_from(std::string_view given);

/// Until its end this thread works for a request. Scopes of a thread end in the reverse order.
class RequestScope {
 public:
  explicit RequestScope(RequestId id) : RequestScope(std::move(id), nullptr) {}
  /// Asks `make` for the id when the first line needs it: most requests write none.
  explicit RequestScope(const std::function<RequestId()>& make) : RequestScope(nullptr, &make) {}
  ~RequestScope();
  RequestScope(const RequestScope&) = delete;
  RequestScope& operator=(const RequestScope&) = delete;

 private:
  friend RequestId current_request();
  RequestScope(RequestId id, const std::function<RequestId()>* make);

  RequestId id_;
  const std::function<RequestId()>* make_;
  RequestScope* const outer_;
};

}  // namespace cubind
