#include "tuner/spec/space.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "plan/plan_program.hpp"
#include "tuner/spec/space_checks.hpp"

namespace cubind {
namespace {

// Looked at for a default: about 0.1 s, while a caller may wait.
constexpr std::uint64_t kMostSteps = 100'000;

// Places without a file get the spec's.
template <typename Action>
auto with_file(const KernelSpec& spec, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::InvalidArgument || !error.where().starts_with("/")) {
      throw;
    }
    throw Error(error.code(), spec.file + " " + error.where(), error.cause());
  }
}

ConfigurationSpace make_space(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                              const Interrupt& interrupt) {
  return with_file(spec, [&] {
    const auto all = std::make_shared<const SpaceChecks>(spec, problem, device);
    std::vector<Check> checks;
    for (std::size_t check = 0; check < all->count(); ++check) {
      checks.push_back(check_of(all, check));
    }
    return ConfigurationSpace(axes_of(spec), std::move(checks), {}, interrupt);
  });
}

// Depth-first over the tunables in declared order, each check as soon as the last tunable that it reads has
// its value.
class FirstValid {
 public:
  FirstValid(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
             const Interrupt& interrupt)
      : spec_(spec),
        interrupt_(interrupt),
        all_(spec, problem, device),
        checks_(spec.tunables.size() + 1),
        values_(spec.tunables.size()) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = spec.tunables[i].values.front();
    }
    for (std::size_t check = 0; check < all_.count(); ++check) {
      std::size_t depth = 0;
      for (const std::uint32_t tunable : all_.tunables(check)) {
        depth = std::max(depth, std::size_t{tunable} + 1);
      }
      checks_[depth].push_back(check);
    }
  }

  std::optional<std::vector<std::int64_t>> find() {
    return descend(0, false) ? std::optional(values_) : std::nullopt;
  }

 private:
  enum class Verdict { Holds, Fails, Faults };

  // In the checks' own order, a check that faults here may never be reached: an earlier one, bound deeper,
  // may fail first. So a fault is not thrown here but decided at the leaf.
  Verdict verdict(std::size_t depth) const {
    Verdict result = Verdict::Holds;
    for (const std::size_t check : checks_[depth]) {
      try {
        if (!all_.holds(check, values_)) {
          return Verdict::Fails;
        }
      } catch (const Error&) {
        result = Verdict::Faults;
      }
    }
    return result;
  }

  bool all_hold() const {
    for (std::size_t check = 0; check < all_.count(); ++check) {
      if (!all_.holds(check, values_)) {
        return false;
      }
    }
    return true;
  }

  bool descend(std::size_t depth, bool faulted) {
    if (++steps_ % kBetweenInterrupts == 0) {
      ask(interrupt_);
    }
    if (steps_ > kMostSteps) {
      throw Error(ErrorCode::ResourceExhausted, spec_.file + " /default",
                  "none is valid, and no valid configuration was found among the first " +
                      std::to_string(kMostSteps) + ": add a default that is valid for this problem");
    }
    const Verdict here = verdict(depth);
    if (here == Verdict::Fails) {
      return false;
    }
    faulted = faulted || here == Verdict::Faults;
    if (depth == values_.size()) {
      return !faulted || all_hold();
    }
    for (const std::int64_t value : spec_.tunables[depth].values) {
      values_[depth] = value;
      if (descend(depth + 1, faulted)) {
        return true;
      }
    }
    return false;
  }

  const KernelSpec& spec_;
  const Interrupt& interrupt_;
  const SpaceChecks all_;
  std::vector<std::vector<std::size_t>> checks_;  // by depth
  std::vector<std::int64_t> values_;
  std::uint64_t steps_ = 0;
};

}  // namespace

KernelSpace::KernelSpace(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                         const Interrupt& interrupt)
    : space_(make_space(spec, problem, device, interrupt)) {}

Configuration KernelSpace::configuration(std::uint64_t number) const {
  const Point point = space_.point(number);
  Configuration configuration;
  configuration.values.reserve(point.size());
  for (std::size_t i = 0; i < point.size(); ++i) {
    const Axis& axis = space_.axes()[i];
    configuration.values.push_back({axis.name, axis.values[point[i]]});
  }
  return configuration;
}

std::optional<std::uint64_t> KernelSpace::number(const Configuration& configuration) const {
  std::vector<std::int64_t> values;
  for (const Axis& axis : space_.axes()) {
    const auto value = configuration.value(axis.name);
    if (!value) {
      return std::nullopt;
    }
    values.push_back(*value);
  }
  return configuration.values.size() == values.size() ? space_.number_of_values(values) : std::nullopt;
}

SpaceSize count_valid(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                      const Interrupt& interrupt) {
  const KernelSpace space(spec, problem, device, interrupt);
  SpaceSize size{1, space.numbers().size(), space.numbers().exact()};
  for (const Tunable& tunable : spec.tunables) {
    if (__builtin_mul_overflow(size.total, tunable.values.size(), &size.total)) {
      size.total = std::numeric_limits<std::uint64_t>::max();
      break;
    }
  }
  return size;
}

std::optional<std::string> violation(const KernelSpec& spec, const Problem& problem,
                                     const Configuration& configuration, const DeviceConstants& device) {
  return with_file(spec, [&]() -> std::optional<std::string> {
    const PlanEvaluator evaluator(spec.plan_template(problem, configuration), problem, configuration, device);
    PlanResult result = evaluator.evaluate(problem, configuration);
    if (result.plan) {
      return std::nullopt;
    }
    return std::move(result.violation);
  });
}

std::optional<Configuration> default_configuration(const KernelSpec& spec, const Problem& problem,
                                                   const DeviceConstants& device,
                                                   const Interrupt& interrupt) {
  for (const Configuration& candidate : spec.defaults) {
    if (!violation(spec, problem, candidate, device)) {
      return candidate;
    }
  }
  return with_file(spec, [&]() -> std::optional<Configuration> {
    const auto values = FirstValid(spec, problem, device, interrupt).find();
    if (!values) {
      return std::nullopt;
    }
    Configuration first = first_configuration(spec);
    for (std::size_t i = 0; i < values->size(); ++i) {
      first.values[i].value = (*values)[i];
    }
    return first;
  });
}

}  // namespace cubind
