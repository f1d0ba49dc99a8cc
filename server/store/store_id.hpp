// The id that a store's generations belong to.
#pragma once

#include <string>

namespace cubind::store {

/// 16 random bytes.
std::string new_store_id();

}  // namespace cubind::store
