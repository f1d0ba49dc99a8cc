// Fills a new database as measuring would: records of rmsnorm_forward for an H200, each with an artifact of
// CUBIN_BYTES (default: 50,000) that does not compress, and the requests that ask for them.
// usage: lookup_seed FOLDER RECORDS [CUBIN_BYTES]
//
// FOLDER gets cubind.db, digest.requests (the caller has the cubin) and cubin.requests (it does not).
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/zstd.hpp"
#include "bench/lookup/requests.hpp"
#include "plan/wire.hpp"
#include "schemas/cubind.pb.h"
#include "server/lookup/todays_trial.hpp"
#include "server/store/store.hpp"
#include "tests/support/example_facts.hpp"
#include "tests/support/facts.hpp"
#include "tuner/spec/keys.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/spec_folder.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::bench {
namespace {

constexpr std::int64_t kRows[] = {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536};

class Seed {
 public:
  Seed(Store& store, const KernelSpec& spec, std::size_t cubin_bytes)
      : store_(store),
        spec_(spec),
        cubin_bytes_(cubin_bytes),
        device_(derive_device_class(test::example_facts(), "facts")) {}

  void add(std::size_t count) {
    store_.write([&](StoreWriter& writer) {
      writer.put_device_class(device_);
      for (std::size_t i = 0; i < count; ++i) {
        const Problem problem{{{"N", kRows[i % std::size(kRows)]},
                               {"D", 1024 + 8 * static_cast<std::int64_t>(i / std::size(kRows))}},
                              {{"T", DType::Bf16}},
                              {},
                              ""};
        add_record(writer, spec_.canonicalize(problem, "problem"));
      }
    });
  }

  std::string digest_requests, cubin_requests;

 private:
  /// Any valid configuration may have won. Those of a D hold for every number of rows.
  Configuration any_configuration(const Problem& problem) {
    auto& valid = valid_[problem.dim("D").value()];
    if (!valid) {
      valid.emplace(spec_, problem, device_constants(device_.facts));
    }
    const std::uint64_t last = valid->numbers().count() - 1;
    return valid->configuration(std::uniform_int_distribution<std::uint64_t>(0, last)(random_));
  }

  Digest artifact(StoreWriter& writer, const Problem& problem, const Configuration& configuration,
                  const std::string& architecture) {
    const ArtifactSource source = artifact_source(spec_, problem, configuration, architecture);
    ArtifactRow row;
    row.key = artifact_key(source, toolchain_);
    if (const auto known = cubins_.find(row.key.digest); known != cubins_.end()) {
      return known->second;
    }
    std::string cubin(cubin_bytes_, '\0');
    for (char& byte : cubin) {
      byte = static_cast<char>(random_());
    }
    row.cubin = Digest::of(cubin);
    row.kernel = spec_.name;
    row.architecture = architecture;
    row.cubin_bytes = cubin.size();
    row.entries = source.entries;
    row.entry_symbols.assign(source.entries.size(),
                             "_Z15rmsnorm_forwardI13__nv_bfloat16Li256ELi8ELi1EEvPKT_S2_PS0_llf");
    EntryResources& entry = row.resources.emplace_back();
    entry.set_entry_symbol(row.entry_symbols.front());
    entry.set_registers(40);
    entry.set_static_shared_bytes(1024);
    row.toolchain = toolchain_;
    writer.put_blob({row.cubin, cubin.size(), zstd_compress(cubin)});
    writer.put_artifact(row);
    return cubins_.emplace(row.key.digest, row.cubin).first->second;
  }

  void add_record(StoreWriter& writer, const Problem& problem) {
    RecordRow record;
    record.question.kernel = spec_.name;
    record.question.interface = interface_digest(spec_);
    record.question.problem = problem;
    record.question.device_class = device_.digest;
    record.key = record_key(record.question).digest;
    record.configuration = any_configuration(problem);
    record.architecture = architecture(device_.facts, spec_.arch_features);
    record.toolchain = toolchain_;
    record.driver = {13000, "580.159.04"};
    record.cubin = artifact(writer, problem, record.configuration, record.architecture);
    record.trial = todays_trial_key(spec_, record, record.configuration, device_.facts).value();
    record.evidence = Evidence::Measured;
    record.timing = test::timing_of(10, 9.9, 10.1, 30, "2026-11-21T12:00:00.000Z");
    record.timing.set_sm_mhz(1980);
    record.timing.set_power_limit_mw(700000);
    record.timing.set_gain_over_default(1.1);
    record.verification = test::verified(verification_digest(spec_), "kernel", std::vector{problem});
    writer.put_record(record);
    ask_for(record);
  }

  void ask_for(const RecordRow& record) {
    v1::GetVariantRequest request;
    request.set_kernel(spec_.name);
    to_wire(record.question.problem, *request.mutable_problem());
    *request.mutable_device()->mutable_facts() = device_.facts;
    request.mutable_device()->mutable_driver()->set_cuda(record.driver.cuda);
    request.mutable_device()->mutable_driver()->set_version(record.driver.version);
    append_request(cubin_requests, request.SerializeAsString());
    request.add_have_artifacts(std::string(record.cubin.view()));
    append_request(digest_requests, request.SerializeAsString());
  }

  Store& store_;
  const KernelSpec& spec_;
  const std::size_t cubin_bytes_;
  const DeviceClass device_;
  const ToolchainIdentity toolchain_{"nvrtc 13.0", Digest::of("nvrtc"), Digest::of("builtins"),
                                     Digest::of("headers")};
  std::mt19937_64 random_{1};
  std::map<std::int64_t, std::optional<KernelSpace>> valid_;
  std::map<Digest, Digest> cubins_;
};

int run(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fputs("usage: lookup_seed FOLDER RECORDS [CUBIN_BYTES]\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const auto variants = shipped_variants();
  if (!variants) {
    throw Error(ErrorCode::NotFound, "variants", "are not next to this program");
  }
  const auto spec = load_kernel_spec((*variants / "rmsnorm" / "rmsnorm_forward.json").string());
  StoreOptions options;
  options.path = folder / "cubind.db";
  const auto store = Store::open(options);
  Seed seed(*store, *spec, argc == 4 ? static_cast<std::size_t>(std::atoi(argv[3])) : 50'000);
  seed.add(static_cast<std::size_t>(std::atoi(argv[2])));
  write_file_atomic(folder / "digest.requests", seed.digest_requests);
  write_file_atomic(folder / "cubin.requests", seed.cubin_requests);
  return 0;
}

}  // namespace
}  // namespace cubind::bench

int main(int argc, char** argv) {
  try {
    return cubind::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lookup_seed: %s\n", error.what());
    return 1;
  }
}
