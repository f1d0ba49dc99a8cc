// The version of the schema, for every engine.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace cubind::store {

/// Of schemas/store.sql and store_postgresql.sql: it grows with every change of either. Builds before the
/// first release counted to 10.
inline constexpr std::int64_t kSchemaVersion = 13;

/// For a store of another version, which stays as it is. `elsewhere`: where this build makes a new one.
inline Error other_schema(const std::string& where, std::int64_t version, const std::string& elsewhere) {
  return {ErrorCode::FailedPrecondition, where,
          "has schema version " + std::to_string(version) + ", and this cubind uses version " +
              std::to_string(kSchemaVersion) +
              ": export its records with the build that wrote it (cubindctl export), start this one with " +
              elsewhere + ", and import them there (cubindctl import)"};
}

}  // namespace cubind::store
