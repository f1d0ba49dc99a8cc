#include "tuner/agent/compile_cache.hpp"

#include <catch2/catch.hpp>
#include <thread>

#include "tests/unit/agent/job_world.hpp"

namespace cubind::test {
namespace {

constexpr std::chrono::milliseconds kSoon{1000};

struct CacheFixture {
  MemoryCompiler compiler;
  CompileCache cache{compiler};

  void want(const std::string& entry, CompilePriority priority = CompilePriority::Tuning) {
    cache.want(Digest::of(entry), priority, [&] {
      v1::CompileRequest request;
      request.add_entries(entry);
      return request;
    });
  }
  CompileCache::ResultPtr wait(const std::string& entry) { return cache.wait(Digest::of(entry), kSoon); }
  void give_up(const std::string& entry) { cache.give_up(Digest::of(entry)); }
  CompileCache::ResultPtr use(const std::string& entry) {
    want(entry);
    auto result = wait(entry);
    give_up(entry);
    return result;
  }
};

TEST_CASE_METHOD(CacheFixture, "what two jobs want at the same time is compiled once") {
  want("f");
  want("f");
  CompileCache::ResultPtr other;
  std::thread second([&] { other = wait("f"); });
  const auto result = wait("f");
  second.join();
  REQUIRE(result);
  CHECK(result == other);
  CHECK(result->entries == std::vector<std::string>{"f"});
  CHECK(compiler.compiled["f"] == 1);
}

TEST_CASE_METHOD(CacheFixture,
                 "what an earlier job compiled is not compiled again, and its calls count once") {
  use("f");
  CHECK(cache.take_nvrtc_calls(Digest::of("f")) == 1);
  CHECK(use("f")->reply.cubin() == "f");
  CHECK(cache.take_nvrtc_calls(Digest::of("f")) == 0);
  CHECK(compiler.compiled["f"] == 1);
}

TEST_CASE_METHOD(CacheFixture, "a compile ends when the last who wants it gives up") {
  want("f");
  want("f");
  give_up("f");
  CHECK(compiler.under_way() == 1);
  give_up("f");
  CHECK(compiler.under_way() == 0);
}

TEST_CASE_METHOD(CacheFixture, "a compile ahead rises when a job asks for it") {
  want("f", CompilePriority::Ahead);
  want("f", CompilePriority::Tuning);
  want("f", CompilePriority::Ahead);
  REQUIRE(compiler.raised.size() == 1);
  CHECK(compiler.raised[0].second == CompilePriority::Tuning);
}

TEST_CASE_METHOD(CacheFixture, "a compile under way rises with its job and a finished one does not") {
  want("f", CompilePriority::Background);
  cache.raise(Digest::of("f"), CompilePriority::Tuning);
  REQUIRE(compiler.raised.size() == 1);
  CHECK(compiler.raised[0].second == CompilePriority::Tuning);
  wait("f");
  cache.raise(Digest::of("f"), CompilePriority::Question);
  CHECK(compiler.raised.size() == 1);
}

TEST_CASE_METHOD(CacheFixture, "an error of the source is kept and an end without NVRTC's word is not") {
  compiler.refuses = [](const std::string&) { return true; };
  use("f");
  use("f");
  CHECK(compiler.compiled["f"] == 1);
  compiler.is_killed = [](const std::string&) { return true; };
  use("g");
  use("g");
  CHECK(compiler.compiled["g"] == 2);
}

TEST_CASE("beyond its bytes a cache forgets what was used longest ago") {
  MemoryCompiler compiler;
  compiler.more = [](const std::string&) { return std::string(100, '.'); };
  CompileCache cache(compiler, 250);
  const auto use = [&](const std::string& entry) {
    const Digest key = Digest::of(entry);
    cache.want(key, CompilePriority::Tuning, [&] {
      v1::CompileRequest request;
      request.add_entries(entry);
      return request;
    });
    cache.wait(key, kSoon);
    cache.give_up(key);
  };
  use("a");
  use("b");
  cache.find(Digest::of("a"));
  use("c");
  CHECK(cache.find(Digest::of("a")));
  CHECK_FALSE(cache.find(Digest::of("b")));
  CHECK(cache.find(Digest::of("c")));
}

}  // namespace
}  // namespace cubind::test
