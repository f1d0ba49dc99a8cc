#include "bundle/content.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/json_node.hpp"
#include "base/text.hpp"
#include "plan/compiled_plan.hpp"
#include "plan/facts/fact_json.hpp"
#include "tuner/spec/todays_terms.hpp"
#include "tuner/table/table_parts.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTable = "table.json";
constexpr const char* kArtifacts = "artifacts.json";
constexpr std::string_view kKernels = "kernels/", kSpec = "spec/", kCubins = "cubins/";
constexpr std::size_t kMaxArtifacts = std::size_t{256} << 20;

std::string spec_file(const std::string& name) {
  return kernel_folder(name) + "/" + std::string(kSpec) + name + ".json";
}

std::string bucket_text(const Problem& problem, const std::vector<BucketRule::Interval>& bucket) {
  std::vector<std::string> intervals;
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    intervals.push_back(problem.dims.at(i).name + "=" + std::to_string(bucket[i].lower) + ".." +
                        std::to_string(bucket[i].upper));
  }
  return join(intervals, ",");
}

std::string print_artifacts(const std::vector<BundledArtifact>& artifacts) {
  OrderedJson list = OrderedJson::array();
  for (const BundledArtifact& artifact : artifacts) {
    OrderedJson resources = OrderedJson::array();
    for (const EntryResources& entry : artifact.resources) {
      resources.push_back(to_json(entry));
    }
    list.push_back({{"symbols", artifact.symbols}, {"resources", std::move(resources)}});
  }
  return list.dump(1) + "\n";
}

void print_kernel(const KernelSpec& spec, Members& files) {
  const std::string folder = kernel_folder(spec.name);
  files[spec_file(spec.name)] = spec.bundle.spec_json;
  for (const SourceFile& file : spec.bundle.files) {
    const fs::path below = (fs::path(kSpec) / file.path).lexically_normal();
    if (*below.begin() == "..") {
      throw Error(ErrorCode::InvalidArgument, spec.file + " file " + quoted(file.path),
                  "lies more than one folder above the spec, and a bundle keeps one: move it");
    }
    if (!files.emplace(folder + "/" + below.generic_string(), file.content).second) {
      throw Error(ErrorCode::InvalidArgument, spec.file + " file " + quoted(file.path),
                  "has the name of the spec in a bundle: rename it");
    }
  }
}

class ContentReader {
 public:
  ContentReader(const Members& files, const std::string& where) : files_(files), where_(where) {}

  BundleContent read() {
    content_.table = read_table(take(kTable), where_ + " " + kTable);
    if (!content_.table.trials.empty() || content_.table.records.empty()) {
      refuse(kTable, "a bundle has records and no trials");
    }
    read_artifacts();
    for (const TableRecord& record : content_.table.records) {
      add_kernel(record.context.kernel);
      add_cubin(record.context.artifact);
    }
    for (const auto& [path, text] : files_) {
      if (!taken_.contains(path)) {
        refuse(path, "belongs to no record");
      }
    }
    return std::move(content_);
  }

 private:
  [[noreturn]] void refuse(const std::string& path, const std::string& cause) const {
    throw Error(ErrorCode::InvalidArgument, where_ + " " + path, cause);
  }

  const std::string& take(const std::string& path) {
    const auto found = files_.find(path);
    if (found == files_.end()) {
      refuse(path, "is missing");
    }
    taken_.insert(path);
    return found->second;
  }

  void read_artifacts() {
    JsonLimits limits;
    limits.max_bytes = kMaxArtifacts;
    const std::string location = where_ + " " + kArtifacts;
    const OrderedJson document = parse_json_strict(take(kArtifacts), location, limits);
    for (const JsonNode& node : JsonNode(document, location).elements()) {
      node.expect_keys({"symbols", "resources"});
      BundledArtifact& artifact = content_.artifacts.emplace_back();
      for (const JsonNode& symbol : node.at("symbols").elements()) {
        artifact.symbols.push_back(symbol.as_string());
      }
      for (const JsonNode& entry : node.at("resources").elements()) {
        read_fields(entry, artifact.resources.emplace_back());
      }
    }
    if (content_.artifacts.size() != content_.table.records.size()) {
      refuse(kArtifacts, "lists " + std::to_string(content_.artifacts.size()) + " artifacts for " +
                             std::to_string(content_.table.records.size()) + " records");
    }
  }

