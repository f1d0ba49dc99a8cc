#include <functional>
#include <limits>

#include "tests/unit/variants/values.hpp"
#include "vector_io.cuh"

#include "variants/flash_attention/heads.cuh"

// An element that the reference takes into a float is double here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
namespace device {
namespace forward {
#include "variants/flash_attention/reference.cu"
}  // namespace forward
namespace backward {
#include "variants/flash_attention/reference_backward.cu"
}  // namespace backward
}  // namespace device
#pragma GCC diagnostic pop

namespace cubind::test {
namespace {

constexpr int kHeadSize = 32, kQueryHeads = 2, kKeyHeads = 1;
constexpr float kScale = 0.25f;
constexpr unsigned int kBlock = 256;

struct Shape {
  int queries, keys;
  long long tiles_of_queries() const { return (queries + 63) / 64; }
  long long tiles_of_keys() const { return (keys + 63) / 64; }
};
constexpr Shape kSmall{3, 4}, kTiles{67, 130};

struct Attended {
  Values o, lse;
};

/// Which keys a query sees, and the cap of scores; 0: none.
struct Form {
  int causal, left, right, cap;

  bool sees(std::size_t query, std::size_t key, const Shape& shape) const {
    const int distance = static_cast<int>(key) - static_cast<int>(query) - (shape.keys - shape.queries);
    return (causal == 0 || distance <= 0) && (left == 0 || distance > -left) &&
           (right == 0 || distance < right);
  }
  double score(double product) const { return cap == 0 ? product : cap * std::tanh(product / cap); }
  double slope(double product) const {
    const double tangent = cap == 0 ? 0 : std::tanh(product / cap);
    return 1 - tangent * tangent;
  }
};

double score(const Values& q, const Values& k, std::size_t query, std::size_t key) {
  double sum = 0;
  for (std::size_t d = 0; d < kHeadSize; ++d) {
    sum += q[query * kHeadSize + d] * k[key * kHeadSize + d];
  }
  return sum * double(kScale);
}

struct Case {
  explicit Case(Shape of) : shape(of) {}
  std::size_t query_rows() const { return static_cast<std::size_t>(kQueryHeads) * queries(); }
  std::size_t key_rows() const { return static_cast<std::size_t>(kKeyHeads) * keys(); }
  std::size_t queries() const { return static_cast<std::size_t>(shape.queries); }
  std::size_t keys() const { return static_cast<std::size_t>(shape.keys); }

  Shape shape;
  Values q = normal_values(query_rows() * kHeadSize, 1), k = normal_values(key_rows() * kHeadSize, 2),
         v = normal_values(key_rows() * kHeadSize, 3), d_o = normal_values(query_rows() * kHeadSize, 4);
};

/// What weights are multiplied with, by row of queries and key.
using Factors = std::function<double(std::size_t, std::size_t)>;
double one(std::size_t, std::size_t) { return 1; }

/// One batch, whose heads of queries share one of keys. A query that sees no key has zeros.
Attended attention(const Case& c, const Values& q, const Values& k, const Values& v, const Form& form,
                   const Factors& factors = one) {
  Attended result;
  for (std::size_t row = 0; row < c.query_rows(); ++row) {
    double total = 0;
    Values sums(kHeadSize);
    for (std::size_t key = 0; key < c.keys(); ++key) {
      if (!form.sees(row % c.queries(), key, c.shape)) {
        continue;
      }
      const double weight = std::exp(form.score(score(q, k, row, key)));
      total += weight;
      for (std::size_t d = 0; d < kHeadSize; ++d) {
        sums[d] += weight * factors(row, key) * v[key * kHeadSize + d];
      }
    }
    for (const double sum : sums) {
      result.o.push_back(total == 0 ? 0 : sum / total);
    }
    result.lse.push_back(std::log(total));
  }
  return result;
}

/// Float32 scores and weights.
void check_near(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == Approx(expected[i]).epsilon(2e-6).margin(1e-5));
  }
}

