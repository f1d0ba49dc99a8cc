#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/triton_spec.hpp"

namespace cubind::test {
namespace {

struct DefiningCaller : DaemonFixture {
  /// The spec in the first part, each file in one of its own.
  grpc::Status define(const SpecBundle& bundle) {
    grpc::ClientContext context;
    const auto writer = stub().DefineKernel(&context, &reply);
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
  std::vector<std::string> names() {
    v1::ListKernelsReply kernels;
    grpc::ClientContext context;
    stub().ListKernels(&context, {}, &kernels);
    std::vector<std::string> names;
    for (const v1::Kernel& kernel : kernels.kernels()) {
      names.push_back(kernel.name());
    }
    return names;
  }
  bool knows(const std::string& name) {
    const auto all = names();
    return std::ranges::find(all, name) != all.end();
  }
  v1::DefineKernelReply reply;
};

TEST_CASE("a defined Triton kernel is listed at once and after a restart") {
  DefiningCaller caller;
  const auto spec = TritonSpec().parse();
  REQUIRE(caller.define(spec->bundle).ok());
  CHECK(caller.reply.name() == spec->name);
  CHECK(caller.knows(spec->name));
  REQUIRE(caller.define(spec->bundle).ok());
  caller.restart();
  CHECK(caller.knows(spec->name));
}

TEST_CASE("a question for a defined kernel is a question for the device it was compiled for") {
  DefiningCaller caller;
  const auto spec = TritonSpec().parse();
  REQUIRE(caller.define(spec->bundle).ok());
  v1::GetVariantRequest request = vector_add(4096);
  request.set_kernel(spec->name);
  request.mutable_problem()->clear_types();
  CHECK(caller.get(request).status.error_code() != grpc::StatusCode::INVALID_ARGUMENT);
  request.mutable_device()->mutable_facts()->set_cc_major(10);
  const grpc::Status other = caller.get(request).status;
  CHECK(other.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(other.error_message().find("is defined for sm_90") != std::string::npos);
}

TEST_CASE("a definition under another's name and one with other texts are refused and leave nothing") {
  DefiningCaller caller;
  SpecBundle bundle = TritonSpec().parse()->bundle;
  const std::string json = bundle.spec_json;
  bundle.spec_json.replace(json.find("rows_"), 6, "rows_x");
  CHECK(caller.define(bundle).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  bundle.spec_json = json;
  bundle.files[0].content = "another";
  const grpc::Status status = caller.define(bundle);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message().find("another SHA-256 than its name") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(caller.config().database.string() + ".kernels"));
}

TEST_CASE("a CUDA kernel is not defined by a call") {
  DefiningCaller caller;
  const grpc::Status status = caller.define({"", R"({"name": "k"})", {}});
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(caller.define({}).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace cubind::test
