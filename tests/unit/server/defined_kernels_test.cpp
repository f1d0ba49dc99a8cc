#include "server/defined_kernels.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "base/file.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/triton_spec.hpp"

namespace cubind::test {
namespace {

std::shared_ptr<const KernelSpec> rows(const std::string& dtype) {
  TritonSpec spec;
  spec.json["triton"]["key"][1][1] = dtype;
  return spec.parse();
}

TEST_CASE("a definition is written once and reads as it was given") {
  const TempDir folder;
  DefinedKernels defined(folder.path() / "kernels");
  const auto spec = rows("fp32");
  CHECK(defined.add(*spec));
  CHECK_FALSE(defined.add(*spec));
  const auto read =
      load_kernel_spec((folder.path() / "kernels" / spec->name / (spec->name + ".json")).string());
  CHECK(read->bundle.spec_json == spec->bundle.spec_json);
  CHECK(read->bundle.files == spec->bundle.files);
}

TEST_CASE("another user's definition is foreign until the daemon's own user sends it too") {
  const TempDir folder;
  const auto spec = rows("fp32"), own = rows("fp16");
  {
    DefinedKernels defined(folder.path());
    CHECK(defined.add(*spec, true));
    CHECK(defined.add(*own));
  }
  {
    DefinedKernels defined(folder.path());
    CHECK(defined.is_foreign(spec->name));
    CHECK_FALSE(defined.is_foreign(own->name));
    CHECK_FALSE(defined.add(*own, true));
    CHECK_FALSE(defined.is_foreign(own->name));
    CHECK_FALSE(defined.add(*spec));
    CHECK_FALSE(defined.is_foreign(spec->name));
  }
  CHECK_FALSE(DefinedKernels(folder.path()).is_foreign(spec->name));
}

TEST_CASE("another user does not replace a CUDA kernel, the daemon's own does") {
  const TempDir folder;
  DefinedKernels defined(folder.path());
  OrderedJson json = OrderedJson::parse(read_file(source_dir() / "variants/vector_add/vector_add.json"));
  json.erase("headers");
  json["reference"] = "default";
  const auto kernel = [&](const std::string& text) {
    return parse_kernel_spec({"", json.dump(), {{"vector_add.cu", text}}});
  };
  CHECK(defined.add(*kernel("// first")));
  CHECK_FALSE(defined.add(*kernel("// first"), true));
  CHECK_THROWS_WITH(defined.add(*kernel("// other"), true),
                    Catch::Contains("only the daemon's user replaces it"));
  CHECK(defined.add(*kernel("// other")));
  CHECK_FALSE(defined.add(*kernel("// other"), true));
}

/// A folder with the definitions "a" and "b", which were asked for hours ago, "a" before "b".
struct OldDefinitions {
  OldDefinitions() {
    const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(9);
    for (std::size_t i = 0; i < 2; ++i) {
      DefinedKernels(folder.path()).add(*specs[i]);
      std::filesystem::last_write_time(folder.path() / specs[i]->name, old + std::chrono::minutes(i));
    }
  }
  bool has(std::size_t i) const { return std::filesystem::exists(folder.path() / specs[i]->name); }
  std::uint64_t bytes(std::size_t i) const { return specs[i]->bundle.spec_json.size() + 2; }

