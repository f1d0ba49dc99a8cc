#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/triton_spec.hpp"
#include "tuner/table/table.hpp"

namespace cubind::test {
namespace {

struct TableFixture : DaemonFixture {
  std::string export_table(grpc::Status* status = nullptr, const std::string& kernel = "") {
    v1::ExportTableRequest request;
    if (!kernel.empty()) {
      request.add_kernels(kernel);
    }
    return export_table(request, status);
  }
  std::string export_table(const v1::ExportTableRequest& request, grpc::Status* status = nullptr) {
    grpc::ClientContext context;
    const auto reader = stub().ExportTable(&context, request);
    std::string text;
    left_out.Clear();
    for (v1::TableChunk chunk; reader->Read(&chunk);) {
      text += chunk.json();
      chunk.clear_json();
      left_out.MergeFrom(chunk);
    }
    const grpc::Status last = reader->Finish();
    if (status) {
      *status = last;
    }
    return text;
  }
  grpc::Status import_table(const std::string& text, v1::ImportTableReply& reply, bool only_new = false) {
    grpc::ClientContext context;
    const auto writer = stub().ImportTable(&context, &reply);
    v1::TableChunk chunk;
    chunk.set_file("mine.json");
    chunk.set_only_new(only_new);
    for (std::size_t sent = 0; sent < text.size(); sent += 1000) {
      chunk.set_json(text.substr(sent, 1000));
      writer->Write(chunk);
      chunk.clear_file();
    }
    writer->WritesDone();
    return writer->Finish();
  }

  v1::TableChunk left_out;  // what the latest export says of itself
};

std::string table_of_vector_add() {
  TableFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({4096, 1024}));
  return daemon.export_table();
}

TEST_CASE("a table of the first version is exported as it was imported") {
  const std::string text = read_file(source_dir() / "tests/golden/formats/table.json");
  TableFixture daemon;
  v1::ImportTableReply imported;
  REQUIRE(daemon.import_table(text, imported).ok());
  CHECK(imported.records_added() == 2);
  CHECK(imported.trials_added() == 16);
  v1::ExportTableRequest everything;
  everything.set_all_trials(true);
  everything.set_include_samples(true);
  everything.set_include_replayed(true);
  CHECK(daemon.export_table(everything) == text);
}

TEST_CASE("an imported record of a Triton kernel answers once the kernel is defined there") {
  const auto spec = TritonSpec().parse();
  v1::GetVariantRequest question = vector_add(4096);
  question.set_kernel(spec->name);
  question.mutable_problem()->clear_types();
  v1::Hello hello = hello_with(h200_facts());
  offer_triton(hello);
  std::string table;
  {
    TableFixture daemon;
    AutoAgent agent(daemon.address(), hello);
    REQUIRE(daemon.define(spec->bundle).ok());
    v1::TuneRequest order;
    order.set_kernel(spec->name);
    *order.add_problems() = question.problem();
    daemon.tune(order);
    table = daemon.export_table(nullptr, spec->name);
  }
  TableFixture other;
  v1::ImportTableReply imported;
  REQUIRE(other.import_table(table, imported).ok());
  CHECK(imported.records_added() == 1);
  hello.clear_devices();
  AutoAgent compiler(other.address(), hello);
  CHECK(other.get(question).status.error_code() == grpc::StatusCode::NOT_FOUND);
  REQUIRE(other.define(spec->bundle).ok());
  const Got got = other.get(question);
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().evidence() == v1::IMPORTED);
}

TEST_CASE("a provisional record is not exported but counted unless it is asked for") {
  TableFixture daemon;
  v1::Hello hello = hello_with(h200_facts());
  hello.mutable_devices(0)->set_consent("always (processes)");
  FakeAgent agent(daemon.address(), hello);
  v1::TuneRequest request = tune_vector_add({4096});
  request.set_detach(true);
  daemon.tune(request);
  const v1::LeaseGrant lease = agent.wait_for_lease();
  const auto trials = fake_trials(lease, 1);
  REQUIRE(agent.send_batch(lease, batch_of(trials)));
  v1::JobResult beside_others = result_of(lease, trials[0]);
  beside_others.mutable_provenance()->mutable_timing()->set_contended(true);
  REQUIRE(agent.send_result(lease, beside_others));
  DaemonFixture::eventually([&] { return daemon.status().records() == 1; });
  CHECK(daemon.export_table().find("\"trial\"") == std::string::npos);
  CHECK(daemon.left_out.provisional_left_out() == 1);
  CHECK(daemon.left_out.replayed_left_out() == 0);
  v1::ExportTableRequest all;
  all.set_include_provisional(true);
  CHECK(daemon.export_table(all).find("\"provisional\":true") != std::string::npos);
  CHECK(daemon.left_out.provisional_left_out() == 0);
}

TEST_CASE("a shipped record is not exported but counted unless it is asked for, and stays shipped") {
  const std::string table =
      replaced(table_of_vector_add(), "\"evidence\":\"measured\"", "\"evidence\":\"shipped\"");
  TableFixture daemon;
  v1::ImportTableReply imported;
  REQUIRE(daemon.import_table(table, imported).ok());
  REQUIRE(imported.records_added() == 2);
  CHECK(daemon.export_table().find("\"trial\"") == std::string::npos);
  CHECK(daemon.left_out.shipped_left_out() == 2);
  v1::ExportTableRequest all;
  all.set_include_shipped(true);
  CHECK(daemon.export_table(all) == table);
  CHECK(daemon.left_out.shipped_left_out() == 0);
  const v1::GetStatusReply status = daemon.status();
  CHECK(status.records() == 2);
  CHECK(status.shipped_records() == 2);
  CHECK(status.devices(0).shipped_records() == 2);
}

