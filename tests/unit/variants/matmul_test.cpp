#include <cmath>
#include <random>

#include "tests/unit/variants/values.hpp"
#include "vector_io.cuh"

namespace device {
#include "variants/matmul/reference.cu"
#include "variants/vector_add/reference.cu"
namespace grouped {
#include "variants/grouped_mm/reference.cu"
}  // namespace grouped
namespace scaled {
#include "variants/scaled_mm/scaled_grouped_mm_reference.cu"
}  // namespace scaled
}  // namespace device

namespace cubind::test {
namespace {

struct Shape {
  int m, n, k;
};

std::size_t at(int row, int columns, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
}

/// `from` has so many rows.
Values transposed(const Values& from, int rows) {
  const int columns = static_cast<int>(from.size()) / rows;
  Values to;
  for (int column = 0; column < columns; ++column) {
    for (int row = 0; row < rows; ++row) {
      to.push_back(from[at(row, columns, column)]);
    }
  }
  return to;
}

/// A * B + bias, row by row.
Values product(Shape s, const Values& a, const Values& b, const Values& bias = {}) {
  Values c;
  for (int m = 0; m < s.m; ++m) {
    for (int n = 0; n < s.n; ++n) {
      double sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(n)];
      for (int k = 0; k < s.k; ++k) {
        sum += a[at(m, s.k, k)] * b[at(k, s.n, n)];
      }
      c.push_back(sum);
    }
  }
  return c;
}

template <int TRANSPOSE_A, int TRANSPOSE_B, int BIAS = 0>
Values reference(Shape s, const Values& a, const Values& b, const Values& bias = {}) {
  Values c(static_cast<std::size_t>(s.m) * static_cast<std::size_t>(s.n));
  for (int y = 0; 64 * y < s.m; ++y) {
    for_each_block_of(256, (s.n + 63) / 64, [&] {
      blockIdx.y = static_cast<unsigned int>(y);
      device::matmul_reference<double, TRANSPOSE_A, TRANSPOSE_B, BIAS, 0>(a.data(), b.data(), bias.data(),
                                                                          c.data(), s.m, s.n, s.k);
    });
  }
  return c;
}

constexpr Shape kShape{3, 5, 70};  // more than two of the parts that are summed in float32
struct Operands {
  Values a = normal_values(3 * 70, 1), b = normal_values(70 * 5, 2), slope = normal_values(3 * 5, 4);
};

/// Float32 sums of terms that are rounded to float32.
void check_sums(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-6).margin(2e-5));
  }
}

}  // namespace

TEST_CASE("the reference of matmul is the formula in every layout") {
  const Operands c;
  const Values a_t = transposed(c.a, kShape.m), b_t = transposed(c.b, kShape.k);
  const Values expected = product(kShape, c.a, c.b);
  check_sums(reference<0, 0>(kShape, c.a, c.b), expected);
  check_sums(reference<1, 0>(kShape, a_t, c.b), expected);
  check_sums(reference<0, 1>(kShape, c.a, b_t), expected);
  check_sums(reference<1, 1>(kShape, a_t, b_t), expected);
}

TEST_CASE("the reference of matmul is the formula in every tile of a larger product") {
  constexpr Shape kTiles{70, 129, 33};
  const Values a = normal_values(70 * 33, 1), b = normal_values(33 * 129, 2), bias = normal_values(129, 3);
  check_sums(reference<0, 0, 1>(kTiles, a, b, bias), product(kTiles, a, b, bias));
  check_sums(reference<1, 1, 1>(kTiles, transposed(a, 70), transposed(b, 33), bias),
             product(kTiles, a, b, bias));
}

TEST_CASE("the gradients of a product are products of other layouts") {
  const Operands c;
  const auto loss = [&](const Values& a, const Values& b) { return dot(product(kShape, a, b), c.slope); };
  const Values da = numerical_gradient([&](const Values& a) { return loss(a, c.b); }, c.a);
  const Values db = numerical_gradient([&](const Values& b) { return loss(c.a, b); }, c.b);
  check_sums(reference<0, 1>({kShape.m, kShape.k, kShape.n}, c.slope, c.b), da);
  check_sums(reference<1, 0>({kShape.k, kShape.n, kShape.m}, c.a, c.slope), db);
}

