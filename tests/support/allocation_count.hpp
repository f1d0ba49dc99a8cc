// Counts what a test allocates. A program that links it has an operator new of its own, which a sanitizer
// does not bear: its tests carry the label unit_native.
#pragma once

#include <cstddef>

namespace cubind::test {

/// Calls of operator new in this thread so far.
std::size_t allocation_count();

}  // namespace cubind::test