TEST_CASE("a shipped record that was measured again here is exported as one's own") {
  const std::string table =
      replaced(table_of_vector_add(), "\"evidence\":\"measured\"", "\"evidence\":\"shipped\"");
  TableFixture daemon;
  v1::ImportTableReply imported;
  REQUIRE(daemon.import_table(table, imported).ok());
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({4096}));
  v1::ExportTableRequest request;
  request.set_include_shipped(GENERATE(false, true));
  const Table own = read_table(daemon.export_table(request), "export");
  CHECK(std::ranges::count(own.records, Evidence::Measured, &TableRecord::evidence) == 1);
  CHECK(own.records.size() == (request.include_shipped() ? 2 : 1));
}

TEST_CASE("an export says how many rows it lacks because their device class is damaged") {
  TableFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({4096, 1024}));
  daemon.damage("UPDATE device_classes SET fact = x'7b'");
  CHECK(daemon.export_table().find("\"trial\"") == std::string::npos);
  CHECK(daemon.left_out.damaged_left_out() == 2);
}

TEST_CASE("an imported table answers with evidence imported once its winner is compiled") {
  const std::string table = table_of_vector_add();
  TableFixture daemon;
  AutoAgent compiler(daemon.address(), compiling_hello());
  v1::ImportTableReply imported;
  REQUIRE(daemon.import_table(table, imported).ok());
  CHECK(imported.records_added() == 2);
  v1::GetVariantRequest request = vector_add(4096);
  request.mutable_device()->set_label("nvidia-h200");
  const Got got = daemon.get(request);
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().evidence() == v1::IMPORTED);
  CHECK(got.reply.provenance().departures().empty());
  CHECK(got.reply.artifact().architecture() == "sm_90");
}

TEST_CASE("importing the same table again adds nothing") {
  const std::string table = table_of_vector_add();
  TableFixture daemon;
  v1::ImportTableReply first, second;
  REQUIRE(daemon.import_table(table, first).ok());
  REQUIRE(daemon.import_table(table, second).ok());
  CHECK(second.records_added() == 0);
  CHECK(second.records_known() == 2);
  CHECK(second.generation().number() == first.generation().number());
}

TEST_CASE("an import of what is new leaves known questions as they are") {
  const std::string text = table_of_vector_add();
  Table changed = read_table(text, "table");
  for (TableRecord& record : changed.records) {
    record.timing.set_high_us(2 * record.timing.high_us());
    record.timing.set_median_us(record.timing.high_us());
  }
  TableFixture daemon;
  v1::ImportTableReply first, second, third;
  REQUIRE(daemon.import_table(text, first, true).ok());
  CHECK(first.records_added() == 2);
  const std::string before = daemon.export_table();
  REQUIRE(daemon.import_table(print_table(changed), second, true).ok());
  CHECK(second.records_known() == 2);
  CHECK(daemon.export_table() == before);
  REQUIRE(daemon.import_table(print_table(changed), third).ok());
  CHECK(third.records_added() == 2);
}

TEST_CASE("an import queues the compiles of the winners for the classes that agents offer") {
  const std::string table = table_of_vector_add();
  TableFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::ImportTableReply imported;
  REQUIRE(daemon.import_table(table, imported).ok());
  DaemonFixture::eventually([&] { return daemon.status().artifacts() >= 1 && daemon.jobs().empty(); });
  CHECK(agent.tuned() == 0);
}

TEST_CASE("a start queues the compiles of the winners for the classes that agents offer") {
  const std::string table = table_of_vector_add();
  TableFixture daemon;
  v1::ImportTableReply imported;
  REQUIRE(daemon.import_table(table, imported).ok());
  daemon.restart();
  CHECK(daemon.jobs().empty());
  v1::DeviceFacts another = h200_facts();
  another.set_sm_count(114);
  AutoAgent other(daemon.address(), hello_with(another, "other"));
  DaemonFixture::eventually([&] { return daemon.status().agents() == 1; });
  CHECK(daemon.jobs(true).empty());
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  DaemonFixture::eventually([&] { return daemon.status().artifacts() == 1 && daemon.jobs().empty(); });
  CHECK(agent.tuned() + other.tuned() == 0);
}

TEST_CASE("tune measures what a table only tells") {
  const std::string table = table_of_vector_add();
  TableFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::ImportTableReply imported;
  REQUIRE(daemon.import_table(table, imported).ok());
  const auto events = daemon.tune(tune_vector_add({4096}));
  CHECK_FALSE(events.back().already_fresh());
  CHECK(daemon.get(vector_add(4096)).reply.provenance().evidence() == v1::MEASURED);
}

TEST_CASE("a table of another interface is refused with the kernel and the number of its records") {
  const std::string table = table_of_vector_add();
  TableFixture daemon;
  const auto kernel = daemon.context().kernels.find("vector_add");
  std::string other = table;
  for (std::size_t at = 0; (at = other.find(kernel->interface.hex(), at)) != std::string::npos;) {
    other.replace(at, 64, Digest::of("another").hex());
  }
  v1::ImportTableReply reply;
  const grpc::Status status = daemon.import_table(other, reply);
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(status.error_message(),
             Catch::Matchers::StartsWith("mine.json /records/0/interface: 2 records of vector_add") &&
                 Catch::Matchers::Contains("nothing was imported"));
  CHECK(daemon.status().records() == 0);
}

TEST_CASE("exporting a kernel that nothing knows is NOT_FOUND") {
  TableFixture daemon;
  grpc::Status status;
  daemon.export_table(&status, "vector_ad");
  CHECK(status.error_code() == grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace cubind::test