TEST_CASE("the reference of grouped_mm is the product of each group's rows, and writes no others") {
  constexpr int kGroups = 4, kRows = 41, kN = 21, kK = 70;
  const std::vector<int> ends = {3, 3, 20, 39};
  const Values a = normal_values(kRows * kK, 1), b = normal_values(kGroups * kK * kN, 2);
  Values straight(kRows * kN, -1), turned(kRows * kN, -1), expected, b_turned;
  for (int group = 0; group < kGroups; ++group) {
    const Values matrix(b.begin() + group * kK * kN, b.begin() + (group + 1) * kK * kN);
    const Values matrix_turned = transposed(matrix, kK);
    b_turned.insert(b_turned.end(), matrix_turned.begin(), matrix_turned.end());
    const int begin = group == 0 ? 0 : ends.at(static_cast<std::size_t>(group - 1)), end = ends.at(group);
    const Values rows(a.begin() + begin * kK, a.begin() + end * kK);
    const Values c = product({end - begin, kN, kK}, rows, matrix);
    expected.insert(expected.end(), c.begin(), c.end());
    for_each_block_of(256, 2, [&] {
      blockIdx.y = 0;
      gridDim.y = 1;
      blockIdx.z = static_cast<unsigned int>(group);
      device::grouped::grouped_mm_reference<double, 0>(a.data(), b.data(), ends.data(), straight.data(), kN,
                                                       kK);
    });
  }
  for (int group = 0; group < kGroups; ++group) {
    for_each_block_of(256, 2, [&] {
      blockIdx.y = 0;
      gridDim.y = 1;
      blockIdx.z = static_cast<unsigned int>(group);
      device::grouped::grouped_mm_reference<double, 1>(a.data(), b_turned.data(), ends.data(), turned.data(),
                                                       kN, kK);
    });
  }
  expected.resize(kRows * kN, -1);
  check_sums(straight, expected);
  check_sums(turned, expected);
}

TEST_CASE("the elements of scaled_mm are e4m3") {
  const auto value = [](unsigned char bits) { return device::scaled::to_float({bits}); };
  CHECK(value(0x00) == 0.0F);
  CHECK(value(0x01) == std::ldexp(1.0F, -9));
  CHECK(value(0x07) == std::ldexp(7.0F, -9));
  CHECK(value(0x08) == std::ldexp(1.0F, -6));
  CHECK(value(0x38) == 1.0F);
  CHECK(value(0xbc) == -1.5F);
  CHECK(value(0x7e) == 448.0F);
  CHECK(std::isnan(value(0x7f)));
  CHECK(std::isnan(value(0xff)));
}

/// Quantized rows, their values, and scales around 1.
struct Quantized {
  std::vector<device::scaled::__nv_fp8_e4m3> bits;
  Values values;

  Quantized(int count, unsigned int seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < count; ++i) {
      bits.push_back({static_cast<unsigned char>(random() % 0x41 | random() % 2 << 7)});  // up to 2
      values.push_back(device::scaled::to_float(bits.back()));
    }
  }
};

std::vector<float> scales(int count, unsigned int seed) {
  std::vector<float> all;
  for (const double value : normal_values(static_cast<std::size_t>(count), seed)) {
    all.push_back(static_cast<float>(std::exp(value / 4)));
  }
  return all;
}

