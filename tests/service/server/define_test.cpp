#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/service/server/daemon_fixture.hpp"
#include "tests/service/server/team_daemon.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/triton_spec.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::test {
namespace {

struct DefiningCaller : DaemonFixture {
  std::vector<std::string> names() {
    v1::ListKernelsRequest request;
    request.set_defined(true);
    v1::ListKernelsReply kernels;
    grpc::ClientContext context;
    stub().ListKernels(&context, request, &kernels);
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
};

TEST_CASE("a defined Triton kernel is listed at once and after a restart") {
  DefiningCaller caller;
  const auto spec = TritonSpec().parse();
  v1::DefineKernelReply reply;
  REQUIRE(caller.define(spec->bundle, &reply).ok());
  CHECK(reply.name() == spec->name);
  CHECK(caller.knows(spec->name));
  REQUIRE(caller.define(spec->bundle).ok());
  caller.restart();
  CHECK(caller.knows(spec->name));
}

TEST_CASE("a definition that cannot be read any more is unknown after a restart and is sent again") {
  DefiningCaller caller;
  const auto spec = TritonSpec().parse();
  REQUIRE(caller.define(spec->bundle).ok());
  const std::filesystem::path folder = caller.config().database.string() + ".kernels";
  caller.restart([&] { std::filesystem::remove(folder / spec->name / spec->bundle.files[0].path); });
  v1::GetVariantRequest request = vector_add(4096);
  request.set_kernel(spec->name);
  CHECK(caller.get(request).status.error_code() == grpc::StatusCode::NOT_FOUND);
  REQUIRE(caller.define(spec->bundle).ok());
  CHECK(caller.get(request).status.error_code() != grpc::StatusCode::NOT_FOUND);
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

TEST_CASE("a definition with integers in a file is kept with them") {
  DefiningCaller caller;
  TritonSpec builder;
  give_integers(builder, std::string(4 * 4096, 1));
  const auto spec = builder.parse();
  REQUIRE(caller.define(spec->bundle).ok());
  caller.restart();
  CHECK(caller.knows(spec->name));
}

TEST_CASE("a definition whose file does not fit its tensor is refused and leaves nothing") {
  DefiningCaller caller;
  for (const auto& [elements, type, cause] : {std::tuple{4095, "<i4", "4095 elements; the buffer has 4096"},
                                              {4096, "<f4", "has elements of f32"}}) {
    TritonSpec builder;
    give_integers(builder, std::string(4 * static_cast<std::size_t>(elements), 1), type);
    const grpc::Status status = caller.define(builder.parse()->bundle);
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK(status.error_message().find(cause) != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(caller.config().database.string() + ".kernels"));
}

TEST_CASE("no other kernel comes in with a definition") {
  DefiningCaller caller;
  SpecBundle bundle = TritonSpec().parse()->bundle;
  const auto folder = source_dir() / "variants" / "vector_add";
  OrderedJson other = OrderedJson::parse(read_file(folder / "vector_add.json"));
  other["name"] = "smuggled";
  bundle.files.push_back({"smuggled.json", other.dump()});
  bundle.files.push_back({"vector_add.cu", read_file(folder / "vector_add.cu")});
  CHECK(caller.define(bundle).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_FALSE(caller.knows("smuggled"));
}

TEST_CASE("defined kernels are counted and do not stand among the others") {
  DefiningCaller caller;
  const auto spec = TritonSpec().parse();
  REQUIRE(caller.define(spec->bundle).ok());
  v1::ListKernelsReply kernels;
  grpc::ClientContext context;
  REQUIRE(caller.stub().ListKernels(&context, {}, &kernels).ok());
  CHECK(kernels.defined() == 1);
  CHECK(kernels.kernels_size() > 1);
  CHECK(std::ranges::find(kernels.kernels(), spec->name, [](const v1::Kernel& one) { return one.name(); }) ==
        kernels.kernels().end());
}

TEST_CASE("a defined kernel is found by the hint that came with its name, after a restart too") {
  DefiningCaller caller;
  const auto spec = TritonSpec().parse();
  REQUIRE(caller.define(spec->bundle).ok());
  v1::GetVariantRequest by_hint = vector_add(4096);
  by_hint.clear_kernel();
  by_hint.mutable_problem()->clear_types();
  by_hint.set_hint("of the source");
  CHECK(caller.get(by_hint).status.error_code() == grpc::StatusCode::NOT_FOUND);
  v1::GetVariantRequest by_name = by_hint;
  by_name.set_kernel(spec->name);
  const auto is_of_the_kernel = [&](const grpc::Status& status) {
    return status.error_message().starts_with("kernel " + spec->name + ": no candidate");
  };
  CHECK(is_of_the_kernel(caller.get(by_name).status));
  CHECK(is_of_the_kernel(caller.get(by_hint).status));
  caller.restart();
  CHECK(is_of_the_kernel(caller.get(by_hint).status));
  by_hint.set_hint(std::string(129, 'a'));
  CHECK(caller.get(by_hint).status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
}

/// The spec of a shipped kernel under another name, its source in two files.
SpecBundle cuda_kernel(const std::string& text = "// text\n", const char* name = "add_sent") {
  OrderedJson spec = OrderedJson::parse(read_file(source_dir() / "variants/vector_add/vector_add.json"));
  spec["name"] = name;
  spec.erase("headers");
  spec["reference"] = "default";
  return {"", spec.dump(), {{"parts/add.cuh", text}, {"vector_add.cu", "#include \"parts/add.cuh\"\n"}}};
}

TEST_CASE("a defined CUDA kernel is kept with its files, after a restart too") {
  DefiningCaller caller;
  v1::DefineKernelReply reply;
  REQUIRE(caller.define(cuda_kernel(), &reply).ok());
  CHECK(reply.name() == "add_sent");
  caller.restart();
  CHECK(caller.knows("add_sent"));
}

TEST_CASE("a CUDA kernel that is defined again has the new files") {
  DefiningCaller caller;
  REQUIRE(caller.define(cuda_kernel()).ok());
  REQUIRE(caller.define(cuda_kernel("// another\n")).ok());
  const std::filesystem::path folder = caller.config().database.string() + ".kernels";
  CHECK(read_file(folder / "add_sent" / "parts" / "add.cuh").starts_with("// another"));
}

TEST_CASE("a CUDA kernel is defined with no file that the daemon would take for its own") {
  DefiningCaller caller;
  for (const char* path : {"smuggled.json", "hints", "foreign", ".hidden", "parts/.x", "x.json/y.cuh"}) {
    SpecBundle bundle = cuda_kernel();
    bundle.files.push_back({path, "{}"});
    const grpc::Status status = caller.define(bundle);
    INFO(path);
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK(status.error_message().find(path) != std::string::npos);
  }
  SpecBundle bundle = cuda_kernel();
  OrderedJson spec = OrderedJson::parse(bundle.spec_json);
  spec["headers"] = {".."};
  bundle.spec_json = spec.dump();
  bundle.files.push_back({"../escaped.cuh", ""});
  CHECK(caller.define(bundle).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_FALSE(std::filesystem::exists(caller.config().database.string() + ".kernels"));
}

TEST_CASE("a CUDA kernel is defined with no file that no folder can hold") {
  DefiningCaller caller;
  for (const std::string& path :
       {std::string("a.cuh\0b", 7), std::string("a\nb.cuh"), std::string(201, 'a')}) {
    SpecBundle bundle = cuda_kernel();
    bundle.files.push_back({path, ""});
    INFO(path);
    const grpc::Status status = caller.define(bundle);
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK(status.error_message().starts_with("DefineKernel file: "));
  }
}

TEST_CASE("a definition does not take the name of a folder that the library does not read") {
  DefiningCaller caller;
  const grpc::Status status = caller.define(cuda_kernel("", "tables"));
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message().starts_with("DefineKernel /name: "));
}

TEST_CASE("a definition does not take the name of a kernel of the daemon's folders") {
  DefiningCaller caller;
  CHECK(caller.define(cuda_kernel("", "vector_add")).error_code() == grpc::StatusCode::ALREADY_EXISTS);
}

TEST_CASE("only the daemon's user defines a kernel or a task whose arrays stay in memory") {
  SpecBundle bundle = cuda_kernel();
  OrderedJson spec = OrderedJson::parse(bundle.spec_json);
  spec["problem"].erase("bucket");
  spec["problem"]["types"]["T"] = {"f32"};
  spec["arguments"]["a"] = {{"buffer", "f32"}, {"extent", "7"}, {"role", "in"}, {"fill", {{"npy", "a.npy"}}}};
  bundle.spec_json = spec.dump();
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), 'memory': '/proc/1/fd/3', "
      "'sha256': '" +
      Digest::of("a").hex() + "'}";
  bundle.files.push_back(
      {"a.npy", std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header});
  TeamDaemon team;
  const std::string token = team.issue({.name = "t", .roles = {CallerRole::Tuner}});
  v1::SpecBundle wire;
  to_wire(bundle, wire);
  v1::EvaluateRequest judged;
  judged.set_spec_json(bundle.spec_json);
  *judged.mutable_task_files() = wire.files();
  judged.add_files()->set_path("mine.cu");
  judged.add_problems();
  grpc::ClientContext context;
  TeamDaemon::add(context, token);
  v1::EvaluateReply verdict;
  for (const grpc::Status& refused :
       {team.define(bundle, token),
        v1::Cubind::NewStub(team.channel)->Evaluate(&context, judged, &verdict)}) {
    CHECK(refused.error_code() == grpc::StatusCode::PERMISSION_DENIED);
    CHECK(refused.error_message().find("/arguments/a/fill/npy") != std::string::npos);
  }
  DefiningCaller own;
  const grpc::Status taken = own.define(bundle);
  INFO(taken.error_message());
  CHECK(taken.ok());
}

TEST_CASE("what is no spec is not defined") {
  DefiningCaller caller;
  CHECK(caller.define({"", R"({"name": "k"})", {}}).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  const grpc::Status empty = caller.define({});
  CHECK(empty.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(empty.error_message() == "DefineKernel: the first part has no spec_json");
}

}  // namespace
}  // namespace cubind::test
