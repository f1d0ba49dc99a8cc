// The facts of a GPU as they were read (cuda_api), as a message.
#pragma once

#include <concepts>
#include <string>

#include "schemas/cubind.pb.h"

namespace cubind {

template <typename Facts>
void facts_to_wire(const Facts& from, v1::DeviceFacts& to) {
  visit_facts(from, [&]<typename Value>(const char* name, const Value& value) {
    const auto* field = v1::DeviceFacts::descriptor()->FindFieldByName(name);
    if constexpr (std::same_as<Value, std::string>) {
      to.GetReflection()->SetString(&to, field, value);
    } else if constexpr (std::same_as<Value, std::uint64_t>) {
      to.GetReflection()->SetUInt64(&to, field, value);
    } else {
      to.GetReflection()->SetUInt32(&to, field, value);
    }
  });
}

}  // namespace cubind