template <int SCALES>
void check_scaled(int scales_of_a, int scales_of_b, auto scale_of_a, auto scale_of_b) {
  constexpr Shape kScaled{19, 150, 144};
  const Quantized a(kScaled.m * kScaled.k, 1), b(kScaled.n * kScaled.k, 2);
  const std::vector<float> of_a = scales(scales_of_a, 3), of_b = scales(scales_of_b, 4);
  Values left = a.values, right = b.values, c(at(kScaled.m, kScaled.n, 0));
  for (int k = 0; k < kScaled.k; ++k) {
    for (int m = 0; m < kScaled.m; ++m) {
      left[at(m, kScaled.k, k)] *= of_a.at(scale_of_a(m, k));
    }
    for (int n = 0; n < kScaled.n; ++n) {
      right[at(n, kScaled.k, k)] *= of_b.at(scale_of_b(n, k));
    }
  }
  for_each_block_of(256, (kScaled.n + 15) / 16, [&] {
    blockIdx.y = 0;
    gridDim.y = 1;
    device::scaled::scaled_mm_reference<double, SCALES>(
        a.bits.data(), b.bits.data(), of_a.data(), of_b.data(), c.data(), kScaled.m, kScaled.n, kScaled.k);
  });
  check_sums(c, product(kScaled, left, transposed(right, kScaled.n)));
}

TEST_CASE("the reference of scaled_mm scales by tensor, by row, and by block") {
  check_scaled<0>(
      1, 1, [](int, int) { return 0U; }, [](int, int) { return 0U; });
  check_scaled<1>(
      19, 150, [](int m, int) { return at(m, 1, 0); }, [](int n, int) { return at(n, 1, 0); });
  check_scaled<3>(
      1, 1, [](int, int) { return 0U; }, [](int, int) { return 0U; });
  check_scaled<4>(
      19, 150, [](int m, int) { return at(m, 1, 0); }, [](int n, int) { return at(n, 1, 0); });
  check_scaled<2>(
      2 * 19, 2 * 2, [](int m, int k) { return at(k / 128, 19, m); },
      [](int n, int k) { return at(n / 128, 2, k / 128); });
}

template <int SCALES>
void check_scaled_groups(int scales_of_a, int scales_of_matrix) {
  constexpr int kGroups = 4, kRows = 41, kN = 150, kK = 144;
  const std::vector<int> ends = {3, 3, 20, 39};
  const Quantized a(kRows * kK, 1), b(kGroups * kN * kK, 2);
  const std::vector<float> of_a = scales(scales_of_a, 3), of_b = scales(kGroups * scales_of_matrix, 4);
  Values found(at(kRows, kN, 0), -1), expected;
  for (int group = 0; group < kGroups; ++group) {
    Values all(at(kRows, kN, 0));  // by the group's matrix
    for_each_block_of(256, (kN + 15) / 16, [&] {
      blockIdx.y = 0;
      gridDim.y = 1;
      blockIdx.z = static_cast<unsigned int>(group);
      device::scaled::scaled_mm_reference<double, SCALES>(a.bits.data(), b.bits.data() + group * kN * kK,
                                                          of_a.data(), of_b.data() + group * scales_of_matrix,
                                                          all.data(), kRows, kN, kK);
      device::scaled::scaled_grouped_mm_reference<double, SCALES>(
          a.bits.data(), b.bits.data(), of_a.data(), of_b.data(), ends.data(), found.data(), kRows, kN, kK);
    });
    const int begin = group == 0 ? 0 : ends.at(static_cast<std::size_t>(group - 1)), end = ends.at(group);
    expected.insert(expected.end(), all.begin() + begin * kN, all.begin() + end * kN);
  }
  expected.resize(at(kRows, kN, 0), -1);
  CHECK(found == expected);
}

TEST_CASE("the reference of scaled_grouped_mm is scaled_mm of each group's rows, and writes no others") {
  check_scaled_groups<1>(41, 150);
  check_scaled_groups<4>(41, 150);
  check_scaled_groups<2>(2 * 41, 2 * 2);
}

TEST_CASE("the reference of vector_add is the sum") {
  const Operands c;
  Values sum(70), expected;
  for_each_block(7, [&] {
    gridDim.x = 7;
    device::vector_add_reference(c.a.data(), c.b.data(), sum.data(), 70LL);
  });
  gridDim.x = 1;
  for (std::size_t i = 0; i < 70; ++i) {
    expected.push_back(c.a[i] + c.b[i]);
  }
  check_close(sum, expected);
}

}  // namespace cubind::test