template <int CAUSAL, int LEFT = 0, int RIGHT = 0, int CAP = 0>
void check_forward(Shape shape) {
  const Case c(shape);
  Values o(c.q.size());
  std::vector<float> lse(c.query_rows());
  for_each_block_of(kBlock, kQueryHeads * shape.tiles_of_queries(), [&] {
    device::forward::flash_attention_forward_reference<double, kHeadSize, CAUSAL, LEFT, RIGHT, CAP>(
        c.q.data(), c.k.data(), c.v.data(), o.data(), lse.data(), kQueryHeads, kKeyHeads, shape.queries,
        shape.keys, kScale, 0, 0, 0);
  });
  const Attended expected = attention(c, c.q, c.k, c.v, {CAUSAL, LEFT, RIGHT, CAP});
  check_near(o, expected.o);
  check_near({lse.begin(), lse.end()}, expected.lse);
}

struct Gradients {
  Values dq, dk, dv;
};

/// Of the loss dot(o, d_o), by the chain rule.
Gradients gradients(const Case& c, const Attended& saved, const Form& form, const Factors& factors = one) {
  Gradients result{Values(c.q.size()), Values(c.k.size()), Values(c.v.size())};
  for (std::size_t row = 0; row < c.query_rows(); ++row) {
    const auto product = [&](const Values& a, std::size_t at_a, const Values& b, std::size_t at_b) {
      double sum = 0;
      for (std::size_t d = 0; d < kHeadSize; ++d) {
        sum += a[at_a * kHeadSize + d] * b[at_b * kHeadSize + d];
      }
      return sum;
    };
    const double delta = product(c.d_o, row, saved.o, row);
    for (std::size_t key = 0; key < c.keys(); ++key) {
      if (!form.sees(row % c.queries(), key, c.shape)) {
        continue;
      }
      const double scaled = score(c.q, c.k, row, key), factor = factors(row, key);
      const double weight = std::exp(form.score(scaled) - saved.lse[row]);
      const double slope =
          weight * (product(c.d_o, row, c.v, key) * factor - delta) * form.slope(scaled) * double(kScale);
      for (std::size_t d = 0; d < kHeadSize; ++d) {
        result.dq[row * kHeadSize + d] += slope * c.k[key * kHeadSize + d];
        result.dk[key * kHeadSize + d] += slope * c.q[row * kHeadSize + d];
        result.dv[key * kHeadSize + d] += weight * factor * c.d_o[row * kHeadSize + d];
      }
    }
  }
  return result;
}

template <int CAUSAL, int LEFT = 0, int RIGHT = 0, int CAP = 0>
Gradients reference_gradients(const Case& c, const Attended& saved) {
  const std::vector<float> lse(saved.lse.begin(), saved.lse.end());
  Gradients result{Values(c.q.size()), Values(c.k.size()), Values(c.v.size())};
  for_each_block_of(kBlock, kQueryHeads * c.shape.tiles_of_queries(), [&] {
    device::backward::flash_attention_backward_reference_queries<double, kHeadSize, CAUSAL, LEFT, RIGHT, CAP>(
        c.q.data(), c.k.data(), c.v.data(), saved.o.data(), c.d_o.data(), lse.data(), result.dq.data(),
        kQueryHeads, kKeyHeads, c.shape.queries, c.shape.keys, kScale, 0, 0, 0);
  });
  for_each_block_of(kBlock, kKeyHeads * c.shape.tiles_of_keys(), [&] {
    device::backward::flash_attention_backward_reference_keys<double, kHeadSize, CAUSAL, LEFT, RIGHT, CAP>(
        c.q.data(), c.k.data(), c.v.data(), saved.o.data(), c.d_o.data(), lse.data(), result.dk.data(),
        result.dv.data(), kQueryHeads, kKeyHeads, c.shape.queries, c.shape.keys, kScale, 0, 0, 0);
  });
  return result;
}

void check_gradients(const Gradients& found, const Gradients& expected) {
  check_near(found.dq, expected.dq);
  check_near(found.dk, expected.dk);
  check_near(found.dv, expected.dv);
}

template <int CAUSAL, int LEFT = 0, int RIGHT = 0, int CAP = 0>
void check_backward() {
  const Case c(kSmall);
  const Form form{CAUSAL, LEFT, RIGHT, CAP};
  const auto loss = [&](const Values& q, const Values& k, const Values& v) {
    return dot(attention(c, q, k, v, form).o, c.d_o);
  };
  const Attended saved = attention(c, c.q, c.k, c.v, form);
  check_gradients(reference_gradients<CAUSAL, LEFT, RIGHT, CAP>(c, saved),
                  {numerical_gradient([&](const Values& at) { return loss(at, c.k, c.v); }, c.q),
                   numerical_gradient([&](const Values& at) { return loss(c.q, at, c.v); }, c.k),
                   numerical_gradient([&](const Values& at) { return loss(c.q, c.k, at); }, c.v)});
}

