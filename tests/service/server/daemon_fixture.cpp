#include "tests/service/server/daemon_fixture.hpp"

#include <sqlite3.h>
#include <catch2/catch.hpp>

#include <stdexcept>
#include <thread>

#include "server/daemon.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/paths.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::test {

DaemonFixture::DaemonFixture() : folder_("cubind-service") {
  config_.database = folder_.path() / "store.db";
  config_.socket = folder_.path() / "s";
  config_.kernels = {source_dir() / "variants"};
  config_.shipped_tables = false;
  config_.local_agent = false;
  start();
}

DaemonFixture::~DaemonFixture() = default;

void DaemonFixture::start() {
  auto daemon = std::make_unique<Daemon>(config_);
  daemon->start();
  daemon_ = std::move(daemon);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stub_ = v1::Cubind::NewStub(
      grpc::CreateCustomChannel(daemon_->address(), grpc::InsecureChannelCredentials(), arguments));
}

void DaemonFixture::restart(const std::function<void()>& between) {
  daemon_.reset();
  if (between) {
    between();
  }
  start();
}

void DaemonFixture::stop() { daemon_->stop(); }

void DaemonFixture::damage(const std::string& sql) const {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(config_.database.c_str(), &database) == SQLITE_OK);
  sqlite3_busy_timeout(database, 10'000);
  CHECK(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
}

std::string DaemonFixture::address() const { return daemon_->address(); }

int DaemonFixture::port() const { return daemon_->port(); }

int DaemonFixture::metrics_port() const { return daemon_->metrics_port(); }

ServiceContext& DaemonFixture::context() { return daemon_->context(); }

Got DaemonFixture::get(const v1::GetVariantRequest& request, std::chrono::seconds deadline) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  Got got;
  got.status = stub_->GetVariant(&context, request, &got.reply);
  return got;
}

std::vector<v1::TuneEvent> DaemonFixture::tune(const v1::TuneRequest& request, grpc::Status* status) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto reader = stub_->Tune(&context, request);
  std::vector<v1::TuneEvent> events;
  for (v1::TuneEvent event; reader->Read(&event);) {
    events.push_back(event);
  }
  const grpc::Status last = reader->Finish();
  if (status) {
    *status = last;
  } else if (!last.ok()) {
    throw std::runtime_error("Tune: " + last.error_message());
  }
  return events;
}

std::vector<v1::Job> DaemonFixture::jobs(bool include_ended) {
  v1::ListJobsRequest request;
  request.set_include_ended(include_ended);
  v1::ListJobsReply reply;
  std::vector<v1::Job> jobs;
  do {
    grpc::ClientContext context;
    const grpc::Status status = stub_->ListJobs(&context, request, &reply);
    if (!status.ok()) {
      throw std::runtime_error("ListJobs: " + status.error_message());
    }
    jobs.insert(jobs.end(), reply.jobs().begin(), reply.jobs().end());
    request.set_page_token(reply.next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

v1::GetStatusReply DaemonFixture::status() {
  grpc::ClientContext context;
  v1::GetStatusReply reply;
  const grpc::Status status = stub_->GetStatus(&context, {}, &reply);
  if (!status.ok()) {
    throw std::runtime_error("GetStatus: " + status.error_message());
  }
  return reply;
}

grpc::Status DaemonFixture::define(const SpecBundle& bundle, v1::DefineKernelReply* reply) {
  grpc::ClientContext context;
  return define_kernel(*stub_, context, bundle, reply);
}

v1::CheckKernelRequest check_vector_add() {
  v1::SpecBundle bundle;
  to_wire(load_kernel_spec((source_dir() / "variants" / "vector_add" / "vector_add.json").string())->bundle,
          bundle);
  v1::CheckKernelRequest request;
  request.set_file("mine.json");
  request.set_spec_json(bundle.spec_json());
  *request.mutable_files() = bundle.files();
  *request.add_problems() = vector_add(4096).problem();
  return request;
}

grpc::Status define_kernel(v1::Cubind::Stub& stub, grpc::ClientContext& context, const SpecBundle& bundle,
                           v1::DefineKernelReply* reply) {
  v1::DefineKernelReply unread;
  const auto writer = stub.DefineKernel(&context, reply ? reply : &unread);
  v1::DefineKernelPart part;
  part.set_spec_json(bundle.spec_json);
  writer->Write(part);
  for (const SourceFile& file : bundle.files) {
    part.Clear();
    v1::SourceFile& added = *part.add_files();
    added.set_path(file.path);
    added.set_content(file.content);
    writer->Write(part);
  }
  writer->WritesDone();
  return writer->Finish();
}

void DaemonFixture::eventually(const std::function<bool()>& condition) {
  if (!test::eventually(condition)) {
    throw std::runtime_error("what the test waits for did not come to pass");
  }
}

v1::GetVariantRequest vector_add(std::int64_t n, const v1::DeviceFacts& facts) {
  v1::GetVariantRequest request;
  request.set_kernel("vector_add");
  v1::NamedValue& dim = *request.mutable_problem()->add_dims();
  dim.set_name("N");
  dim.set_value(n);
  v1::TypeBinding& type = *request.mutable_problem()->add_types();
  type.set_name("T");
  type.set_type("f32");
  *request.mutable_device()->mutable_facts() = facts;
  *request.mutable_device()->mutable_driver() = driver_580();
  request.set_with_plan(true);
  return request;
}

v1::TuneRequest tune_vector_add(const std::vector<std::int64_t>& sizes, const v1::DeviceFacts& facts) {
  v1::TuneRequest request;
  request.set_kernel("vector_add");
  for (const std::int64_t n : sizes) {
    *request.add_problems() = vector_add(n).problem();
  }
  *request.mutable_device()->mutable_facts() = facts;
  return request;
}

}  // namespace cubind::test
