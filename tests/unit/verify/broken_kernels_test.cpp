// The defects that verification exists for, on host buffers: a row-wise kernel in each broken version runs
// between red zones, and what catches it on the device catches it here. tests/gpu/device_worker has the same
// defects as CUDA kernels.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tuner/verify/compare.hpp"
#include "tuner/verify/red_zone.hpp"

namespace cubind::verify {
namespace {

constexpr std::size_t kRows = 33;  // no multiple of the rows that a block takes
constexpr std::size_t kRowsPerBlock = 4;
constexpr std::size_t kColumns = 64;
constexpr Zone kFront{1, ZoneSide::Front}, kBack{1, ZoneSide::Back};

// Red zone, rows, red zone.
struct Output {
  Output() : bytes(2 * kRedZoneBytes + kRows * kColumns * sizeof(float), kFirstPoison) {
    paint_red_zone(front(), kFront);
    paint_red_zone(back(), kBack);
  }
  std::span<std::byte> front() { return std::span(bytes).first(kRedZoneBytes); }
  std::span<std::byte> back() { return std::span(bytes).last(kRedZoneBytes); }
  std::span<std::byte> payload() {
    return std::span(bytes).subspan(kRedZoneBytes, bytes.size() - 2 * kRedZoneBytes);
  }
  float* rows() { return reinterpret_cast<float*>(payload().data()); }
  std::vector<std::byte> bytes;
};

float reference_value(std::size_t row, std::size_t column) {
  return static_cast<float>(row * 1000 + column) * 0.5F;
}

using Write = std::function<void(float* rows, std::size_t row, std::size_t column)>;

// As a grid does it: every row of every block, guarded or not.
void run(Output& output, bool row_guard, const Write& write) {
  const std::size_t blocks = (kRows + kRowsPerBlock - 1) / kRowsPerBlock;
  for (std::size_t row = 0; row < blocks * kRowsPerBlock; ++row) {
    if (row_guard && row >= kRows) {
      continue;
    }
    for (std::size_t column = 0; column < kColumns; ++column) {
      write(output.rows(), row, column);
    }
  }
}

void write_right(float* rows, std::size_t row, std::size_t column) {
  rows[row * kColumns + column] = reference_value(row, column);
}

// What is wrong, as the worker would say it; absent: nothing.
std::optional<std::string> verdict(Output& output) {
  if (const auto damage = check_red_zone(output.front(), kFront)) {
    return describe(*damage, kFront, "y");
  }
  if (const auto damage = check_red_zone(output.back(), kBack)) {
    return describe(*damage, kBack, "y");
  }
  Output reference;
  run(reference, true, write_right);
  const Comparison result =
      compare(DType::F32, output.payload(), DType::F32, reference.payload(), {.rtol = 1e-5, .atol = 1e-6});
  if (result.passed()) {
    return std::nullopt;
  }
  return "wrong from " + std::to_string(result.worst_index) + ", " + std::to_string(result.mismatches);
}

TEST_CASE("a right kernel passes") {
  Output output;
  run(output, true, write_right);
  CHECK(verdict(output) == std::nullopt);
}

TEST_CASE("a removed row guard is caught by the red zone") {
  Output output;
  run(output, false, write_right);
  CHECK(verdict(output) == "y: 768 bytes were written behind the buffer, the first one 0 bytes past its end");
}

TEST_CASE("a wrong last row is caught by the comparison") {
  Output output;
  run(output, true, [](float* rows, std::size_t row, std::size_t column) {
    const bool last = row == kRows - 1;
    rows[row * kColumns + column] = reference_value(row, column) + (last ? 1.0F : 0.0F);
  });
  CHECK(verdict(output) == "wrong from " + std::to_string((kRows - 1) * kColumns) + ", 64");
}

TEST_CASE("a last row that is not written is caught by the poison") {
  Output output;
  run(output, true, [](float* rows, std::size_t row, std::size_t column) {
    if (row < kRows - 1) {
      write_right(rows, row, column);
    }
  });
  CHECK(verdict(output) == "wrong from " + std::to_string((kRows - 1) * kColumns) + ", 64");
}

TEST_CASE("one element written too far is caught by the red zone") {
  Output output;
  run(output, true, write_right);
  output.rows()[kRows * kColumns] = 0.0F;
  CHECK(verdict(output) == "y: 4 bytes were written behind the buffer, the first one 0 bytes past its end");
}

TEST_CASE("one element written before the buffer is caught by the red zone") {
  Output output;
  run(output, true, write_right);
  output.rows()[-1] = 0.0F;
  CHECK(verdict(output) ==
        "y: 4 bytes were written before the buffer, the first one 4 bytes before its start");
}

TEST_CASE("a read past the end is caught by the NaN that it computes with") {
  Output output;
  run(output, true, write_right);
  float beyond = 0;
  std::memcpy(&beyond, output.back().data(), sizeof beyond);
  output.rows()[kRows * kColumns - 1] += beyond;
  CHECK(verdict(output) == "wrong from " + std::to_string(kRows * kColumns - 1) + ", 1");
}

TEST_CASE("one NaN among the right elements is caught") {
  Output output;
  run(output, true, write_right);
  output.rows()[77] = std::numeric_limits<float>::quiet_NaN();
  CHECK(verdict(output) == "wrong from 77, 1");
}

TEST_CASE("a wrong row that a norm over all would hide is caught") {
  Output output;
  run(output, true, write_right);
  for (std::size_t column = 0; column < kColumns; ++column) {
    output.rows()[column] *= 1.01F;
  }
  CHECK(verdict(output) != std::nullopt);
}

}  // namespace
}  // namespace cubind::verify
