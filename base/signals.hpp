#pragma once

#include <csignal>
#include <initializer_list>

namespace cubind {

sigset_t signal_set(std::initializer_list<int> signals);

/// Keeps the signals from this thread and from those that it starts from now on: one that waits for the
/// returned set takes them.
sigset_t block_signals(std::initializer_list<int> signals);

}  // namespace cubind
