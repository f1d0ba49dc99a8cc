#include "server/fair_strand.hpp"

#include <catch2/catch.hpp>

#include <future>

namespace cubind {
namespace {

/// What a strand has run, while it is held at its first function until all are posted.
std::string order_of(const std::vector<std::string>& callers) {
  std::string order;
  std::promise<void> holds, posted;
  FairStrand strand;
  strand.post("", [&holds, wait = posted.get_future().share()] {
    holds.set_value();
    wait.wait();
  });
  holds.get_future().wait();
  for (std::size_t i = 0; i < callers.size(); ++i) {
    strand.post(callers[i], [&order, &callers, i] { order += callers[i] + std::to_string(i) + " "; });
  }
  posted.set_value();
  strand.close();
  return order;
}

}  // namespace

TEST_CASE("a caller with much work keeps another waiting for one piece of it") {
  CHECK(order_of({"a", "a", "a", "a", "b", "a", "b", "c"}) == "a0 b4 c7 a1 b6 a2 a3 a5 ");
}

TEST_CASE("a closed strand drops what is posted") {
  FairStrand strand;
  strand.close();
  const auto held = std::make_shared<int>(1);
  CHECK_FALSE(strand.post("a", [held] {}));
  CHECK(held.use_count() == 1);
}

TEST_CASE("a function that throws is not the last one") {
  FairStrand strand;
  bool ran = false;
  strand.post("a", [] { throw std::runtime_error("fails"); });
  strand.post("a", [&] { ran = true; });
  strand.close();
  CHECK(ran);
}

}  // namespace cubind
