#include "client/request.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/fakes/sample_reply.hpp"

namespace cubind {
namespace {

using test::query;
std::string key(const Query& from) { return question_key(make_request(from)); }

}  // namespace

TEST_CASE("questions that differ only in the values of dims share a key") {
  CHECK(key(query("N=1,D=2,T=f16")) == key(query("D=4096,N=7,T=float16")));
  CHECK(key(query("N=1,D=2,T=f16")) != key(query("N=1,D=2,T=bf16")));
  CHECK(key(query("N=1,T=f16")) != key(query("N=1,D=2,T=f16")));
}

TEST_CASE("questions of other devices policies or namespaces have other keys") {
  const Query plain = query("N=1,T=f16");
  Query other = plain;
  other.device = DeviceLabel{"nvidia-h100"};
  CHECK(key(other) != key(plain));
  other = plain;
  other.warm_l2 = true;
  CHECK(key(other) != key(plain));
  other = plain;
  other.name_space = "team";
  CHECK(key(other) != key(plain));
  other = plain;
  other.accept = "exact";
  CHECK(key(other) != key(plain));
}

TEST_CASE("the defaults are serve and auto and every departure") {
  const v1::GetVariantRequest request = make_request(query("N=1,T=f16"));
  CHECK(request.on_miss() == v1::SERVE);
  CHECK(request.tune() == v1::AUTO);
  CHECK_FALSE(request.restrict_accept());
}

TEST_CASE("the training job travels with its questions and its answers are kept apart") {
  Query asked = query("N=1,T=f16");
  CHECK(make_request(asked).job().empty());
  asked.job = "train-1";
  CHECK(make_request(asked).job() == "train-1");
  CHECK(key(asked) != key(query("N=1,T=f16")));
}

TEST_CASE("accept lists departures and exact accepts none") {
  Query asked = query("N=1,T=f16");
  asked.accept = "bucket+stale";
  CHECK(make_request(asked).accept_size() == 2);
  asked.accept = "exact";
  CHECK(make_request(asked).restrict_accept());
  CHECK(make_request(asked).accept_size() == 0);
  asked.accept = "bucket+fresh";
  CHECK_THROWS_WITH(make_request(asked), Catch::Contains("accept: \"bucket+fresh\" is not a match"));
}

TEST_CASE("facts of a GPU travel with its driver") {
  Query asked = query("N=1,T=f16");
  Gpu gpu;
  gpu.facts.name = "NVIDIA H200";
  gpu.facts.sm_count = 132;
  gpu.driver = {13000, "580.159.04"};
  asked.device = gpu;
  const v1::GetVariantRequest request = make_request(asked);
  CHECK(request.device().facts().sm_count() == 132);
  CHECK(request.device().driver().version() == "580.159.04");
}

TEST_CASE("a problem is arranged like the daemon's with flags in their place") {
  const Problem canonical{{{"N", 1}, {"D", 2}}, {{"T", DType::F16}}, {{"CAUSAL", 1}}, ""};
  const Problem arranged = arranged_like(canonical, parse_problem("CAUSAL=0,T=bf16,D=5,N=3"));
  CHECK(to_string(arranged) == "N=3,D=5,T=bf16,CAUSAL=0");
  CHECK(arranged.flags[0].value == 0);
  CHECK(arranged_like(canonical, parse_problem("N=3,D=5,T=f16")).flags[0].value == 1);
}

}  // namespace cubind
