#include "tuner/agent/compile/kernel_builds.hpp"

#include <algorithm>

#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr std::size_t kKept = 8;

}  // namespace

std::shared_ptr<const KernelBuild> KernelBuilds::find(const Digest& bundle) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(kept_, bundle, [](const auto& one) { return one.first; });
  if (found == kept_.end()) {
    return nullptr;
  }
  kept_.splice(kept_.begin(), kept_, found);
  return found->second;
}

std::shared_ptr<const KernelBuild> KernelBuilds::of(const v1::SpecBundle& bundle) {
  const Digest digest = Digest::of(bundle.SerializeAsString());
  if (auto known = find(digest)) {
    return known;
  }
  auto made =
      std::make_shared<const KernelBuild>(language_->build(parse_kernel_spec(bundle_from_wire(bundle))));
  const std::lock_guard lock(mutex_);
  kept_.emplace_front(digest, made);
  if (kept_.size() > kKept) {
    kept_.pop_back();
  }
  return made;
}

}  // namespace cubind
