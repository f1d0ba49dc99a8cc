// Whichever bit of a store has flipped, the daemon starts and answers the same, or worse with the damage
// named, and never with another cubin. CUBIND_FLIPS=2000 is the acceptance run.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <map>
#include <set>

#include "base/digest.hpp"
#include "base/log.hpp"
#include "base/zstd.hpp"
#include "plan/wire.hpp"
#include "server/service/context.hpp"
#include "server/store/store.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/flipped_bits.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

constexpr std::size_t kFlipsBesideOthers = 25;
const std::vector<std::int64_t> kSizes = {4096, 65536, 1'000'000};

/// stderr in a file, for as long as it lives.
class ErrorLog {
 public:
  ErrorLog() : file_(folder_.path() / "log"), before_(::dup(STDERR_FILENO)) {
    const UniqueFd log(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    REQUIRE(::dup2(log.get(), STDERR_FILENO) == STDERR_FILENO);
    init_logging("cubind-test", "warn");
  }
  ~ErrorLog() { ::dup2(before_.get(), STDERR_FILENO); }
  ErrorLog(const ErrorLog&) = delete;
  ErrorLog& operator=(const ErrorLog&) = delete;

  /// What has been written since the last call.
  std::string take() {
    std::string text = read_file(file_);
    REQUIRE(::ftruncate(STDERR_FILENO, 0) == 0);
    return text;
  }

 private:
  TempDir folder_;
  std::filesystem::path file_;
  UniqueFd before_;
};

/// Everything that a daemon tells of its store, by the question's name. "error: ..." where a call fails.
using Answers = std::map<std::string, std::string>;

struct FlippedStore : DaemonFixture {
  FlippedStore() {
    // A daemon is started for each flip.
    create_folders(folder() / "kernels");
    for (const char* name : {"vector_add", "common"}) {
      std::filesystem::copy(source_dir() / "variants" / name, folder() / "kernels" / name);
    }
    config().kernels = {folder() / "kernels"};
    restart();
    {
      AutoAgent agent(address(), hello_with(h200_facts()));
      eventually([&] { return status().agents() == 1; });
      tune(tune_vector_add(kSizes));
    }
    eventually([&] { return status().agents() == 0; });
    v1::TuneRequest later = tune_vector_add({20'000'000});
    later.set_detach(true);
    tune(later);
    context().store.read([&](StoreReader& reader) {
      for (const TrialRow& trial : reader.all_trials({})) {
        compiled.emplace(to_string(trial.configuration), trial.cubin.hex());
      }
    });
  }

  Answers answers() {
    Answers all;
    for (const std::int64_t n : kSizes) {
      v1::GetVariantRequest request = vector_add(n);
      request.set_tune(v1::NEVER);
      request.set_compile_wait_ms(1);
      const Got got = get(request);
      all["variant " + std::to_string(n)] =
          got.status.ok() ? checked(got.reply) : "error: " + got.status.error_message();
    }
    try {
      std::string& text = all["jobs"];
      for (const v1::Job& job : jobs(true)) {
        text += job.DebugString();
      }
    } catch (const std::exception& error) {
      all["jobs"] = std::string("error: ") + error.what();
    }
    return all;
  }

  /// The cubin is the one that was compiled for the configuration, whatever the configuration is.
  std::string checked(v1::GetVariantReply reply) const {
    const v1::ArtifactInfo& artifact = reply.artifact();
    const std::string configuration =
        to_string(configuration_from_wire(reply.configuration(), "configuration"));
    const std::string digest = Digest::from_bytes(artifact.digest()).value().hex();
    CHECK(compiled.contains({configuration, digest}));
    CHECK(Digest::of(zstd_decompress(artifact.zstd_cubin(), artifact.cubin_bytes())).hex() == digest);
    reply.mutable_provenance()->clear_generation();
    return reply.DebugString();
  }

  std::set<std::pair<std::string, std::string>> compiled;  // configurations with their cubins
};

/// How the answers differ from those of the sound store; empty: they do not.
std::string difference(const Answers& sound, const Answers& now) {
  std::string text;
  for (const auto& [question, answer] : now) {
    if (answer != sound.at(question)) {
      text += question + ": " + answer + "\n";
    }
  }
  return text;
}

TEST_CASE("whichever bit of a store has flipped its daemon answers the same or worse with the damage named") {
  ErrorLog log;
  FlippedStore daemon;
  const Answers sound = daemon.answers();
  for (const auto& [question, answer] : sound) {
    REQUIRE_FALSE(answer.starts_with("error: "));
  }
  std::optional<StoreImage> image;
  daemon.restart([&] { image.emplace(daemon.config().database); });
  log.take();
  REQUIRE(difference(sound, daemon.answers()).empty());

  Random random(wanted_seed(20261122));
  std::size_t same = 0, worse = 0, quiet = 0;
  const std::size_t flips = wanted_flips(kFlipsBesideOthers);
  for (std::size_t i = 0; i < flips; ++i) {
    std::string flipped;
    log.take();
    REQUIRE_NOTHROW(daemon.restart([&] { flipped = image->put_flipped(random); }));
    INFO("flip " << i << ": " << flipped);
    const std::string other = difference(sound, daemon.answers());
    const std::string told = log.take();
    INFO(other);
    const bool named = !told.empty() || other.find("SQLite code") != std::string::npos;
    CHECK((other.empty() || named));
    ++(other.empty() ? same : worse);
    quiet += other.empty() && told.empty() ? 1 : 0;
  }
  std::cout << flips << " flipped bits: " << same << " times the same answers (" << quiet
            << " without a word in the log), " << worse << " times worse ones\n";
}

}  // namespace
}  // namespace cubind::test
