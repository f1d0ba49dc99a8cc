#include <algorithm>
#include <cmath>

#include "tests/unit/variants/values.hpp"
#include "vector_io.cuh"

// An element that the reference takes into a float is double here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
namespace device_of_layers {
#include "variants/activation/activation_backward_reference.cu"
#include "variants/activation/activation_forward_reference.cu"
#include "variants/cross_entropy/cross_entropy_backward_reference.cu"
#include "variants/cross_entropy/cross_entropy_forward_reference.cu"
#include "variants/cross_entropy/reference.cu"
#include "variants/rotary/reference.cu"
}  // namespace device_of_layers
#pragma GCC diagnostic pop

namespace cubind::test {
namespace {

namespace device = device_of_layers;

constexpr long long kElements = 40;

// --- activation ---

template <int ACTIVATION, int GATE>
Values activation(const Values& x, const Values& up) {
  Values y(x.size());
  for_each_block(1, [&] {
    device::activation_forward_reference<double, ACTIVATION, GATE>(x.data(), up.data(), y.data(), kElements);
  });
  return y;
}

template <int ACTIVATION, int GATE>
void check_gradients() {
  const Values x = normal_values(kElements, 1), up = normal_values(kElements, 2),
               dy = normal_values(kElements, 3);
  Values dx(kElements), dup(kElements);
  for_each_block(1, [&] {
    device::activation_backward_reference<double, ACTIVATION, GATE>(x.data(), up.data(), dy.data(), dx.data(),
                                                                    dup.data(), kElements);
  });
  const auto loss = [&](const Values& at_x, const Values& at_up) {
    return dot(activation<ACTIVATION, GATE>(at_x, at_up), dy);
  };
  // Results are rounded to float32, so the step is a large one.
  for (std::size_t i = 0; i < kElements; ++i) {
    const auto slope = [&](bool of_up) {
      constexpr double kStep = 1e-2;
      Values high_x = x, high_up = up, low_x = x, low_up = up;
      (of_up ? high_up : high_x)[i] += kStep;
      (of_up ? low_up : low_x)[i] -= kStep;
      return (loss(high_x, high_up) - loss(low_x, low_up)) / (2 * kStep);
    };
    CHECK(dx[i] == Approx(slope(false)).epsilon(1e-3).margin(1e-3));
    CHECK(dup[i] == Approx(GATE != 0 ? slope(true) : 0).epsilon(1e-3).margin(1e-3));
  }
}

}  // namespace

TEST_CASE("the reference of activation_forward has the textbook's values") {
  const Values x{1, -1, 2, 0};
  const auto first = [&]<int ACTIVATION>() {
    Values y(x.size());
    for_each_block(1, [&] {
      device::activation_forward_reference<double, ACTIVATION, 0>(x.data(), nullptr, y.data(), 4);
    });
    return y;
  };
  check_close(first.operator()<0>(), x);
  check_close(first.operator()<1>(), {0.8413447, -0.1586553, 1.9544997, 0});
  check_close(first.operator()<2>(), {0.7310586, -0.2689414, 1.7615942, 0});
  check_close(first.operator()<3>(), {0.8411920, -0.1588080, 1.9545977, 0});
}

TEST_CASE("the reference of activation_backward is the numerical gradient of activation_forward") {
  check_gradients<0, 1>();
  check_gradients<1, 0>();
  check_gradients<1, 1>();
  check_gradients<2, 0>();
  check_gradients<2, 1>();
  check_gradients<3, 0>();
  check_gradients<3, 1>();
}

// --- rotary ---

namespace {

constexpr int kQueryHeads = 2, kKeyHeads = 1;
constexpr long long kTokens = 5, kHeadSize = 6, kRows = 2;

struct Turned {
  Values q = Values(kTokens * kQueryHeads * kHeadSize), k = Values(kTokens * kKeyHeads * kHeadSize);
};

template <int INVERSE>
Turned turned(const Turned& from, const Values& cosine, const Values& sine) {
  Turned to;
  for_each_block(kTokens, [&] {
    device::rotary_reference<double, INVERSE, kHeadSize>(from.q.data(), from.k.data(), cosine.data(),
                                                         sine.data(), to.q.data(), to.k.data(), kQueryHeads,
                                                         kKeyHeads, kRows, kTokens);
  });
  return to;
}

struct Angles {
  Values cosine, sine;
};

/// Both halves of a head have the same angles, as in models.
Angles angles() {
  Angles all;
  for (const double angle : normal_values(kRows * kHeadSize / 2, 6)) {
    all.cosine.push_back(std::cos(angle));
    all.sine.push_back(std::sin(angle));
  }
  const auto doubled = [](const Values& half) {
    Values whole;
    for (long long row = 0; row < kRows; ++row) {
      for (int copy = 0; copy < 2; ++copy) {
        const auto from = half.begin() + row * kHeadSize / 2;
        whole.insert(whole.end(), from, from + kHeadSize / 2);
      }
    }
    return whole;
  };
  return {doubled(all.cosine), doubled(all.sine)};
}

}  // namespace

TEST_CASE("the reference of rotary turns pairs of elements and its inverse turns them back") {
  const Angles by = angles();
  const Turned from{normal_values(kTokens * kQueryHeads * kHeadSize, 7),
                    normal_values(kTokens * kKeyHeads * kHeadSize, 8)};
  const Turned to = turned<0>(from, by.cosine, by.sine);
  const long long token = 3, head = 1, pair = 2, row = token % kRows;
  const auto at = static_cast<std::size_t>((token * kQueryHeads + head) * kHeadSize + pair);
  const auto angle = static_cast<std::size_t>(row * kHeadSize + pair);
  CHECK(to.q[at] ==
        Approx(from.q[at] * by.cosine[angle] - from.q[at + kHeadSize / 2] * by.sine[angle]).epsilon(1e-6));
  CHECK(to.q[at + kHeadSize / 2] ==
        Approx(from.q[at + kHeadSize / 2] * by.cosine[angle] + from.q[at] * by.sine[angle]).epsilon(1e-6));
  const Turned back = turned<1>(to, by.cosine, by.sine);
  check_close(back.q, from.q);
  check_close(back.k, from.k);
}

TEST_CASE("the inverse of rotary is its gradient also where the halves have other angles") {
  const Values cosine = normal_values(kRows * kHeadSize, 9), sine = normal_values(kRows * kHeadSize, 10);
  const Turned x{normal_values(kTokens * kQueryHeads * kHeadSize, 11),
                 normal_values(kTokens * kKeyHeads * kHeadSize, 12)},
      dy{normal_values(kTokens * kQueryHeads * kHeadSize, 13),
         normal_values(kTokens * kKeyHeads * kHeadSize, 14)};
  const Turned y = turned<0>(x, cosine, sine), dx = turned<1>(dy, cosine, sine);
  // The map is linear: <R x, dy> = <x, R' dy>.
  CHECK(dot(y.q, dy.q) == Approx(dot(x.q, dx.q)).epsilon(1e-5));
  CHECK(dot(y.k, dy.k) == Approx(dot(x.k, dx.k)).epsilon(1e-5));
}

// --- cross-entropy ---

namespace {

constexpr long long kExamples = 3, kClasses = 7, kIgnored = -100;

struct Judged {
  std::vector<float> loss = std::vector<float>(kExamples);
  Values dx = Values(kExamples * kClasses);
};

Judged judged(const Values& x, const std::vector<long long>& targets, float scale) {
  Judged result;
  for_each_block(kExamples, [&] {
    device::cross_entropy_reference(x.data(), targets.data(), &scale, result.loss.data(), result.dx.data(),
                                    kIgnored, kExamples, kClasses);
  });
  return result;
}

}  // namespace

TEST_CASE("the reference of cross_entropy is the negative logarithm of softmax and its numerical gradient") {
  const std::vector<long long> targets{3, 0, 6};
  const Values x = normal_values(kExamples * kClasses, 15);
  const auto losses = [&](const Values& at) {
    Values each;
    for (std::size_t n = 0; n < kExamples; ++n) {
      double sum = 0;
      for (std::size_t d = 0; d < kClasses; ++d) {
        sum += std::exp(at[n * kClasses + d]);
      }
      each.push_back(std::log(sum) - at[n * kClasses + static_cast<std::size_t>(targets[n])]);
    }
    return each;
  };
  const Judged found = judged(x, targets, 0.5f);
  check_close({found.loss.begin(), found.loss.end()}, losses(x));
  check_close(found.dx, numerical_gradient(
                            [&](const Values& at) {
                              return dot(losses(at), {.5, .5, .5});
                            },
                            x));
}

TEST_CASE("an ignored row has neither loss nor gradient in the reference of cross_entropy") {
  const Judged found = judged(normal_values(kExamples * kClasses, 16), {3, kIgnored, 6}, 1.0f);
  CHECK(found.loss[1] == 0);
  CHECK(std::all_of(found.dx.begin() + kClasses, found.dx.begin() + 2 * kClasses,
                    [](double value) { return value == 0; }));
  CHECK(found.loss[0] > 0);
}

TEST_CASE(
    "the references of cross_entropy_forward and cross_entropy_backward give what cross_entropy gives") {
  const Values x = normal_values(kExamples * kClasses, 17);
  const std::vector<long long> targets{3, kIgnored, 6};
  const std::vector<float> dloss{0.5f, 0.5f, 0.5f};
  std::vector<float> loss(kExamples), lse(kExamples);
  Values dx(x.size());
  for_each_block(kExamples, [&] {
    device::cross_entropy_forward_reference(x.data(), targets.data(), loss.data(), lse.data(), kIgnored,
                                            kExamples, kClasses);
  });
  for_each_block(kExamples, [&] {
    device::cross_entropy_backward_reference(x.data(), targets.data(), lse.data(), dloss.data(), dx.data(),
                                             kIgnored, kExamples, kClasses);
  });
  const Judged expected = judged(x, targets, 0.5f);
  CHECK(loss == expected.loss);
  CHECK(lse[0] == Approx(loss[0] + x[3]));
  CHECK(lse[1] == 0);
  check_close(dx, expected.dx);
}

}  // namespace cubind::test
