// A Triton kernel from its tuning to the answer: a real Triton compiles, and a recorded table is the GPU.
#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "plan/wire.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/replayed_triton.hpp"
#include "tests/support/skip.hpp"

namespace cubind::test {
namespace {

/// A daemon that has the kernel "rows", and an agent that has its Triton.
class RowsDaemon {
 public:
  RowsDaemon() : spec_(real_triton_spec(real_target()).parse()), daemon_(options()) { daemon_.start(); }

  std::vector<v1::TuneEvent> tune() {
    v1::TuneRequest request;
    request.set_kernel(spec_->name);
    *request.add_problems() = wire(kRowsProblem);
    std::vector<v1::TuneEvent> events;
    daemon_.connect().tune(
        request, [&](const v1::TuneEvent& event) { events.push_back(event); }, {}, std::nullopt);
    return events;
  }
  v1::GetVariantReply ask(v1::OnMiss on_miss) {
    const Connection connection = daemon_.connect();
    v1::GetVariantRequest request = question(connection, kRowsProblem);
    request.set_kernel(spec_->name);
    request.set_tune(v1::NEVER);
    request.set_on_miss(on_miss);
    return connection.get_variant(request, kPatience);
  }

 private:
  DaemonOptions options() {
    create_folders(folder_.path() / "kernels");
    for (const SourceFile& file : spec_->bundle.files) {
      write_file_atomic(folder_.path() / "kernels" / file.path, file.content);
    }
    write_file_atomic(folder_.path() / "kernels" / "rows.json", spec_->bundle.spec_json);
    write_file_atomic(folder_.path() / "table.json", rows_table(spec_->name));
    DaemonOptions options;
    options.folder = folder_.path();
    options.kernels = {folder_.path() / "kernels"};
    options.replay = folder_.path() / "table.json";
    options.arguments = {"--no-shipped-kernels", "--triton-python", triton_python()};
    return options;
  }

  std::shared_ptr<const KernelSpec> spec_;
  TempDir folder_;
  Daemon daemon_;
};

void check_launch(const v1::GetVariantReply& reply) {
  REQUIRE(reply.plan().launches_size() == 1);
  const v1::Launch& launch = reply.plan().launches(0);
  CHECK(launch.entry_symbol() == "rows");
  CHECK(launch.shared_bytes() > 0);
  CHECK(launch.parameters_size() >= 4);
}

TEST_CASE("a Triton kernel is served with its first configuration and with the tuned one afterwards") {
  if (!has_triton()) {
    return skip_test(kNoTriton);
  }
  RowsDaemon daemon;
  const v1::GetVariantReply first = daemon.ask(v1::SERVE);
  CHECK(configuration_from_wire(first.configuration(), "first") == rows_configuration(0));
  check_launch(first);
  const auto events = daemon.tune();
  REQUIRE_FALSE(events.empty());
  INFO(events.back().job().error());
  REQUIRE(events.back().job().state() == v1::Job::DONE);
  const v1::GetVariantReply tuned = daemon.ask(v1::FAIL);
  CHECK(configuration_from_wire(tuned.configuration(), "tuned") == rows_configuration(2));
  CHECK(tuned.plan().launches(0).block().x() == 256);
  check_launch(tuned);
}

}  // namespace
}  // namespace cubind::test
