// A kernel with an input in a __constant__ variable: what a check, a job and a caller are reported.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

/// The tiny kernel with a weight that it reads from a variable of two elements.
class DaemonWithWeight {
 public:
  /// `argument`: of the weight; empty: the spec does not name the variable.
  explicit DaemonWithWeight(const OrderedJson& argument, const std::string& type_of_n = "i64")
      : daemon_({}, false) {
    write_file_atomic(
        daemon_.kernels() / "scale.cu",
        "template <typename T> __constant__ T weight[2];\n"
        "template <typename T, int THREADS, int VECTOR, int K>\n"
        "__global__ void scale(const T* x, T* y, long long N) { y[0] = K * x[0] * weight<T>[N]; }\n");
    OrderedJson spec = OrderedJson::parse(read_file(daemon_.kernels() / "scale.json"));
    spec["arguments"]["N"]["scalar"] = type_of_n;
    if (!argument.empty()) {
      spec["arguments"]["w"] = argument;
      spec["launches"][0]["arguments"].push_back("w");
    }
    write_file_atomic(daemon_.kernels() / "scale.json", spec.dump());
    daemon_->start();
  }

  v1::GetVariantReply ask() {
    const Connection connection = daemon_->connect();
    v1::GetVariantRequest request = question(connection, tiny_problem(2));
    request.set_tune(v1::NEVER);
    return connection.get_variant(request, kPatience);
  }
  std::string refused_check() {
    return refusal_of([&] { daemon_->connect().check_kernel(daemon_.check_request(), kPatience); });
  }
  v1::TuneEvent tuned() { return tune(daemon_->connect(), {tiny_problem(2)}).at(0); }

 private:
  TinyDaemon daemon_;
};

OrderedJson weight(const std::string& extent) {
  return {{"buffer", "T"}, {"extent", extent}, {"role", "in"}, {"symbol", "weight<{T}>"}};
}

TEST_CASE("a variable that nothing sets ends check and job by its name and the argument to write") {
  DaemonWithWeight daemon(OrderedJson::object());
  const v1::TuneEvent end = daemon.tuned();
  CHECK(end.job().state() == v1::Job::FAILED);
  for (const std::string& why : {end.job().error(), daemon.refused_check()}) {
    CHECK_THAT(why, Contains("the __constant__ variable weight<float> is read and nothing sets it") &&
                        Contains("\"symbol\": \"weight<float>\""));
  }
}

TEST_CASE("an input in a variable is tuned and served with the symbol to copy it to") {
  DaemonWithWeight daemon(weight("2"));
  CHECK(daemon.refused_check().empty());
  REQUIRE(daemon.tuned().job().state() == v1::Job::DONE);
  const v1::GetVariantReply reply = daemon.ask();
  const v1::Parameter& parameter = reply.plan().launches(0).parameters(3);
  CHECK(parameter.source() == v1::Parameter::SYMBOL);
  CHECK(parameter.variable() == "weight<float>");
  CHECK(parameter.symbol() == "_Z6weightIfE");
  CHECK(parameter.extent_bytes() == 8);
  CHECK(reply.rule().launches(0).parameters(3).symbol() == "_Z6weightIfE");
}

TEST_CASE("an input that its variable does not hold is neither measured nor served") {
  DaemonWithWeight daemon(weight("3"));
  const std::string told = "/launches/0/arguments/3: w has 12 bytes, the variable weight<float> holds 8";
  CHECK_THAT(daemon.refused_check(), Contains(told));
  CHECK(daemon.tuned().job().state() == v1::Job::FAILED);
  CHECK_THROWS_WITH(daemon.ask(), Contains(told));
}

}  // namespace
}  // namespace cubind::test