  void add_kernel(const std::string& name) {
    if (content_.kernels.contains(name)) {
      return;
    }
    const std::string folder = kernel_folder(name) + "/";
    const std::string own = spec_file(name);
    if (!is_member_path(own)) {
      refuse(kTable, quoted(name) + " is not the name of a kernel");
    }
    SpecBundle bundle{where_ + " " + own, take(own), {}};
    for (auto file = files_.lower_bound(folder); file != files_.end() && file->first.starts_with(folder);
         ++file) {
      if (file->first != own) {
        const fs::path path = fs::path(file->first).lexically_relative(folder + std::string(kSpec));
        bundle.files.push_back({path.generic_string(), take(file->first)});
      }
    }
    auto spec = parse_kernel_spec(std::move(bundle));
    if (spec->name != name) {
      refuse(own, "names another kernel, " + quoted(spec->name));
    }
    content_.kernels[name] = std::move(spec);
  }

  void add_cubin(const Digest& digest) {
    if (content_.cubins.contains(digest)) {
      return;
    }
    const std::string path = std::string(kCubins) + digest.hex();
    const std::string& cubin = take(path);
    if (Digest::of(cubin) != digest) {
      throw Error(ErrorCode::DataLoss, where_ + " " + path,
                  "is damaged: it does not have the digest of its name");
    }
    content_.cubins[digest] = cubin;
  }

  const Members& files_;
  const std::string& where_;
  BundleContent content_;
  std::set<std::string> taken_;
};

}  // namespace

std::string kernel_folder(const std::string& name) { return std::string(kKernels) + name; }

Members kernel_files(const BundleContent& content) {
  Members files;
  for (const auto& [name, spec] : content.kernels) {
    print_kernel(*spec, files);
  }
  return files;
}

Members print_content(const BundleContent& content) {
  Members files = kernel_files(content);
  files[kTable] = print_table(content.table);
  files[kArtifacts] = print_artifacts(content.artifacts);
  for (const auto& [digest, cubin] : content.cubins) {
    files[std::string(kCubins) + digest.hex()] = cubin;
  }
  return files;
}

BundleContent read_content(const Members& files, const std::string& where) {
  return ContentReader(files, where).read();
}

const DeviceFacts& facts_of(const Table& table, const Digest& device_class) {
  const auto found = std::ranges::find(table.devices, device_class, &TableDevice::device_class);
  if (found == table.devices.end()) {
    throw Error(ErrorCode::InvalidArgument, "table", "lists no device class " + device_class.hex());
  }
  return found->facts;
}

bool is_of_revision(const TableRecord& record, const KernelSpec& spec, const DeviceFacts& facts) {
  const TableContext& context = record.context;
  const auto policy = parse_policy(context.policy);
  const auto configuration = in_todays_terms(spec, context.configuration);
  if (record.interface != interface_digest(spec) || !policy || configuration != context.configuration) {
    return false;
  }
  return trial_key_under(spec, context.configuration,
                         {context.problem, context.device_class, device_constants(facts), *policy,
                          context.driver, context.architecture, context.toolchain}) == context.trial;
}

BundledVariant variant_of(const BundleContent& content, std::size_t record, const std::string& where) {
  const TableContext& context = content.table.records.at(record).context;
  const KernelSpec& spec = *content.kernels.at(context.kernel);
  const BundledArtifact& artifact = content.artifacts.at(record);
  const std::string location = where + " /records/" + std::to_string(record);
  if (!is_of_revision(content.table.records[record], spec, facts_of(content.table, context.device_class))) {
    throw Error(ErrorCode::FailedPrecondition, location,
                "was measured with another revision of " + context.kernel + " than the bundle has");
  }
  const ArtifactSource source =
      artifact_source(spec, context.problem, context.configuration, context.architecture);
  if (artifact.symbols.size() != source.entries.size()) {
    throw Error(ErrorCode::InvalidArgument, location,
                "its artifact has " + std::to_string(artifact.symbols.size()) + " symbols for " +
                    std::to_string(source.entries.size()) + " entries");
  }
  return {artifact_key(source, context.toolchain), source.entries,
          as_compiled(spec.plan_template(context.problem, context.configuration), source.entries,
                      artifact.symbols, artifact.resources),
          bucket_text(context.problem, spec.bucket(context.problem))};
}

}  // namespace cubind