template <int CAUSAL, int LEFT = 0, int RIGHT = 0, int CAP = 0>
void check_tiles(Shape shape = kTiles) {
  check_forward<CAUSAL, LEFT, RIGHT, CAP>(shape);
  const Case c(shape);
  const Form form{CAUSAL, LEFT, RIGHT, CAP};
  const Attended saved = attention(c, c.q, c.k, c.v, form);
  check_gradients(reference_gradients<CAUSAL, LEFT, RIGHT, CAP>(c, saved), gradients(c, saved, form));
}

/// Two batches, from [B, heads, rows, D] to the columns from `column` on of a [B, rows, stride].
void put_by_rows(Values& to, const Values& from, std::size_t heads, std::size_t stride, std::size_t column) {
  const std::size_t rows = from.size() / (2 * heads * kHeadSize);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t d = i % kHeadSize, row = i / kHeadSize % rows, head = i / kHeadSize / rows;
    to[(head / heads * rows + row) * stride + column + head % heads * kHeadSize + d] = from[i];
  }
}

Values by_rows(const Values& from, std::size_t heads) {
  Values to(from.size());
  put_by_rows(to, from, heads, heads * kHeadSize, 0);
  return to;
}

/// What both passes take, of two batches, and how q, k and v lie.
struct Given {
  const double *q, *k, *v, *d_o;
  int q_row, k_row, v_row;
};

struct Passes {
  Values o, dq, dk, dv;
};

template <int CAUSAL>
Passes both_passes(const Shape& shape, const Given& g) {
  const auto rows = [](int heads, int count) {
    return 2 * static_cast<std::size_t>(heads) * static_cast<std::size_t>(count);
  };
  const std::size_t queries = rows(kQueryHeads, shape.queries), keys = rows(kKeyHeads, shape.keys);
  Passes all{Values(queries * kHeadSize), Values(queries * kHeadSize), Values(keys * kHeadSize),
             Values(keys * kHeadSize)};
  std::vector<float> lse(queries);
  const long long blocks = 2 * kQueryHeads * shape.tiles_of_queries();
  for_each_block_of(kBlock, blocks, [&] {
    device::forward::flash_attention_forward_reference<double, kHeadSize, CAUSAL>(
        g.q, g.k, g.v, all.o.data(), lse.data(), kQueryHeads, kKeyHeads, shape.queries, shape.keys, kScale,
        g.q_row, g.k_row, g.v_row);
  });
  for_each_block_of(kBlock, blocks, [&] {
    device::backward::flash_attention_backward_reference_queries<double, kHeadSize, CAUSAL>(
        g.q, g.k, g.v, all.o.data(), g.d_o, lse.data(), all.dq.data(), kQueryHeads, kKeyHeads, shape.queries,
        shape.keys, kScale, g.q_row, g.k_row, g.v_row);
  });
  for_each_block_of(kBlock, 2 * kKeyHeads * shape.tiles_of_keys(), [&] {
    device::backward::flash_attention_backward_reference_keys<double, kHeadSize, CAUSAL>(
        g.q, g.k, g.v, all.o.data(), g.d_o, lse.data(), all.dk.data(), all.dv.data(), kQueryHeads, kKeyHeads,
        shape.queries, shape.keys, kScale, g.q_row, g.k_row, g.v_row);
  });
  return all;
}

void check_by_rows(const Passes& found, const Passes& dense) {
  CHECK(found.o == by_rows(dense.o, kQueryHeads));
  CHECK(found.dq == by_rows(dense.dq, kQueryHeads));
  CHECK(found.dk == by_rows(dense.dk, kKeyHeads));
  CHECK(found.dv == by_rows(dense.dv, kKeyHeads));
}

}  // namespace

TEST_CASE("the references of attention are the formula in every tile of longer sequences") {
  check_tiles<0>();
  check_tiles<1>();
}

