#include "tuner/spec/space.hpp"

#include <algorithm>
#include <functional>

#include "base/error.hpp"
#include "tuner/plan/plan_program.hpp"

namespace cubind {
namespace {

// The first value of each tunable: names and order for a PlanProgram that enumeration overwrites.
Configuration first_configuration(const KernelSpec& spec) {
  Configuration configuration;
  for (const Tunable& tunable : spec.tunables) {
    configuration.values.push_back({tunable.name, tunable.values.front()});
  }
  return configuration;
}

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

// Depth-first over the tunables in declared order, each check as soon as the last tunable that it reads has
// its value. Not thread-safe: one walk for one call.
class Walk {
 public:
  // Called for each valid configuration; false ends the walk.
  using Visit = std::function<bool(const std::vector<std::int64_t>& tunables)>;

  Walk(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
       const Interrupt& interrupt = {})
      : spec_(spec),
        interrupt_(interrupt),
        program_(spec.plan_template(problem, first_configuration(spec)), problem, first_configuration(spec),
                 device),
        values_(program_.initial_values()),
        checks_(spec.tunables.size() + 1) {
    for (std::size_t check = 0; check < program_.check_count(); ++check) {
      checks_[depth_of(check)].push_back(check);
    }
    for (std::size_t depth = spec.tunables.size(); depth-- > 0;) {
      below_.insert(below_.begin(), below_.front() * spec.tunables[depth].values.size());
    }
  }

  void visit(const Visit& visit) {
    visit_ = &visit;
    descend(0, false);
  }

  std::uint64_t count() {
    visit_ = nullptr;
    counted_ = 0;
    descend(0, false);
    return counted_;
  }

 private:
  enum class Verdict { Holds, Fails, Faults };

  // The number of tunables that must have values.
  std::size_t depth_of(std::size_t check) const {
    std::size_t depth = 0;
    for (const std::uint32_t slot : program_.check_slots(check)) {
      const std::size_t first = program_.first_tunable();
      if (slot >= first && slot < first + program_.tunable_count()) {
        depth = std::max(depth, slot - first + 1);
      }
    }
    return depth;
  }

  // In the checks' own order, a check that faults here may never be reached: an earlier one, bound deeper,
  // may fail first. So a fault is not thrown here but decided at the leaf.
  Verdict verdict(std::size_t depth) const {
    Verdict result = Verdict::Holds;
    for (const std::size_t check : checks_[depth]) {
      try {
        if (!program_.holds(check, values_)) {
          return Verdict::Fails;
        }
      } catch (const Error&) {
        result = Verdict::Faults;
      }
    }
    return result;
  }

  bool all_hold() const {
    for (std::size_t check = 0; check < program_.check_count(); ++check) {
      if (!program_.holds(check, values_)) {
        return false;
      }
    }
    return true;
  }

  bool checks_below(std::size_t depth) const {
    return std::ranges::any_of(checks_.begin() + static_cast<std::ptrdiff_t>(depth) + 1, checks_.end(),
                               [](const auto& checks) { return !checks.empty(); });
  }

  // False: the visitor ends the walk.
  bool descend(std::size_t depth, bool faulted) {
    if (++steps_ % kBetweenInterrupts == 0) {
      ask(interrupt_);
    }
    const Verdict here = verdict(depth);
    if (here == Verdict::Fails) {
      return true;
    }
    faulted = faulted || here == Verdict::Faults;
    if (depth == spec_.tunables.size()) {
      return leaf(faulted);
    }
    if (visit_ == nullptr && !faulted && !checks_below(depth)) {
      counted_ += below_[depth];
      return true;
    }
    for (const std::int64_t value : spec_.tunables[depth].values) {
      values_[program_.first_tunable() + depth] = value;
      if (!descend(depth + 1, faulted)) {
        return false;
      }
    }
    return true;
  }

  bool leaf(bool faulted) {
    if (faulted && !all_hold()) {
      return true;
    }
    if (visit_ == nullptr) {
      ++counted_;
      return true;
    }
    const auto first = values_.begin() + static_cast<std::ptrdiff_t>(program_.first_tunable());
    return (*visit_)({first, first + static_cast<std::ptrdiff_t>(program_.tunable_count())});
  }

  const KernelSpec& spec_;
  const Interrupt interrupt_;
  std::uint64_t steps_ = 0;
  PlanProgram program_;
  std::vector<std::int64_t> values_;
  std::vector<std::vector<std::size_t>> checks_;  // by depth
  std::vector<std::uint64_t> below_{1};           // configurations below a node, by depth
  const Visit* visit_ = nullptr;
  std::uint64_t counted_ = 0;
};

Configuration named(const KernelSpec& spec, const std::vector<std::int64_t>& values) {
  Configuration configuration;
  configuration.values.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    configuration.values.push_back({spec.tunables[i].name, values[i]});
  }
  return configuration;
}

}  // namespace

std::vector<Configuration> enumerate_valid(const KernelSpec& spec, const Problem& problem,
                                           const DeviceConstants& device, std::uint64_t limit) {
  return with_file(spec, [&] {
    std::vector<Configuration> valid;
    Walk(spec, problem, device).visit([&](const std::vector<std::int64_t>& values) {
      if (valid.size() >= limit) {
        throw Error(ErrorCode::ResourceExhausted, spec.file + " /constraints",
                    "more than " + std::to_string(limit) + " configurations are valid for " +
                        to_string(problem) + ", add constraints or list fewer values");
      }
      valid.push_back(named(spec, values));
      return true;
    });
    return valid;
  });
}

SpaceSize count_valid(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                      const Interrupt& interrupt) {
  return with_file(spec, [&] {
    SpaceSize size{1, 0};
    for (const Tunable& tunable : spec.tunables) {
      size.total *= tunable.values.size();
    }
    size.valid = Walk(spec, problem, device, interrupt).count();
    return size;
  });
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
  return with_file(spec, [&] {
    std::optional<Configuration> first;
    Walk(spec, problem, device, interrupt).visit([&](const std::vector<std::int64_t>& values) {
      first = named(spec, values);
      return false;
    });
    return first;
  });
}

}  // namespace cubind
