// A kernel in Triton's IR that a real Triton compiles, and where the tests have one.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/paths.hpp"
#include "tests/support/triton_spec.hpp"

namespace cubind::test {

inline bool has_triton(const std::string& python) {
  return std::system((python + " -c 'import triton' 2>/dev/null").c_str()) == 0;  // NOLINT
}

/// That of CUBIND_PYTHON, else that of ./dev deps triton.
inline const std::string& triton_python() {
  static const std::string python = [] {
    const char* named = std::getenv("CUBIND_PYTHON");  // NOLINT
    return named && has_triton(named) ? named : source_dir() / ".deps/venv/bin/python";
  }();
  return python;
}
inline std::string triton_worker() { return source_dir() / "python/cubind/triton/worker"; }

inline constexpr const char* kNoTriton =
    "there is no Triton: ./dev deps triton, or name a Python by CUBIND_PYTHON";
inline bool has_triton() {
  static const bool has = has_triton(triton_python());
  return has;
}

/// "rows": y = x for n elements, `block` of them a program. It adds a sum and subtracts it again, so that it
/// needs shared memory with more than one warp.
inline std::string rows_ttir(int block) {
  std::string text = R"(
module {
  tt.func public @rows(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %size = arith.constant BLOCK : i32
    %program = tt.get_program_id x : i32
    %start = arith.muli %program, %size : i32
    %lanes = tt.make_range {end = BLOCK : i32, start = 0 : i32} : tensor<BLOCKxi32>
    %starts = tt.splat %start : i32 -> tensor<BLOCKxi32>
    %places = arith.addi %starts, %lanes : tensor<BLOCKxi32>
    %limits = tt.splat %n : i32 -> tensor<BLOCKxi32>
    %valid = arith.cmpi slt, %places, %limits : tensor<BLOCKxi32>
    %all_x = tt.splat %x : !tt.ptr<f32> -> tensor<BLOCKx!tt.ptr<f32>>
    %at_x = tt.addptr %all_x, %places : tensor<BLOCKx!tt.ptr<f32>>, tensor<BLOCKxi32>
    %value = tt.load %at_x, %valid : tensor<BLOCKx!tt.ptr<f32>>
    %sum = "tt.reduce"(%value) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<BLOCKxf32>) -> f32
    %zero = arith.subf %sum, %sum : f32
    %zeros = tt.splat %zero : f32 -> tensor<BLOCKxf32>
    %result = arith.addf %value, %zeros : tensor<BLOCKxf32>
    %all_y = tt.splat %y : !tt.ptr<f32> -> tensor<BLOCKx!tt.ptr<f32>>
    %at_y = tt.addptr %all_y, %places : tensor<BLOCKx!tt.ptr<f32>>, tensor<BLOCKxi32>
    tt.store %at_y, %result, %valid : tensor<BLOCKx!tt.ptr<f32>>
    tt.return
  }
}
)";
  for (std::size_t at = text.find("BLOCK"); at != std::string::npos; at = text.find("BLOCK", at)) {
    text.replace(at, 5, std::to_string(block));
  }
  return text;
}

/// "rows" with three configurations: blocks of 256 by 4 warps, of 512 by 4 and by 8.
inline TritonSpec real_triton_spec(const TritonTarget& target) {
  TritonSpec spec;
  spec.texts = {rows_ttir(256), rows_ttir(512)};
  spec.json["triton"]["version"] = target.version;
  spec.json["triton"]["ptxas"] = target.ptxas;
  spec.json["triton"]["architecture"] = target.architecture;
  spec.json["triton"]["trailing_pointers"] = target.version.starts_with("3.4") ? 1 : 2;
  spec.json["configurations"] = {triton_configuration(0, spec.texts[0], 4, 16),
                                 triton_configuration(1, spec.texts[1], 4, 8),
                                 triton_configuration(2, spec.texts[1], 8, 8)};
  return spec;
}

}  // namespace cubind::test
