#include "tuner/search/order.hpp"

#include <catch2/catch.hpp>

namespace cubind {
namespace {

Configuration threads(std::int64_t value) { return {{{"THREADS", value}}}; }

const std::vector<Configuration> kValid = {threads(32), threads(64), threads(128), threads(256)};

TEST_CASE("incumbent then default then neighbours then canonical order") {
  const auto order = search_order(kValid, {threads(256), threads(64), {threads(128)}});
  CHECK(order == std::vector<std::size_t>{3, 1, 2, 0});
}

TEST_CASE("a configuration that several hints name is tried once") {
  CHECK(search_order(kValid, {threads(64), threads(64), {threads(64)}}) ==
        std::vector<std::size_t>{1, 0, 2, 3});
}

TEST_CASE("hints that are not valid for this problem are passed over") {
  CHECK(search_order(kValid, {threads(1024), std::nullopt, {threads(7)}}) ==
        std::vector<std::size_t>{0, 1, 2, 3});
}

}  // namespace
}  // namespace cubind
