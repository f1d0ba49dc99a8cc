// The C interface, with a daemon whose replies are scripted and a driver that records launches.
#include <dlfcn.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "client/c/cubind.h"
#include "plan/wire.hpp"
#include "tests/fakes/fake_daemon.hpp"
#include "tests/fakes/sample_reply.hpp"

namespace cubind {
namespace {

const std::string kCubin =
    "\x7f"
    "ELF and so on";

struct LaunchRecord {
  std::uint32_t grid[3], block[3], shared_bytes, pad;
  std::uint64_t stream;
  std::uint64_t parameters[24];
  std::uint32_t attributes[4][4];
};

template <typename Function>
Function* fake(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(library != nullptr);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

std::vector<LaunchRecord> launches() {
  std::vector<LaunchRecord> found(fake<std::size_t()>("fake_launch_count")());
  for (std::size_t i = 0; i < found.size(); ++i) {
    fake<int(std::size_t, LaunchRecord*)>("fake_launch")(i, &found[i]);
  }
  return found;
}

// The kernel takes x as a tensor map of its rows.
void put_tensor_map(v1::GetVariantReply& reply) {
  v1::ParameterTemplate& x = *reply.mutable_rule()->mutable_launches(0)->mutable_parameters(0);
  x.set_source(v1::Parameter::TENSOR_MAP);
  v1::TensorMapTemplate& map = *x.mutable_tensor_map();
  map.set_argument("x_map");
  map.set_type(static_cast<std::uint32_t>(TensorMapType::F16));
  for (const auto& [size, box] : {std::pair("D", "64"), {"N", "8"}}) {
    map.add_sizes(size);
    map.add_box(box);
  }
  for (int i = 0; i < 3; ++i) {
    map.add_modes("0");
  }
}

// A daemon that answers every question about `scale`, a client of it, and a variant for N=1024, D=4096.
class Asked {
 public:
  explicit Asked(bool with_tensor_map = false) {
    daemon_.scripts.get_variant = [=, this](const v1::GetVariantRequest& request) {
      last = request;
      Problem asked = problem_from_wire(request.problem(), "problem");
      v1::GetVariantReply reply = test::sample_reply(
          {{{"N", asked.dim("N").value()}, {"D", asked.dim("D").value()}}, asked.types, {}, ""}, kCubin);
      if (with_tensor_map) {
        put_tensor_map(reply);
      }
      return reply;
    };
    REQUIRE(cubind_connect(daemon_.address().c_str(), 0, &client) == CUBIND_OK);
    query.kernel = "scale";
    query.problem = "N=1024,D=4096,T=f16";
    query.device = "nvidia-h200";
  }
  ~Asked() {
    cubind_variant_free(variant);
    cubind_client_free(client);
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  cubind_variant* get() {
    REQUIRE(cubind_get(client, &query, &variant) == CUBIND_OK);
    return variant;
  }

  cubind_client* client = nullptr;
  cubind_query query = CUBIND_QUERY_INIT;
  cubind_variant* variant = nullptr;
  v1::GetVariantRequest last;

 private:
  test::FakeDaemon daemon_;
};

// A loaded kernel of it, and a binding for some dims.
class Bound : public Asked {
 public:
  explicit Bound(bool with_tensor_map = false) : Asked(with_tensor_map) {
    REQUIRE(cubind_load(get(), &kernel) == CUBIND_OK);
  }
  ~Bound() {
    cubind_binding_free(binding);
    cubind_kernel_free(kernel);
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  void bind(std::vector<std::int64_t> dims) {
    REQUIRE(cubind_bind(kernel, dims.data(), dims.size(), &binding) == CUBIND_OK);
  }
  void set_all() {
    CHECK(cubind_set_buffer(binding, "x", reinterpret_cast<void*>(0x1000)) == CUBIND_OK);
    CHECK(cubind_set_buffer(binding, "y", reinterpret_cast<void*>(0x2000)) == CUBIND_OK);
    CHECK(cubind_set_buffer(binding, "partial", reinterpret_cast<void*>(0x3000)) == CUBIND_OK);
    CHECK(cubind_set_integer(binding, "alpha", 2) == CUBIND_OK);
  }

  cubind_kernel* kernel = nullptr;
  cubind_binding* binding = nullptr;
};

auto says(const std::string& text) { return Catch::Contains(text); }

}  // namespace

TEST_CASE("a variant says what it is and has the cubin's bytes") {
  Asked asked;
  const cubind_variant* variant = asked.get();
  CHECK(std::string(cubind_variant_problem(variant)) == "N=1024,D=4096,T=f16");
  CHECK(std::string(cubind_variant_configuration(variant)) == "THREADS=256,VECTOR=4");
  CHECK(std::string(cubind_variant_match(variant)) == "exact");
  CHECK(std::string(cubind_variant_evidence(variant)) == "measured");
  CHECK(cubind_variant_time_us(variant) == 24.1);
  std::size_t size = 0;
  const void* cubin = cubind_variant_cubin(variant, &size);
  CHECK(std::string(static_cast<const char*>(cubin), size) == kCubin);
  CHECK(cubind_client_calls(asked.client) == 1);
}

TEST_CASE("its launches and their parameters") {
  Asked asked;
  const cubind_variant* variant = asked.get();
  REQUIRE(cubind_variant_launches(variant) == 2);
  cubind_launch_info info{};
  info.size = sizeof info;
  REQUIRE(cubind_variant_launch(variant, 1, &info) == CUBIND_OK);
  CHECK(std::string(info.symbol) == "_Z6finish");
  CHECK((info.grid[0] == 1024 && info.grid[1] == 2 && info.grid[2] == 1 && info.block[0] == 256));
  CHECK((info.shared_bytes == 4096 * 4 && info.parameters == 3));
  cubind_parameter parameter{};
  parameter.size = sizeof parameter;
  REQUIRE(cubind_variant_parameter(variant, 1, 1, &parameter) == CUBIND_OK);
  CHECK((std::string(parameter.name) == "partial" && std::string(parameter.type) == "f32"));
  CHECK((parameter.source == CUBIND_BUFFER && parameter.role == CUBIND_ROLE_SCRATCH));
  CHECK((parameter.extent_bytes == 1024 * 4 && parameter.align_bytes == 16));
  REQUIRE(cubind_variant_parameter(variant, 1, 2, &parameter) == CUBIND_OK);
  CHECK((parameter.source == CUBIND_VALUE && parameter.value == 4096));
  CHECK(cubind_variant_launch(variant, 2, &info) == CUBIND_INVALID_ARGUMENT);
  CHECK_THAT(cubind_last_error(), says("launch: 2, there are 2"));
}

TEST_CASE("a struct that is shorter than the library's is filled as far as it goes") {
  Asked asked;
  const cubind_variant* variant = asked.get();
  cubind_launch_info info{};
  info.size = offsetof(cubind_launch_info, shared_bytes);
  info.shared_bytes = 77;
  REQUIRE(cubind_variant_launch(variant, 1, &info) == CUBIND_OK);
  CHECK((info.size == offsetof(cubind_launch_info, shared_bytes) && info.block[0] == 256 &&
         info.shared_bytes == 77));
  info.size = 0;
  CHECK(cubind_variant_launch(variant, 1, &info) == CUBIND_INVALID_ARGUMENT);
}

TEST_CASE("a question of a newer header is answered unless it asks for what is not known") {
  struct Newer {
    cubind_query query;
    std::uint64_t more;
  };
  Asked asked;
  Newer newer{asked.query, 0};
  newer.query.size = sizeof newer;
  REQUIRE(cubind_get(asked.client, &newer.query, &asked.variant) == CUBIND_OK);
  newer.more = 1;
  cubind_variant* none = nullptr;
  CHECK(cubind_get(asked.client, &newer.query, &none) == CUBIND_UNIMPLEMENTED);
  CHECK(none == nullptr);
}

TEST_CASE("every field of a question arrives") {
  Asked asked;
  asked.query.invariant_dim = "N";
  asked.query.name_space = "mine";
  asked.query.job = "job17";
  asked.query.on_miss = CUBIND_WAIT;
  asked.query.flags = CUBIND_NO_TUNING | CUBIND_WARM_L2 | CUBIND_GRAPH;
  asked.get();
  CHECK((asked.last.device().label() == "nvidia-h200" && asked.last.namespace_() == "mine" &&
         asked.last.job() == "job17"));
  CHECK((asked.last.on_miss() == v1::WAIT && asked.last.tune() == v1::NEVER));
  CHECK((asked.last.policy().warm_l2() && asked.last.policy().graph_launch()));
  CHECK(asked.last.numerics().invariant_dim() == "N");
  asked.query.flags = CUBIND_SEALED;
  asked.get();
  CHECK(asked.last.tune() == v1::SEALED);
}

TEST_CASE("what is wrong with a question is said by its field") {
  Asked asked;
  cubind_variant* variant = nullptr;
  cubind_query query = asked.query;
  query.problem = nullptr;
  CHECK(cubind_get(asked.client, &query, &variant) == CUBIND_INVALID_ARGUMENT);
  CHECK_THAT(cubind_last_error(), says("query.problem: is NULL"));
  query = asked.query;
  query.problem = "N=many";
  CHECK(cubind_get(asked.client, &query, &variant) == CUBIND_INVALID_ARGUMENT);
  CHECK_THAT(cubind_last_error(), says("many"));
  query = asked.query;
  query.on_miss = 7;
  CHECK(cubind_get(asked.client, &query, &variant) == CUBIND_INVALID_ARGUMENT);
  CHECK_THAT(cubind_last_error(), says("CUBIND_WAIT"));
  query = asked.query;
  query.flags = 1U << 30;
  CHECK(cubind_get(asked.client, &query, &variant) == CUBIND_INVALID_ARGUMENT);
  query.size = 0;
  CHECK(cubind_get(asked.client, &query, &variant) == CUBIND_INVALID_ARGUMENT);
  CHECK_THAT(cubind_last_error(), says("CUBIND_QUERY_INIT"));
  CHECK(cubind_get(nullptr, &asked.query, &variant) == CUBIND_INVALID_ARGUMENT);
  CHECK(variant == nullptr);
}

TEST_CASE("a missing daemon is an error with the way to start one, on this thread alone") {
  cubind_client* client = nullptr;
  REQUIRE(cubind_connect("unix:///nowhere/cubind.sock", 1000, &client) == CUBIND_OK);
  cubind_query query = CUBIND_QUERY_INIT;
  query.kernel = "scale";
  query.problem = "N=1024,D=4096,T=f16";
  query.device = "nvidia-h200";
  cubind_variant* variant = nullptr;
  const cubind_code code = cubind_get(client, &query, &variant);
  CHECK(code == CUBIND_UNAVAILABLE);
  CHECK(std::string(cubind_code_name(code)) == "UNAVAILABLE");
  CHECK_THAT(cubind_last_error(), says("Start one with `cubind &`"));
  std::string elsewhere = "?";
  std::thread([&] { elsewhere = cubind_last_error(); }).join();
  CHECK(elsewhere.empty());
  cubind_client_free(client);
  CHECK(cubind_connect("localhost", 0, &client) == CUBIND_INVALID_ARGUMENT);
}

TEST_CASE("a binding launches with its arguments as often as it is asked to") {
  Bound bound;
  bound.bind({1024, 4096});
  bound.set_all();
  fake<void(std::size_t)>("fake_parameters")(3);
  auto* stream = reinterpret_cast<CUstream_st*>(0x77);
  REQUIRE(cubind_launch(bound.binding, stream) == CUBIND_OK);
  REQUIRE(cubind_set_buffer(bound.binding, "x", reinterpret_cast<void*>(0x4000)) == CUBIND_OK);
  REQUIRE(cubind_launch(bound.binding, stream) == CUBIND_OK);
  const std::vector<LaunchRecord> seen = launches();
  REQUIRE(seen.size() == 4);
  CHECK((seen[0].parameters[0] == 0x1000 && seen[2].parameters[0] == 0x4000 && seen[0].stream == 0x77));
  CHECK((seen[1].grid[0] == 1024 && seen[1].shared_bytes == 4096 * 4));
}

TEST_CASE("a binding that a graph holds names the buffer of its tensor map and refuses another") {
  Bound bound(true);
  bound.bind({1024, 4096});
  bound.set_all();
  cubind_parameter parameter{};
  parameter.size = sizeof parameter;
  REQUIRE(cubind_variant_parameter(bound.variant, 0, 0, &parameter) == CUBIND_OK);
  CHECK((std::string(parameter.name) == "x" && parameter.source == CUBIND_TENSOR_MAP));
  fake<void(std::size_t)>("fake_parameters")(3);
  const auto held = [&] {
    const void* buffer = &bound;
    CHECK(cubind_binding_captured(bound.binding, "x", &buffer) == CUBIND_OK);
    return reinterpret_cast<std::uintptr_t>(buffer);
  };
  REQUIRE(cubind_launch(bound.binding, nullptr) == CUBIND_OK);
  CHECK(held() == 0);
  REQUIRE(cubind_launch(bound.binding, reinterpret_cast<CUstream_st*>(0xcab)) == CUBIND_OK);  // it captures
  CHECK(held() == 0x1000);
  CHECK((launches().size() == 4 && launches()[2].parameters[0] == 0x1000));
  REQUIRE(cubind_set_buffer(bound.binding, "x", reinterpret_cast<void*>(0x4000)) == CUBIND_OK);
  CHECK(cubind_launch(bound.binding, nullptr) == CUBIND_FAILED_PRECONDITION);
  CHECK_THAT(cubind_last_error(), says("argument x: 0x4000 was given"));
  CHECK(cubind_binding_captured(bound.binding, "z", nullptr) == CUBIND_INVALID_ARGUMENT);
}

TEST_CASE("other dims of the bucket are bound without a call, and those of another bucket are refused") {
  Bound bound;
  bound.bind({1000, 4096});
  bound.set_all();
  cubind_parameter argument{};
  argument.size = sizeof argument;
  REQUIRE(cubind_binding_arguments(bound.binding) == 4);
  REQUIRE(cubind_binding_argument(bound.binding, 0, &argument) == CUBIND_OK);
  CHECK((std::string(argument.name) == "x" && argument.extent_bytes == 1000 * 4096 * 2));
  fake<void(std::size_t)>("fake_parameters")(3);
  REQUIRE(cubind_launch(bound.binding, nullptr) == CUBIND_OK);
  CHECK(launches()[1].grid[0] == 1000);
  CHECK(cubind_client_calls(bound.client) == 1);
  const std::array<std::int64_t, 2> far{2000, 4096};
  cubind_binding* none = nullptr;
  CHECK(cubind_bind(bound.kernel, far.data(), 2, &none) == CUBIND_NOT_FOUND);
  CHECK_THAT(cubind_last_error(), says("2000, 4096"));
  CHECK(cubind_bind(bound.kernel, far.data(), 1, &none) == CUBIND_INVALID_ARGUMENT);
  CHECK(none == nullptr);
}

TEST_CASE("arguments that are missing or unknown or misaligned launch nothing") {
  Bound bound;
  bound.bind({1024, 4096});
  fake<void(std::size_t)>("fake_parameters")(3);
  CHECK(cubind_launch(bound.binding, nullptr) == CUBIND_INVALID_ARGUMENT);
  CHECK_THAT(cubind_last_error(), says("argument x: is missing"));
  CHECK(cubind_set_float(bound.binding, "alhpa", 1) == CUBIND_INVALID_ARGUMENT);
  CHECK_THAT(cubind_last_error(), says("alpha"));
  bound.set_all();
  REQUIRE(cubind_set_buffer(bound.binding, "y", reinterpret_cast<void*>(0x2004)) == CUBIND_OK);
  CHECK(cubind_launch(bound.binding, nullptr) == CUBIND_INVALID_ARGUMENT);
  CHECK_THAT(cubind_last_error(), says("aligned to 4 bytes, the kernel needs 16"));
  CHECK(launches().empty());
}

TEST_CASE("the driver's handles are there for who launches without cubind") {
  Bound bound;
  CUmod_st* module = nullptr;
  CUfunc_st* function = nullptr;
  CHECK((cubind_kernel_module(bound.kernel, &module) == CUBIND_OK && module != nullptr));
  CHECK((cubind_kernel_function(bound.kernel, 1, &function) == CUBIND_OK && function != nullptr));
  CHECK(cubind_kernel_function(bound.kernel, 2, &function) == CUBIND_INVALID_ARGUMENT);
}

TEST_CASE("a code of another library has no name, and freeing nothing is allowed") {
  CHECK(std::string(cubind_code_name(static_cast<cubind_code>(11))) == "UNKNOWN");
  CHECK(std::string(cubind_code_name(CUBIND_OK)) == "OK");
  cubind_client_free(nullptr);
  cubind_variant_free(nullptr);
  cubind_kernel_free(nullptr);
  cubind_binding_free(nullptr);
}

TEST_CASE("without a handle every value is NULL or 0 and the message names the argument") {
  for (const auto text : {cubind_variant_problem, cubind_variant_configuration, cubind_variant_match,
                          cubind_variant_evidence}) {
    CHECK(text(nullptr) == nullptr);
  }
  std::size_t size = 7;
  CHECK(cubind_variant_cubin(nullptr, &size) == nullptr);
  CHECK(size == 7);
  CHECK(cubind_variant_time_us(nullptr) == 0);
  CHECK(cubind_variant_launches(nullptr) == 0);
  CHECK_THAT(cubind_last_error(), says("variant: is NULL"));
  CHECK(cubind_binding_arguments(nullptr) == 0);
  CHECK_THAT(cubind_last_error(), says("binding: is NULL"));
  CHECK(cubind_client_calls(nullptr) == 0);
  CHECK_THAT(cubind_last_error(), says("client: is NULL"));
}

TEST_CASE("without a handle every call is an argument that is wrong") {
  cubind_launch_info launch{};
  cubind_parameter parameter{};
  cubind_kernel* kernel = nullptr;
  cubind_binding* binding = nullptr;
  CUmod_st* module = nullptr;
  CUfunc_st* function = nullptr;
  const void* memory = nullptr;
  launch.size = sizeof launch;
  parameter.size = sizeof parameter;
  for (const cubind_code code :
       {cubind_variant_launch(nullptr, 0, &launch), cubind_variant_parameter(nullptr, 0, 0, &parameter),
        cubind_load(nullptr, &kernel), cubind_kernel_module(nullptr, &module),
        cubind_kernel_function(nullptr, 0, &function), cubind_bind(nullptr, nullptr, 0, &binding),
        cubind_binding_argument(nullptr, 0, &parameter), cubind_set_buffer(nullptr, "x", nullptr),
        cubind_set_float(nullptr, "x", 1), cubind_set_integer(nullptr, "x", 1),
        cubind_launch(nullptr, nullptr), cubind_binding_captured(nullptr, "x", &memory)}) {
    CHECK(code == CUBIND_INVALID_ARGUMENT);
  }
}

}  // namespace cubind
