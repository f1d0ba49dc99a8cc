#include "tuner/spec/wire.hpp"

#include <catch2/catch.hpp>

#include "tests/support/refusal_of.hpp"
#include "tests/unit/spec/spec_builder.hpp"

namespace cubind::test {

TEST_CASE("files of a bundle arrive compressed or not and no bomb is inflated") {
  v1::SpecBundle message;
  to_wire(SpecBundle{"a.json", "{}", {{"a.cu", std::string(100'000, 'a')}, {"b.cu", ""}}}, message);
  const std::size_t before = message.ByteSizeLong();
  compress_files(*message.mutable_files());
  CHECK(message.ByteSizeLong() < before / 10);
  const SpecBundle bundle = bundle_from_wire(message);
  REQUIRE(bundle.files.size() == 2);
  CHECK(bundle.files[0].content == std::string(100'000, 'a'));
  CHECK(bundle.files[1].content.empty());
  message.mutable_files(0)->set_content_bytes(99'999);
  CHECK(refused_at([&] { bundle_from_wire(message); }) == "files[0].zstd_content");
  message.mutable_files(0)->set_content_bytes(100'000);
  message.mutable_files(1)->set_content_bytes(std::uint64_t{64} << 20);
  CHECK_THROWS_WITH(bundle_from_wire(message), Catch::Contains("files[1].content_bytes"));
}

TEST_CASE("an absent flush method is the default one and one that is not measured is refused") {
  v1::Policy message;
  CHECK(policy_from_wire(message, "policy") == Policy{});
  to_wire(Policy{true, kFlushMethod, true}, message);
  CHECK(policy_from_wire(message, "policy") == Policy{true, kFlushMethod, true});
  message.set_flush_method(kFlushMethod - 1);
  CHECK(refused_at([&] { policy_from_wire(message, "policy"); }) == "policy.flush_method");
}

TEST_CASE("numerics that are invariant name a dim and others do not") {
  v1::Numerics message;
  to_wire(Numerics{Numerics::Kind::Invariant, "N"}, message);
  CHECK(numerics_from_wire(message, "numerics") == Numerics{Numerics::Kind::Invariant, "N"});
  message.clear_invariant_dim();
  CHECK(refused_at([&] { numerics_from_wire(message, "numerics"); }) == "numerics.invariant_dim");
  to_wire(Numerics{Numerics::Kind::Reproducible, "N"}, message);
  CHECK(refused_at([&] { numerics_from_wire(message, "numerics"); }) == "numerics.invariant_dim");
}

TEST_CASE("an argument is sent as its spec declares it") {
  SpecBuilder builder;
  builder.json["arguments"]["x"]["shape"] = {"N", "D"};
  const auto spec = builder.parse();
  v1::Argument buffer, value, caller;
  to_wire(*spec->argument("x"), buffer);
  CHECK(buffer.ShortDebugString() ==
        "name: \"x\" type: \"T\" role: IN extent: \"N*D\" shape: \"N\" shape: \"D\" align_bytes: 16");
  to_wire(*spec->argument("n"), value);
  CHECK(value.ShortDebugString() == "name: \"n\" source: VALUE type: \"i64\"");
  to_wire(*spec->argument("alpha"), caller);
  CHECK(caller.ShortDebugString() == "name: \"alpha\" source: CALLER type: \"f32\"");
}

TEST_CASE("a bundle survives the wire with its files sorted") {
  const SpecBundle bundle{"a.json", "{}", {{"b.cu", "2"}, {"a.cu", std::string("1\0", 2)}}};
  v1::SpecBundle message;
  to_wire(bundle, message);
  const SpecBundle back = bundle_from_wire(message);
  CHECK(back.file == bundle.file);
  CHECK(back.spec_json == bundle.spec_json);
  CHECK(back.files == std::vector<SourceFile>{bundle.files[1], bundle.files[0]});
}

TEST_CASE("a toolchain survives the wire and a short digest is refused by its field") {
  const ToolchainIdentity toolchain{"nvrtc 13.0", Digest::of("a"), Digest::of("b"), Digest::of("c")};
  v1::ToolchainIdentity message;
  to_wire(toolchain, message);
  CHECK(toolchain_from_wire(message) == toolchain);
  message.set_builtins_digest("short");
  CHECK(refused_at([&] { toolchain_from_wire(message, "artifacts[0].toolchain"); }) ==
        "artifacts[0].toolchain.builtins_digest");
}

}  // namespace cubind::test
