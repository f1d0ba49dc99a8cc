#include "tuner/worker/compile_ptx.hpp"

#include <catch2/catch.hpp>

namespace cubind::worker {
namespace {

using Names = std::vector<std::string>;

std::string entry(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + "(\n\t.param .u64 p\n)\n{\n" + body + "\n\tret;\n}\n";
}

Names kernels_of(const PtxModule& module) {
  Names names;
  for (const auto& [symbol, kernel] : module.kernels) {
    names.push_back(symbol);
  }
  return names;
}

Names with_tensor_cores(const std::string& ptx) {
  Names names;
  for (const auto& [symbol, kernel] : read_ptx(ptx).kernels) {
    if (kernel.has_tensor_cores) {
      names.push_back(symbol);
    }
  }
  return names;
}

constexpr const char* kVariables =
    ".const .align 4 .b8 filter[36];\n"
    ".visible .global .align 4 .u32 counter;\n"
    ".global .align 8 .u64 pointer = generic(target);\n"
    ".global .attribute(.managed) .align 8 .b8 target[16];\n"
    ".global .align 4 .b8 table[8] = {0, 0, 128, 63};\n"
    ".global .align 1 .b8 $str[1];\n";

}  // namespace

TEST_CASE("every matrix instruction counts for the kernel that holds it") {
  for (const char* line :
       {"\tmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1}, {%r1}, {%r5}, {%f1};",
        "\t@%p1 mma.sync.aligned.m8n8k4.row.col.f64 a;",
        "\twmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 a;",
        "\t{ .reg .pred p; wgmma.mma_async.sync.aligned.m64n8k16.f32 a; }",
        "\ttcgen05.mma.cta_group::1.kind::f16 a;", "\tmma.sp.sync.aligned.m16n8k32 a;"}) {
    const std::string ptx = entry("other", "\tadd.s32 %r1, %r2, %r3;") + entry("k", line);
    CHECK(kernels_of(read_ptx(ptx)) == Names{"k", "other"});
    CHECK(with_tensor_cores(ptx) == Names{"k"});
  }
}

TEST_CASE("fences and loads of matrix fragments are no matrix instructions") {
  CHECK(with_tensor_cores(entry("k",
                                "\twgmma.fence.sync.aligned;\n\tldmatrix.sync.aligned.m8n8.x4 {%r1};\n"
                                "// mma.sync in a comment"))
            .empty());
}

TEST_CASE("a call carries the instruction to the kernel through several functions") {
  const std::string functions =
      ".func  (.param .b32 func_retval0) leaf(\n\t.param .b64 p\n)\n{\n\tmma.sync.aligned a;\n}\n"
      ".func middle()\n{\n\tcall.uni (retval0), \n\tleaf, \n\t(\n\tparam0\n\t);\n}\n"
      ".func unused()\n{\n}\n";
  const std::string ptx = functions + entry("direct", "\tcall.uni \n\tmiddle, \n\t(\n\t);") +
                          entry("none", "\tcall.uni unused, ();");
  CHECK(kernels_of(read_ptx(ptx)) == Names{"direct", "none"});
  CHECK(with_tensor_cores(ptx) == Names{"direct"});
}

TEST_CASE("functions that call each other come to an end") {
  CHECK(with_tensor_cores(".func a()\n{\n\tcall.uni b, ();\n}\n.func b()\n{\n\tcall.uni a, ();\n}\n" +
                          entry("k", "\tcall.uni a, ();"))
            .empty());
}

TEST_CASE("variables are listed with their memory and size and whether they hold zeros") {
  const auto variables = read_ptx(kVariables + entry("k", "")).variables;
  CHECK(variables.size() == 6);
  CHECK(variables.at("filter") == PtxVariable{true, true, false, 36, 4});
  CHECK(variables.at("counter") == PtxVariable{false, true, false, 4, 4});
  CHECK(variables.at("pointer") == PtxVariable{false, false, false, 8, 8});
  CHECK(variables.at("target") == PtxVariable{false, true, false, 16, 8});
  CHECK_FALSE(variables.at("table").is_zeroed);
  CHECK(variables.at("$str").is_empty);
}

TEST_CASE("a kernel uses the variables that it reads and those whose address it takes") {
  const auto used = [](const std::string& body) {
    return read_ptx(kVariables + entry("k", body)).kernels.at("k").variables;
  };
  CHECK(used("\tld.const.f32 \t%f1, [filter+4];") == Names{"filter"});
  CHECK(used("\tmov.u64 \t%rd3, filter;") == Names{"filter"});
  CHECK(used("\tatom.global.inc.u32 \t%r1, [counter], %r2;") == Names{"counter"});
  CHECK(used("\tld.global.u64 \t%rd1, [pointer];") == Names{"pointer", "target"});
  CHECK(used("\tst.global.u32 \t[counter], %r1;").empty());
  CHECK(used("\tadd.s32 %filter, %r1, %r2;").empty());
  CHECK(used("\t// filter").empty());
}

TEST_CASE("a kernel uses the variables of the functions whose address it takes") {
  const std::string ptx = std::string(kVariables) +
                          ".func leaf()\n{\n\tld.const.f32 %f1, [filter];\n}\n"
                          ".global .align 8 .u64 functions[1] = {leaf};\n" +
                          entry("k", "\tmov.u64 %rd1, functions;") + entry("other", "");
  CHECK(read_ptx(ptx).kernels.at("k").variables == Names{"filter", "functions"});
  CHECK(read_ptx(ptx).kernels.at("other").variables.empty());
}

TEST_CASE("a function without a body uses none of the variables that follow it") {
  const std::string ptx =
      ".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 vprintf_param_0\n)\n;\n" +
      std::string(kVariables) + entry("k", "\tcall.uni (retval0), vprintf, (param0);");
  CHECK(read_ptx(ptx).kernels.at("k").variables.empty());
}

TEST_CASE("a kernel writes the parameters that the addresses of its stores are made from") {
  const auto written = [](const std::string& body) {
    return read_ptx(entry("k", body)).kernels.at("k").uses.written;
  };
  using Numbers = std::set<std::uint32_t>;
  const std::string loads =
      "\tld.param.u64 \t%rd1, [k_param_0];\n\tld.param.u64 \t%rd2, [k_param_1];\n"
      "\tcvta.to.global.u64 \t%rd3, %rd1;\n\tmul.wide.s32 \t%rd4, %r1, 4;\n"
      "\tadd.s64 \t%rd5, %rd3, %rd4;\n";
  const auto after_loads = [&](const std::string& body) { return written(loads + body); };
  CHECK(after_loads("\tld.global.f32 \t%f1, [%rd2];\n\tst.global.f32 \t[%rd5+16], %f1;") == Numbers{0});
  CHECK(after_loads("$L__BB0_2: @!%p1 red.global.add.f32 \t[%rd2], %f1;") == Numbers{1});
  CHECK(after_loads("\t{ atom.global.add.f32 %f1, [%rd5], %f2; }") == Numbers{0});
  CHECK(after_loads("\twmma.store.d.sync.aligned.row.m16n16k16.global.f32 \t[%rd5], {%f1, %f2}, %r1;") ==
        Numbers{0});
  CHECK(after_loads("\tst.v4.f32 \t[%rd1], {%f1, %f2, %f3, %f4};\n\tst.u32 \t[%rd2], %r1;") == Numbers{0, 1});
  CHECK(after_loads("\tst.shared.f32 \t[%r7], %f1;\n\tst.local.u32 \t[%rd9], %r1;") == Numbers{});
  CHECK(after_loads("\tcp.async.bulk.shared::cluster.global.mbarrier [%r1], [%rd1], %r2, [%r3];") ==
        Numbers{});
  CHECK(after_loads("\tcp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;") == Numbers{0});
  CHECK(after_loads("$loop:\n\tmov.u64 \t%rd7, %rd8;\n\tadd.s64 \t%rd8, %rd2, 4;\n\tst.u8 [%rd7], %rs1;") ==
        Numbers{1});
}

TEST_CASE("what a kernel writes is unknown if it calls or writes to an address from memory") {
  const auto is_known = [](const std::string& body) {
    return read_ptx(entry("k", "\tld.param.u64 %rd1, [k_param_0];\n" + body) + entry("m", "\tst.u8 [%x], 1;"))
        .kernels.at("k")
        .uses.written.has_value();
  };
  CHECK(is_known("\tst.global.f32 [%rd1], %f1;"));
  CHECK_FALSE(is_known("\tld.global.u64 %rd2, [%rd1];\n\tst.global.f32 [%rd2], %f1;"));
  CHECK_FALSE(is_known("\tst.global.f32 [%rd7], %f1;"));
  CHECK_FALSE(is_known("\tst.global.f32 [counter], %f1;"));
  CHECK_FALSE(is_known("\tcall.uni middle, ();"));
}

TEST_CASE("a kernel may read through the parameters that it loads from, stores or takes the address of") {
  const auto loaded = [](const std::string& body) {
    return read_ptx(entry("k",
                          "\tld.param.u64 \t%rd1, [k_param_0];\n\tld.param.u64 \t%rd2, [k_param_1];\n"
                          "\tcvta.to.global.u64 \t%rd3, %rd1;\n\tadd.s64 \t%rd5, %rd3, %rd4;\n" +
                              body))
        .kernels.at("k")
        .uses.loaded;
  };
  using Numbers = std::set<std::uint32_t>;
  CHECK(loaded("\tst.global.f32 \t[%rd5+16], %f1;\n\tprefetch.global.L2 [%rd2];") == Numbers{});
  CHECK(loaded("\tld.global.nc.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd5];\n\tst.f32 [%rd2], %f1;") == Numbers{0});
  CHECK(loaded("\tcp.async.cg.shared.global [%r1], [%rd5+64], 16;") == Numbers{0});
  CHECK(loaded("\tatom.global.add.u32 \t%r2, [%rd2], 1;") == Numbers{1});
  CHECK(loaded("\tst.local.u64 \t[%rd9], %rd2;") == Numbers{1});
  CHECK(loaded("\tmov.b64 \t%rd7, k_param_2;\n\tcvta.param.u64 %rd8, %rd7;") == Numbers{2});
  CHECK(loaded("\tld.global.u64 %rd7, [%rd2];\n\tld.global.f32 %f1, [%rd7];") == Numbers{1});
  CHECK_FALSE(loaded("\tcall.uni middle, ();").has_value());
}

TEST_CASE("a texture or surface is named by its instruction") {
  const auto texture = [](const std::string& line) {
    return read_ptx(entry("k", line)).kernels.at("k").texture_instruction;
  };
  CHECK(texture("\ttex.1d.v4.f32.s32 \t{%f1, %f2, %f3, %f4}, [%rd2, {%r1}];") == "tex.1d.v4.f32.s32");
  CHECK(texture("\t@%p1 sust.b.2d.b32.trap \t[%rd3, {%r4, %r3}], {%r2};") == "sust.b.2d.b32.trap");
  CHECK(texture("\tld.global.nc.f32 \t%f1, [%rd1];").empty());
}

}  // namespace cubind::worker