  TempDir folder;
  std::vector<std::shared_ptr<const KernelSpec>> specs{rows("a"), rows("b"), rows("c")};
};

TEST_CASE_METHOD(OldDefinitions, "above the limit the definition goes that was not asked for longest") {
  DefinedKernels(folder.path(), {.count = 2}).add(*specs[2]);
  CHECK_FALSE(has(0));
  CHECK(has(1));
  CHECK(has(2));
}

TEST_CASE_METHOD(OldDefinitions, "a definition that is asked for or sent again stays, after a restart too") {
  SECTION("asked for") { DefinedKernels(folder.path()).asked(specs[0]->name); }
  SECTION("sent again") { CHECK_FALSE(DefinedKernels(folder.path()).add(*specs[0])); }
  DefinedKernels(folder.path(), {.count = 2}).add(*specs[2]);
  CHECK(has(0));
  CHECK_FALSE(has(1));
}

TEST_CASE_METHOD(OldDefinitions,
                 "of definitions of the last hour that one goes too that was not asked for longest") {
  DefinedKernels defined(folder.path(), {.count = 2});
  defined.asked(specs[1]->name);
  defined.asked(specs[0]->name);
  defined.asked(specs[1]->name);
  defined.add(*specs[2]);
  CHECK_FALSE(has(0));
  CHECK(has(1));
}

TEST_CASE_METHOD(OldDefinitions, "definitions go until the bytes of the others and the new one fit") {
  DefinedKernels(folder.path(), {.bytes = bytes(1) + bytes(2)}).add(*specs[2]);
  CHECK_FALSE(has(0));
  CHECK(has(1));
  DefinedKernels(folder.path(), {.bytes = bytes(0)}).add(*specs[0]);
  CHECK(has(0));
  CHECK_FALSE(has(1));
  CHECK_FALSE(has(2));
}

TEST_CASE_METHOD(OldDefinitions, "a definition that was deleted by hand is written again") {
  DefinedKernels defined(folder.path());
  std::filesystem::remove_all(folder.path() / specs[0]->name);
  CHECK(defined.add(*specs[0]));
  CHECK(has(0));
}

TEST_CASE_METHOD(OldDefinitions, "a definition of which a killed daemon left a part is written again") {
  std::filesystem::remove(folder.path() / specs[0]->name / (specs[0]->name + ".json"));
  DefinedKernels defined(folder.path());
  CHECK(defined.add(*specs[0]));
  CHECK(load_kernel_spec((folder.path() / specs[0]->name / (specs[0]->name + ".json")).string())->name ==
        specs[0]->name);
}

TEST_CASE_METHOD(OldDefinitions, "nothing is left of a definition that was removed") {
  DefinedKernels defined(folder.path());
  CHECK(defined.remove(specs[0]->name));
  CHECK_FALSE(has(0));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  CHECK(defined.add(*specs[0]));
}

TEST_CASE_METHOD(OldDefinitions, "a definition is found by its hints, after a restart too") {
  DefinedKernels(folder.path()).hinted(specs[0]->name, "first");
  DefinedKernels defined(folder.path());
  defined.hinted(specs[0]->name, "second");
  CHECK(defined.find("first") == specs[0]->name);
  CHECK(defined.find("second") == specs[0]->name);
  CHECK(defined.find("third").empty());
  SECTION("a hint is of the definition that it was last given for") {
    defined.hinted(specs[1]->name, "first");
    CHECK(defined.find("first") == specs[1]->name);
    CHECK(DefinedKernels(folder.path()).find("first") == specs[1]->name);
    CHECK(read_file(folder.path() / specs[0]->name / "hints") == "second\n");
  }
  SECTION("the latest are kept") {
    for (int i = 0; i < 15; ++i) {
      defined.hinted(specs[0]->name, std::to_string(i));
    }
    CHECK(defined.find("first").empty());
    CHECK(defined.find("second") == specs[0]->name);
    CHECK(DefinedKernels(folder.path()).find("14") == specs[0]->name);
  }
  SECTION("they go with it") {
    CHECK(defined.remove(specs[0]->name));
    CHECK(defined.find("first").empty());
    CHECK(defined.add(*specs[0]));
    CHECK(defined.find("first").empty());
  }
  SECTION("a kernel that is not defined has none") {
    defined.hinted("vector_add", "third");
    CHECK(defined.find("third").empty());
  }
}

TEST_CASE("what a killed daemon left of a definition is no definition and is replaced") {
  const TempDir folder;
  std::filesystem::create_directory(folder.path() / ".unfinished");
  std::ofstream(folder.path() / ".unfinished" / "half.ttir") << "half";
  DefinedKernels defined(folder.path());
  const auto spec = rows("fp32");
  CHECK(defined.add(*spec));
  CHECK_FALSE(std::filesystem::exists(folder.path() / spec->name / "half.ttir"));
}

TEST_CASE_METHOD(OldDefinitions,
                 "a definition that cannot be written leaves nothing and is counted as nothing") {
  KernelSpec spec = *specs[2];
  spec.bundle.files.push_back({spec.bundle.files.front().path + "/within.ttir", "a"});  // which is a file
  DefinedKernels defined(folder.path(), {.count = 3});
  CHECK_THROWS_AS(defined.add(spec), Error);
  CHECK_FALSE(std::filesystem::exists(folder.path() / ".unfinished"));
  CHECK(defined.add(*specs[2]));
  CHECK(has(0));
}

}  // namespace
}  // namespace cubind::test
