// The URL of a database of PostgreSQL, as options take it.
#pragma once

#include <string>

namespace cubind {

bool is_store_url(const std::string& text);

/// Throws InvalidArgument where it is no postgresql:// URL, or holds a password, which `ps` and `status`
/// would show.
void check_store_url(const std::string& option, const std::string& url);

}  // namespace cubind
