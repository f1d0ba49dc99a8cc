#include "tuner/table/table_check.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/json_node.hpp"
#include "base/text.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/todays_terms.hpp"
#include "tuner/table/table_identity.hpp"
#include "tuner/table/table_parts.hpp"

namespace cubind {
namespace {

std::vector<std::string> kernel_names(const std::map<std::string, std::shared_ptr<const KernelSpec>>& specs) {
  std::vector<std::string> names;
  for (const auto& [name, spec] : specs) {
    names.push_back(name);
  }
  return names;
}

// The facts that a kernel's rows are compared with, computed once.
struct CheckedKernel {
  std::shared_ptr<const KernelSpec> spec;
  Digest interface, verification;
};

class Checker {
 public:
  Checker(std::string file, const KnownSpecs& known, TableParts parts)
      : file_(std::move(file)), known_(known), parts_(std::move(parts)) {
    for (const TableDevice& device : parts_.table.devices) {
      facts_[device.device_class] = device.facts;
    }
    for (std::size_t i = 0; i < parts_.table.trials.size(); ++i) {
      trials_[identity_of(parts_.table.trials[i])] = i;
    }
    for (const auto& [name, spec] : known.specs) {
      kernels_[name] = {spec, interface_digest(*spec), verification_digest(*spec)};
    }
  }

  std::vector<TableFinding> run() {
    for (const Error& fault : parts_.faults) {
      findings_.push_back({fault.where(), fault.cause()});
    }
    for (std::size_t i = 0; i < parts_.table.records.size(); ++i) {
      where_ = file_ + " /records/" + std::to_string(parts_.record_indices[i]);
      check(parts_.table.records[i]);
    }
    for (std::size_t i = 0; i < parts_.table.trials.size(); ++i) {
      where_ = file_ + " /trials/" + std::to_string(parts_.trial_indices[i]);
      check(parts_.table.trials[i]);
    }
    return std::move(findings_);
  }

 private:
  void add(const std::string& member, std::string cause) {
    findings_.push_back({where_ + member, std::move(cause)});
  }
  void add_outdated(const std::string& member, std::string cause) {
    findings_.push_back({where_ + member, std::move(cause), true});
  }

  // Nothing is known of a device that has a fault itself.
  bool has_facts(const TableContext& context) const { return facts_.contains(context.device_class); }

  void check(const TableRecord& record) {
    if (!has_facts(record.context)) {
      return;
    }
    check_architecture(record);
    check_own_trial(record);
    const CheckedKernel* kernel = find_kernel(record.context);
    if (kernel == nullptr) {
      return;
    }
    if (record.interface != kernel->interface) {
      add_other_interface(*kernel);
      return;
    }
    check_context(*kernel->spec, record.context, true);
    check_numerics(*kernel->spec, record);
    if (record.verification.digest() != verification_of(*kernel, record.numerics).view()) {
      add_outdated(
          "/verification/digest",
          "the reference or the tolerance of " + record.context.kernel +
              " has changed since (or the default, for numerics invariant:DIM): the winner is not called "
              "verified until it is measured again");
    }
  }

  void check(const TableTrial& trial) {
    if (!has_facts(trial.context)) {
      return;
    }
    const CheckedKernel* kernel = find_kernel(trial.context);
    if (kernel != nullptr) {
      check_context(*kernel->spec, trial.context, trial.outcome != Outcome::Constraint);
    }
  }

  /// Once for a kernel, at its first such record.
  void add_other_interface(const CheckedKernel& kernel) {
    const std::string& name = kernel.spec->name;
    if (!interfaces_told_.insert(name).second) {
      return;
    }
    const auto& records = parts_.table.records;
    const auto count = std::ranges::count_if(records, [&](const TableRecord& record) {
      return record.context.kernel == name && record.interface != kernel.interface;
    });
    add("/interface", other_interface(static_cast<std::size_t>(count), name, kernel.spec->file));
  }

  void check_numerics(const KernelSpec& spec, const TableRecord& record) {
    const std::string dim = parse_numerics(record.numerics).value_or(Numerics{}).invariant_dim;
    if (!dim.empty() && spec.outputs_along(dim).empty()) {
      add("/numerics", quoted(dim) + " is not a dim of " + spec.name +
                           " along which an output has rows: no question finds this record");
    }
  }

  static Digest verification_of(const CheckedKernel& kernel, const std::string& numerics) {
    const Numerics asked = parse_numerics(numerics).value_or(Numerics{});
    return asked == Numerics{} ? kernel.verification : verification_digest(*kernel.spec, asked);
  }

  const CheckedKernel* find_kernel(const TableContext& context) {
    const auto found = kernels_.find(context.kernel);
    if (found != kernels_.end()) {
      return &found->second;
    }
    const auto broken = known_.broken.find(context.kernel);
    add("/kernel", broken != known_.broken.end()
                       ? "its spec does not parse: " + broken->second
                       : "no spec has the name " + quoted(context.kernel) +
                             suggestion(context.kernel, kernel_names(known_.specs)) +
                             "; name its folder by --kernels DIR");
    return nullptr;
  }

