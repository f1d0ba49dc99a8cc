#include "tuner/worker/compile_ptx.hpp"

#include <catch2/catch.hpp>

using cubind::worker::read_ptx;
using Names = std::set<std::string>;

namespace {

std::string entry(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + "(\n\t.param .u64 p\n)\n{\n" + body + "\n\tret;\n}\n";
}

}  // namespace

TEST_CASE("every matrix instruction counts for the kernel that holds it") {
  for (const char* line :
       {"\tmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1}, {%r1}, {%r5}, {%f1};",
        "\t@%p1 mma.sync.aligned.m8n8k4.row.col.f64 a;",
        "\twmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 a;",
        "\t{ .reg .pred p; wgmma.mma_async.sync.aligned.m64n8k16.f32 a; }",
        "\ttcgen05.mma.cta_group::1.kind::f16 a;", "\tmma.sp.sync.aligned.m16n8k32 a;"}) {
    const auto kernels = read_ptx(entry("other", "\tadd.s32 %r1, %r2, %r3;") + entry("k", line));
    CHECK(kernels.entries == Names{"k", "other"});
    CHECK(kernels.with_tensor_cores == Names{"k"});
  }
}

TEST_CASE("fences and loads of matrix fragments are no matrix instructions") {
  const auto kernels = read_ptx(entry("k",
                                      "\twgmma.fence.sync.aligned;\n\tldmatrix.sync.aligned.m8n8.x4 {%r1};\n"
                                      "// mma.sync in a comment"));
  CHECK(kernels.with_tensor_cores.empty());
}

TEST_CASE("a call carries the instruction to the kernel through several functions") {
  const std::string functions =
      ".func  (.param .b32 func_retval0) leaf(\n\t.param .b64 p\n)\n{\n\tmma.sync.aligned a;\n}\n"
      ".func middle()\n{\n\tcall.uni (retval0), \n\tleaf, \n\t(\n\tparam0\n\t);\n}\n"
      ".func unused()\n{\n}\n";
  const auto kernels = read_ptx(functions + entry("direct", "\tcall.uni \n\tmiddle, \n\t(\n\t);") +
                                entry("none", "\tcall.uni unused, ();"));
  CHECK(kernels.entries == Names{"direct", "none"});
  CHECK(kernels.with_tensor_cores == Names{"direct"});
}

TEST_CASE("functions that call each other come to an end") {
  const auto kernels = read_ptx(".func a()\n{\n\tcall.uni b, ();\n}\n.func b()\n{\n\tcall.uni a, ();\n}\n" +
                                entry("k", "\tcall.uni a, ();"));
  CHECK(kernels.with_tensor_cores.empty());
}
