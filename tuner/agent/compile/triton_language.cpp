#include <charconv>
#include <utility>

#include "tuner/agent/compile/kernel_language.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {
namespace {

// ptxas has the version of the CUDA toolkit that it is from: 12 of "12.9.86".
std::uint32_t major_of(const std::string& ptxas) {
  std::uint32_t major = 0;
  std::from_chars(ptxas.data(), ptxas.data() + ptxas.size(), major);
  return major;
}

class TritonLanguage final : public KernelLanguage {
 public:
  explicit TritonLanguage(v1::Toolchain told) : offer_(std::move(told)) {}

  const v1::Toolchain& offer() const override { return offer_; }
  bool is_triton() const override { return true; }

  bool compiles(const WantedCompiler& wanted) const override {
    if (!wanted.triton || wanted.triton->name() != offer_.name()) {
      return false;
    }
    const TritonTarget& target = *wanted.triton;
    if (!wanted.architecture.empty() && wanted.architecture != target.architecture) {
      return false;
    }
    if (wanted.driver_cuda != 0 && !driver_loads(wanted.driver_cuda, major_of(target.ptxas))) {
      return false;
    }
    for (int i = 0; i < offer_.architectures_size() && i < offer_.assemblers_size(); ++i) {
      if (offer_.architectures(i) == target.architecture) {
        return offer_.assemblers(i) == target.ptxas;
      }
    }
    return false;
  }

  // Each request has its own text, so there is nothing that they share. The reference is the first
  // configuration, and a request like the others.
  KernelBuild build(std::shared_ptr<const KernelSpec> spec) override {
    KernelBuild::Part kernel{.identity = triton_identity(*spec->triton), .input = {}};
    return {std::move(spec), std::move(kernel)};
  }

 private:
  const v1::Toolchain offer_;
};

}  // namespace

std::unique_ptr<KernelLanguage> triton_language(v1::Toolchain told) {
  return std::make_unique<TritonLanguage>(std::move(told));
}

}  // namespace cubind
