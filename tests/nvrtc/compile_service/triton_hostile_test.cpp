// TTIR that tries to read, to write or to never end, against Triton and its ptxas.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>

#include "base/file.hpp"
#include "base/text.hpp"
#include "tests/nvrtc/compile_service/triton_service.hpp"
#include "tests/support/process_tree.hpp"
#include "tests/support/skip.hpp"

using namespace std::chrono_literals;

namespace cubind::test {
namespace {

constexpr std::chrono::seconds kTtirDeadline{10};
constexpr char kTtirSecret[] = "the_secret_of_the_host";

std::string function(const std::string& name, const std::string& body) {
  return "module { tt.func public @" + name + "(%p: !tt.ptr<f32>, %n: i32) {\n" + body + "\ntt.return } }";
}

// A tensor of this many elements, loaded and added to itself.
std::string sums(std::int64_t elements, int times) {
  const std::string n = std::to_string(elements), tensor = "tensor<" + n + "xf32>";
  const std::string at = "tensor<" + n + "x!tt.ptr<f32>>";
  std::string body = "%r = tt.make_range {start = 0 : i32, end = " + n + " : i32} : tensor<" + n + "xi32>\n" +
                     "%b = tt.splat %p : !tt.ptr<f32> -> " + at + "\n%a = tt.addptr %b, %r : " + at +
                     ", tensor<" + n + "xi32>\n%s0 = tt.load %a : " + at + "\n";
  for (int i = 0; i < times; ++i) {
    const std::string before = "%s" + std::to_string(i);
    body += "%s" + std::to_string(i + 1) + " = arith.addf " + before + ", " + before + " : " + tensor + "\n";
  }
  return body + "tt.store %a, %s" + std::to_string(times) + " : " + at;
}

std::string assembly(const std::string& text) {
  return "%x = tt.elementwise_inline_asm \"" + text +
         "\" {constraints = \"=r,r\", packed_element = 1 : i32, pure = false} %n : i32 -> i32";
}

struct HostileModule {
  std::string name, text;
};

/// FILE is one of the host.
std::vector<HostileModule> modules() {
  return {
      {"a library to link",
       function("f",
                "%x = tt.extern_elementwise %n {libname = \"a\", libpath = \"FILE\", pure = "
                "true, symbol = \"__nv_abs\"} : (i32) -> i32")},
      {"a library of the module",
       "module attributes {ttg.externs = {a = \"FILE\"}, \"tt.extern_libs\" = \"FILE\"} { tt.func "
       "public @f(%n: i32) { tt.return } }"},
      {"bytes in assembly", function("f", assembly(".incbin \\22FILE\\22; mov.b32 $0, $1;"))},
      {"an include in assembly", function("f", assembly(".include \\22FILE\\22; mov.b32 $0, $1;"))},
      {"a file in assembly", function("f", assembly(".file 1 \\22FILE\\22; mov.b32 $0, $1;"))},
      {"options in assembly", function("f", assembly(".pragma \\22-o FILE\\22; mov.b32 $0, $1;"))},
      {"a location", "module { tt.func public @f() { tt.return } loc(\"FILE\":1:1) }"},
      {"an alias of a location", "#loc = loc(\"FILE\":1:1)\nmodule { tt.func public @f() { tt.return } }"},
      {"a resource",
       "module attributes {a = dense_resource<b> : tensor<1xi32>} { tt.func public @f() { tt.return } }\n"
       "{-# dialect_resources: { builtin: { b: \"FILE\" } } #-}"},
      {"a name that is a path", function("\"../../../../../../../..FILE\"", "")},
      {"a name that is absolute", function("\"FILE\"", "")},
      {"another dialect", "module { transform.include @f failures(propagate) () : () -> () }"},
      {"a global tensor", function("f", "%c = arith.constant dense<1.0> : tensor<1099511627776xf32>")},
      {"a kernel of many lines", function("f", sums(4096, 20'000))},
      {"a large tensor", function("f", sums(1 << 20, 40))},
      {"nesting",
       "module {" + replaced(std::string(60'000, '('), "(", "module {") + std::string(60'001, '}')},
  };
}

std::size_t triton_processes() {
  const auto found = descendants(::getpid());
  return static_cast<std::size_t>(std::ranges::count_if(found, [](const ProcessId& process) {
    return process.command.find("--seccomp") != std::string::npos ||
           process.command.find("ptxas") != std::string::npos;
  }));
}

// Of this test and its workers alone.
std::size_t folders_of_workers(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::count_if(begin(all), end(all), [](const auto& item) {
    return item.path().filename().string().starts_with("cubind-triton-");
  }));
}

}  // namespace

TEST_CASE("hostile TTIR reads and leaves nothing and stops at its limits and the next one compiles") {
  if (!has_triton()) {
    return skip_test(kNoTriton);
  }
  const TempDir folder;
  const std::string file = (folder.path() / "there").string();
  std::ofstream(file) << kTtirSecret << "\n";
  ::setenv("TMPDIR", folder.path().c_str(), 1);  // of the service, which makes the workers' folders
  {
    TritonService triton(kTtirDeadline);
    CHECK(triton.toolchain.sandbox_lacks().empty());
    int n = 0;  // another kernel each time
    for (const HostileModule& module : modules()) {
      INFO(module.name);
      const v1::CompileReply reply = triton.compile(triton.request(replaced(module.text, "FILE", file)));
      CHECK((reply.outcome() == v1::CORRECT || !reply.log().empty()));
      CHECK(reply.log().find(kTtirSecret) == std::string::npos);
      CHECK(reply.cubin().find(kTtirSecret) == std::string::npos);
      CHECK(triton.compile(triton.request(function("g", sums(128, ++n)))).outcome() == v1::CORRECT);
      CHECK(triton_processes() == 1);
      CHECK(folders_of_workers(folder.path()) == 1);
    }
  }
  ::unsetenv("TMPDIR");
  CHECK(triton_processes() == 0);
  CHECK(folders_of_workers(folder.path()) == 0);
  CHECK(read_file(file) == std::string(kTtirSecret) + "\n");
}

}  // namespace cubind::test
