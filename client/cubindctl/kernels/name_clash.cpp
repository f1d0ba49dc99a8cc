#include "client/cubindctl/kernels/name_clash.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind::ctl {
namespace {

namespace fs = std::filesystem;

bool is_one_file(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  return fs::weakly_canonical(a, failed) == fs::weakly_canonical(b, failed);
}

bool is_in_force(const v1::Kernel& kernel) { return kernel.error().empty() || kernel.keeps_last_good(); }

}  // namespace

std::string name_clash(const Connection& connection, const std::string& name, const fs::path& file,
                       std::chrono::milliseconds deadline) {
  v1::ListKernelsReply reply;
  try {
    reply = connection.list_kernels(deadline);
  } catch (const Error&) {
    return "";
  }
  const auto served = std::ranges::find_if(reply.kernels(), [&](const v1::Kernel& kernel) {
    return kernel.name() == name && is_in_force(kernel) && !is_one_file(kernel.file(), file);
  });
  return served == reply.kernels().end() ? ""
                                         : quoted(name) + " is already served from " + served->file() +
                                               ": the daemon keeps that one; give this kernel another name";
}

}  // namespace cubind::ctl