  void check_context(const KernelSpec& spec, const TableContext& context, bool valid) {
    if (!check_problem(spec, context)) {
      return;
    }
    const std::size_t before = findings_.size();
    check_tunables(spec, context);
    const auto configuration = in_todays_terms(spec, context.configuration);  // as a daemon carries it over
    if (!configuration || !valid || !check_limits(spec, context, *configuration)) {
      return;
    }
    if (findings_.size() == before) {
      check_revision(spec, context, *configuration);
    }
  }

  bool check_problem(const KernelSpec& spec, const TableContext& context) {
    try {
      const Problem canonical = spec.canonicalize(context.problem, "problem");
      if (canonical == context.problem) {
        return true;
      }
      add("/problem", "is not written as " + spec.name +
                          " declares it, so no question finds it: " + to_string(canonical) + " is right");
    } catch (const Error& error) {
      add("/problem", error.cause());
    }
    return false;
  }

  void check_tunables(const KernelSpec& spec, const TableContext& context) {
    std::vector<std::string> names;
    for (const Tunable& tunable : spec.tunables) {
      names.push_back(tunable.name);
      const auto value = context.configuration.value(tunable.name);
      if (!value) {
        add_outdated("/configuration", "other_revision: the tunable " + quoted(tunable.name) +
                                           " is missing: the spec's default is used");
      } else if (std::ranges::find(tunable.values, *value) == tunable.values.end()) {
        add("/configuration/" + escape_pointer_step(tunable.name),
            std::to_string(*value) + " is not listed by " + spec.file + " /tunables/" +
                escape_pointer_step(tunable.name) + " (" + join(tunable.values, ", ") + ")");
      }
    }
    for (const NamedValue& value : context.configuration.values) {
      if (std::ranges::find(names, value.name) != names.end()) {
        continue;
      }
      add_outdated("/configuration/" + escape_pointer_step(value.name),
                   "other_revision: " + spec.name + " has no such tunable" + suggestion(value.name, names));
    }
  }

  bool check_limits(const KernelSpec& spec, const TableContext& context, const Configuration& configuration) {
    try {
      const auto why = violation(spec, context.problem, configuration, constants(context));
      if (why) {
        add("/configuration", *why);
      }
      return !why;
    } catch (const Error& error) {
      add("/configuration", error.what());
      return false;
    }
  }

  void check_revision(const KernelSpec& spec, const TableContext& context,
                      const Configuration& configuration) {
    if (context.artifact.is_zero()) {
      return;  // nothing was compiled, or the table does not say from what
    }
    const auto today = trial_key_under(spec, configuration,
                                       {context.problem, context.device_class, constants(context),
                                        policy_from_table(context.policy, where_ + "/policy"), context.driver,
                                        context.architecture, context.toolchain});
    if (today != context.trial) {
      add_outdated("/trial",
                   "other_revision: not the key that " + spec.file +
                       " gives this configuration today; the spec or a source of it has changed since");
    }
  }

  void check_architecture(const TableRecord& record) {
    const DeviceFacts& facts = facts_.at(record.context.device_class);
    if (!cubin_runs_on(record.context.architecture, facts.cc_major(), facts.cc_minor())) {
      add("/architecture", "a cubin for " + record.context.architecture +
                               " does not run on this device, which is " + architecture(facts, false));
    }
  }

  void check_own_trial(const TableRecord& record) {
    const auto found = trials_.find({record.context.kernel, record.context.trial});
    if (found == trials_.end()) {
      return;
    }
    const Outcome outcome = parts_.table.trials[found->second].outcome;
    if (outcome == Outcome::Correct) {
      return;
    }
    add("/trial", "/trials/" + std::to_string(parts_.trial_indices[found->second]) + " ended as " +
                      std::string(to_string(outcome)) + ": it is not a winner");
  }

  DeviceConstants constants(const TableContext& context) const {
    return device_constants(facts_.at(context.device_class));
  }

  const std::string file_;
  const KnownSpecs& known_;
  const TableParts parts_;
  std::map<Digest, DeviceFacts> facts_;
  std::map<TrialIdentity, std::size_t> trials_;
  std::map<std::string, CheckedKernel> kernels_;
  std::set<std::string> interfaces_told_;  // kernels
  std::string where_;                      // of the current row
  std::vector<TableFinding> findings_;
};

}  // namespace

std::string other_interface(std::size_t records, const std::string& kernel, const std::string& spec_file) {
  return counted(records, "record") + " of " + kernel + " from here on " + (records == 1 ? "is" : "are") +
         " of another interface (dims, flags, arguments) than " + spec_file +
         " declares: no question finds them. Name the folder of the spec that they were measured with by "
         "--kernels DIR, or tune " +
         kernel + " again and export it";
}

TableCheck check_table(std::string_view text, const std::string& file, const KnownSpecs& known) {
  TableCheck check;
  try {
    const OrderedJson document = parse_json_strict(text, file);
    TableParts parts = read_table_parts(document, file, std::numeric_limits<std::size_t>::max());
    check.records = parts.table.records.size();
    check.trials = parts.table.trials.size();
    check.findings = Checker(file, known, std::move(parts)).run();
  } catch (const Error& error) {
    check.findings.push_back({error.where(), error.cause()});
  }
  return check;
}

}  // namespace cubind
