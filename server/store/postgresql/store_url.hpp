// What --store takes.
#pragma once

#include <string>

namespace cubind {

/// Throws InvalidArgument where it is no postgresql:// URL, or holds a password, which `ps` and `status`
/// would show.
void check_store_url(const std::string& url);

}  // namespace cubind