TEST_CASE("the references of attention have windows and caps") {
  check_forward<1, 2>(kSmall);
  check_forward<0, 2, 3, 2>(kSmall);
  check_backward<1, 2>();
  check_backward<0, 2, 3, 2>();
  check_backward<0, 0, 0, 1>();
  check_tiles<1, 5>();
  check_tiles<0, 40, 20, 3>();
  check_tiles<0, 0, 9>({130, 67});  // the first queries see no key
}

constexpr long long kKept = 40000;

/// Sequences of kSizes rows with gaps of kGaps rows behind them, [rows, heads, D] in memory.
struct Packed {
  static constexpr int kSizes[] = {70, 0, 33}, kGaps[] = {3, 2, 64}, kFirst = 5, kCount = 3;

  Packed() {
    for (int i = 0; i < kCount; ++i) {
      lengths.push_back(kSizes[i]);
      bounds.push_back(bounds.back() + kSizes[i] + kGaps[i]);
    }
    const auto total = static_cast<std::size_t>(bounds.back());
    q = normal_values(total * kQueryHeads * kHeadSize, 1);
    k = normal_values(total * kHeadSize, 2);
    v = normal_values(total * kHeadSize, 3);
    d_o = normal_values(q.size(), 4);
  }

  /// A sequence by itself, dense.
  Case alone(int i) const {
    Case c({kSizes[i], kSizes[i]});
    c.q = heads(q, i, kQueryHeads);
    c.k = heads(k, i, kKeyHeads);
    c.v = heads(v, i, kKeyHeads);
    c.d_o = heads(d_o, i, kQueryHeads);
    return c;
  }

  /// The sequence's rows as [heads, rows, D].
  Values heads(const Values& all, int sequence, int heads) const {
    Values dense;
    for (int head = 0; head < heads; ++head) {
      for (int row = 0; row < kSizes[sequence]; ++row) {
        for (int d = 0; d < kHeadSize; ++d) {
          dense.push_back(all[std::size_t((bounds[std::size_t(sequence)] + row) * heads + head) * kHeadSize +
                              std::size_t(d)]);
        }
      }
    }
    return dense;
  }

  std::vector<int> bounds{kFirst}, lengths;
  Values q, k, v, d_o;
};

template <int DROPOUT>
Passes packed_passes(const Packed& p, const Values& values) {
  const int rows = p.bounds.back();
  const long long dropout[] = {123456789012345, kKept}, blocks = rows / 64 + Packed::kCount + 1;
  Passes all{Values(p.q.size()), Values(p.q.size()), Values(p.k.size()), Values(p.k.size())};
  std::vector<float> lse(static_cast<std::size_t>(rows) * kQueryHeads);
  const auto sizes = [&](auto kernel, auto... arguments) {
    kernel(arguments..., p.bounds.data(), nullptr, p.lengths.data(), nullptr, dropout, Packed::kCount,
           kQueryHeads, kKeyHeads, rows, rows, kScale, kQueryHeads * kHeadSize, kHeadSize, kHeadSize);
  };
  for_each_block_of(kBlock, kQueryHeads * blocks, [&] {
    sizes(
        device::forward::flash_attention_packed_forward_reference<double, kHeadSize, 1, 0, 0, 0, DROPOUT, 1>,
        p.q.data(), p.k.data(), values.data(), all.o.data(), lse.data());
  });
  for_each_block_of(kBlock, kQueryHeads * blocks, [&] {
    sizes(device::backward::flash_attention_packed_backward_reference_queries<double, kHeadSize, 1, 0, 0, 0,
                                                                              DROPOUT, 1>,
          p.q.data(), p.k.data(), values.data(), all.o.data(), p.d_o.data(), lse.data(), all.dq.data());
  });
  for_each_block_of(kBlock, kKeyHeads * blocks, [&] {
    sizes(device::backward::flash_attention_packed_backward_reference_keys<double, kHeadSize, 1, 0, 0, 0,
                                                                           DROPOUT, 1>,
          p.q.data(), p.k.data(), values.data(), all.o.data(), p.d_o.data(), lse.data(), all.dk.data(),
          all.dv.data());
  });
  return all;
}

