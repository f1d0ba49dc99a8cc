// Completion in bash and zsh. The shell runs `cubindctl __complete`, as bash's `complete -C` does.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace cubind::ctl {

/// The names of the kernels that the daemon at an address knows; an empty address is the default one.
using KernelNames = std::function<std::vector<std::string>(const std::string& address)>;

/// What the last word of the line may become; the word is empty if the line ends in a space. Blanks alone
/// separate words. Empty where the shell completes files. Asks for kernel names only where one may stand.
std::vector<std::string> complete(const CLI::App& program, const std::string& line,
                                  const KernelNames& kernel_names);

/// Completes $COMP_LINE, of which the user has typed $COMP_POINT bytes, and prints one candidate per line.
void print_completions(const CLI::App& program);

}  // namespace cubind::ctl
