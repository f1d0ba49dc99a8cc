#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/identifier.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "tuner/spec/spec_document.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {
namespace {

std::string read_kernel_name(const JsonNode& node) {
  std::string name = node.as_nonempty_string();
  if (!is_identifier(name)) {
    node.fail(quoted(name) + " is not a name: letters, digits and _, not beginning with a digit");
  }
  if (name.size() > SpecLimits::kNameLength) {
    node.fail("the name has " + std::to_string(name.size()) + " characters, at most " +
              std::to_string(SpecLimits::kNameLength) + " are allowed");
  }
  return name;
}

void refuse_other_documents(const JsonNode& root) {
  if (root.contains("format")) {
    root.fail("is a tuning table, not a kernel spec: `cubindctl table check` checks tables");
  }
  if (!root.contains("name") && !root.contains("source") && !root.contains("tunables")) {
    root.fail(
        "is not a kernel spec: it has no \"name\", \"source\" or \"tunables\". Other JSON files do not lie "
        "among kernels: move it, or begin its name with a dot");
  }
}

/// Of sections that do not need each other: so that one look shows what is wrong in all of them.
class Faults {
 public:
  /// Whether the section could be read.
  template <typename Read>
  bool collect(const Read& read) {
    try {
      read();
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::InvalidArgument) {
        throw;
      }
      found_.push_back(error);
      return false;
    }
  }

  /// Throws the first, with a line in its cause for each of the others.
  void raise() const {
    if (found_.empty()) {
      return;
    }
    std::string cause = found_.front().cause();
    for (std::size_t i = 1; i < found_.size(); ++i) {
      cause += std::string("\n") + found_[i].what();
    }
    throw Error(ErrorCode::InvalidArgument, found_.front().where(), cause);
  }

 private:
  std::vector<Error> found_;
};

void check_keys(const JsonNode& root) {
  root.expect_keys({"$schema", "name",      "language",   "description",   "source",
                    "headers", "problem",   "specialize", "tunables",      "constraints",
                    "default", "arguments", "launches",   "reference",     "tolerance",
                    "work",    "options",   "defines",    "arch_features", "baseline"});
  // Keys for readers and editors are not kept.
  root.string_or("$schema", "");
  root.string_or("description", "");
  root.string_or("baseline", "");
}

void read_cuda_document(const JsonNode& root, KernelSpec& spec) {
  check_keys(root);  // a key that is misspelled is missing, too
  Faults faults;
  faults.collect([&] { spec.source = read_path(root.at("source")); });
  if (!faults.collect([&] {
        read_problem(root, spec);
        read_tunables(root, spec);
      })) {
    faults.raise();
  }
  const SpecScopes scopes = make_scopes(spec);
  faults.collect([&] { read_constraints(root, scopes, spec); });
  faults.collect([&] { read_defaults(root, spec); });
  const bool has_arguments = faults.collect([&] { read_arguments(root, scopes, spec); });
  faults.collect([&] { read_compilation(root, spec); });
  faults.collect([&] { read_work(root, scopes, spec); });
  if (has_arguments) {
    faults.collect([&] { read_launches(root, scopes, spec); });
    faults.collect([&] { read_reference(root, scopes, spec); });
    faults.collect([&] { read_tolerance(root, scopes, spec); });
  }
  faults.raise();
  check_spec(root, spec);
}

}  // namespace

void read_work(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec) {
  const auto work = root.find("work");
  if (!work) {
    return;
  }
  work->expect_keys({"bytes", "min_read_bytes", "flops"});
  const auto read = [&](std::string_view key) {
    const auto node = work->find(key);
    return node ? read_expression(*node, scopes.problem) : std::string();
  };
  spec.work = {read("bytes"), read("min_read_bytes"), read("flops")};
}

KernelSpec read_spec_document(std::string_view text, const std::string& file) {
  const OrderedJson document = parse_json_strict(text, file, kSpecJsonLimits);
  const JsonNode root(document, file);
  if (!root.is_object()) {
    root.fail("a kernel spec is an object, found " + root.type_name());
  }
  refuse_other_documents(root);
  refuse_scenarios(root);
  KernelSpec spec;
  spec.file = file;
  spec.name = read_kernel_name(root.at("name"));
  if (is_triton_document(root)) {
    read_triton_document(root, spec);
  } else {
    read_cuda_document(root, spec);
  }
  return spec;
}

}  // namespace cubind