void check_sequences(const Packed& p, const Passes& found, const Factors* factors) {
  double inside = 0, everywhere = 0;
  for (int i = 0; i < Packed::kCount; ++i) {
    const Case c = p.alone(i);
    const Factors& of_sequence = factors == nullptr ? Factors(one) : factors[i];
    const Attended expected = attention(c, c.q, c.k, c.v, {1, 0, 0, 0}, of_sequence);
    check_near(p.heads(found.o, i, kQueryHeads), expected.o);
    check_gradients(
        {p.heads(found.dq, i, kQueryHeads), p.heads(found.dk, i, kKeyHeads), p.heads(found.dv, i, kKeyHeads)},
        gradients(c, expected, {1, 0, 0, 0}, of_sequence));
    for (const double value : p.heads(found.o, i, kQueryHeads)) {
      inside += value * value;
    }
  }
  for (const double value : found.o) {
    everywhere += value * value;
  }
  CHECK(everywhere == Approx(inside));  // gaps are zero
}

TEST_CASE("the references of packed attention have each sequence by itself and zeros in gaps") {
  const Packed p;
  check_sequences(p, packed_passes<0>(p, p.v), nullptr);
}

TEST_CASE("the references of packed attention drop the same weights in both passes") {
  const Packed p;
  // Unit values, 32 keys at a time, show which weights are kept.
  std::vector<std::vector<bool>> kept(Packed::kCount);
  std::size_t draws = 0, of_these = 0;
  for (int first = 0; first < 96; first += kHeadSize) {
    Values unit(p.v.size());
    for (int i = 0; i < Packed::kCount; ++i) {
      for (int key = first; key < std::min(first + kHeadSize, Packed::kSizes[i]); ++key) {
        unit[std::size_t(p.bounds[std::size_t(i)] + key) * kHeadSize + std::size_t(key - first)] = 1;
      }
    }
    const Values o = packed_passes<1>(p, unit).o;
    for (int i = 0; i < Packed::kCount; ++i) {
      const Values shown = p.heads(o, i, kQueryHeads);
      auto& mask = kept[std::size_t(i)];
      mask.resize(std::size_t(kQueryHeads * Packed::kSizes[i]) * 96);
      for (std::size_t at = 0; at < shown.size(); ++at) {
        mask[at / kHeadSize * 96 + std::size_t(first) + at % kHeadSize] = shown[at] > 0;
      }
    }
  }
  Factors factors[Packed::kCount];
  for (int i = 0; i < Packed::kCount; ++i) {
    const auto& mask = kept[std::size_t(i)];
    factors[i] = [&mask](std::size_t row, std::size_t key) {
      return mask[row * 96 + key] ? 65536.0 / kKept : 0;
    };
    for (std::size_t row = 0; row < mask.size() / 96; ++row) {
      for (std::size_t key = 0; key <= row % std::size_t(Packed::kSizes[i]); ++key) {
        ++draws;
        of_these += mask[row * 96 + key] ? 1 : 0;
      }
    }
  }
  const double part = double(kKept) / 65536, deviation = std::sqrt(part * (1 - part) / double(draws));
  CHECK(std::abs(double(of_these) / double(draws) - part) < 5 * deviation);
  check_sequences(p, packed_passes<1>(p, p.v), factors);
}

TEST_CASE("the references of attention read and write views of projections as they do dense heads") {
  const Shape shape{67, 70};
  const Values q = normal_values(2 * kQueryHeads * 67 * kHeadSize, 1),
               k = normal_values(2 * 70 * kHeadSize, 2), v = normal_values(2 * 70 * kHeadSize, 3),
               d_o = normal_values(q.size(), 4);
  const Passes dense = both_passes<1>(shape, {q.data(), k.data(), v.data(), d_o.data(), 0, 0, 0});
  const Values q_rows = by_rows(q, kQueryHeads), slopes = by_rows(d_o, kQueryHeads);
  Values both(2 * 70 * 2 * kHeadSize);  // keys and values of one projection
  put_by_rows(both, k, kKeyHeads, 2 * kHeadSize, 0);
  put_by_rows(both, v, kKeyHeads, 2 * kHeadSize, kHeadSize);
  const Given views{
      q_rows.data(), both.data(),  both.data() + kHeadSize, slopes.data(), kQueryHeads * kHeadSize,
      2 * kHeadSize, 2 * kHeadSize};
  check_by_rows(both_passes<1>(shape, views), dense);
}

}  // namespace cubind::test
