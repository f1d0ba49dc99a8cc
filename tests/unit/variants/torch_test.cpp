// The references of the kernels against what torch computed of the same inputs in float64
// (tests/golden/make_torch.py).
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/paths.hpp"
#include "tests/unit/variants/values.hpp"
#include "vector_io.cuh"

#include "variants/flash_attention/heads.cuh"

// An element that the reference takes into a float is double here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
namespace device_of_torch {
#include "variants/matmul/reference.cu"
#include "variants/rmsnorm/reference.cu"
#include "variants/rmsnorm/rmsnorm_backward_reference.cu"
#include "variants/rmsnorm/rmsnorm_fused_reference.cu"
#include "variants/softmax/softmax_backward_reference.cu"
#include "variants/softmax/softmax_forward_reference.cu"
#include "variants/vector_add/reference.cu"
#include "variants/weighted_sum/weighted_sum_backward_reference.cu"
#include "variants/weighted_sum/weighted_sum_forward_reference.cu"
namespace layernorm {
#include "variants/layernorm/layernorm_forward_reference.cu"
}  // namespace layernorm
namespace layernorm_gradients {
#include "variants/layernorm/layernorm_backward_reference.cu"
}  // namespace layernorm_gradients
namespace attention {
#include "variants/flash_attention/reference.cu"
}  // namespace attention
namespace attention_gradients {
#include "variants/flash_attention/reference_backward.cu"
}  // namespace attention_gradients
}  // namespace device_of_torch
#pragma GCC diagnostic pop

namespace cubind::test {
namespace {

namespace device = device_of_torch;

// The sizes and constants of make_torch.py.
constexpr long long kRows = 3, kColumns = 7;
constexpr int kM = 3, kN = 5, kK = 70;
constexpr int kQueryHeads = 4, kKeyHeads = 2, kQueries = 3, kKeys = 5, kHeadSize = 32;
constexpr float kEps = 0.0009765625f, kScale = 0.25f;
constexpr unsigned int kAttentionBlock = 256;
// Blocks of the references of attention have 64 rows each.
constexpr long long tiles_of(int rows) { return (rows + 63) / 64; }

/// The tensors of a kernel by name.
class Torch {
 public:
  explicit Torch(const std::string& kernel) {
    std::ifstream file(source_dir() / "tests" / "golden" / "torch.json");
    tensors_ = nlohmann::json::parse(file).at(kernel);
  }
  Values operator[](const char* name) const { return tensors_.at(name).get<Values>(); }
  std::vector<float> in_float32(const char* name) const {
    return tensors_.at(name).get<std::vector<float>>();
  }

 private:
  nlohmann::json tensors_;
};

Values as_values(const std::vector<float>& from) { return {from.begin(), from.end()}; }

/// Sums of terms that are rounded to float32.
void check_sums(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == Approx(expected[i]).epsilon(2e-6).margin(2e-5));
  }
}

/// x times the transpose of a weight, as a linear layer has it.
template <int BIAS, int ACTIVATION>
Values linear(const Values& x, const Torch& torch) {
  const Values weight = torch["weight"], bias = torch["bias"];
  Values y(std::size_t{kM} * kN);
  for_each_block_of(256, 1, [&] {
    device::matmul_reference<double, 0, 1, BIAS, ACTIVATION>(x.data(), weight.data(), bias.data(), y.data(),
                                                             kM, kN, kK);
  });
  return y;
}

template <int CAUSAL>
void check_attention(const Torch& torch) {
  const Values q = torch["q"], k = torch["k"], v = torch["v"];
  Values o(q.size());
  std::vector<float> lse(std::size_t{kQueryHeads} * kQueries);
  for_each_block_of(kAttentionBlock, kQueryHeads * tiles_of(kQueries), [&] {
    device::attention::flash_attention_forward_reference<double, kHeadSize, CAUSAL>(
        q.data(), k.data(), v.data(), o.data(), lse.data(), kQueryHeads, kKeyHeads, kQueries, kKeys, kScale,
        0, 0, 0);
  });
  check_sums(o, torch["o"]);
  check_sums(as_values(lse), torch["lse"]);
}

template <int CAUSAL>
void check_attention_gradients(const Torch& torch) {
  const Values q = torch["q"], k = torch["k"], v = torch["v"], o = torch["o"], d_o = torch["d_o"];
  const std::vector<float> lse = torch.in_float32("lse");
  Values dq(q.size()), dk(k.size()), dv(v.size());
  for_each_block_of(kAttentionBlock, kQueryHeads * tiles_of(kQueries), [&] {
    device::attention_gradients::flash_attention_backward_reference_queries<double, kHeadSize, CAUSAL>(
        q.data(), k.data(), v.data(), o.data(), d_o.data(), lse.data(), dq.data(), kQueryHeads, kKeyHeads,
        kQueries, kKeys, kScale, 0, 0, 0);
  });
  for_each_block_of(kAttentionBlock, kKeyHeads * tiles_of(kKeys), [&] {
    device::attention_gradients::flash_attention_backward_reference_keys<double, kHeadSize, CAUSAL>(
        q.data(), k.data(), v.data(), o.data(), d_o.data(), lse.data(), dk.data(), dv.data(), kQueryHeads,
        kKeyHeads, kQueries, kKeys, kScale, 0, 0, 0);
  });
  check_sums(dq, torch["dq"]);
  check_sums(dk, torch["dk"]);
  check_sums(dv, torch["dv"]);
}

}  // namespace

TEST_CASE("the references of softmax are torch's softmax and its gradient") {
  const Torch forward("softmax_forward"), backward("softmax_backward");
  const Values x = forward["x"], y = backward["y"], dy = backward["dy"];
  Values found(x.size());
  for_each_block(kRows, [&] { device::softmax_forward_reference(x.data(), found.data(), kRows, kColumns); });
  check_close(found, forward["y"]);
  for_each_block(
      kRows, [&] { device::softmax_backward_reference(y.data(), dy.data(), found.data(), kRows, kColumns); });
  check_close(found, backward["dx"]);
}

TEST_CASE("the reference of layernorm_forward is torch's layer_norm with its mean and rstd") {
  const Torch torch("layernorm_forward");
  const Values x = torch["x"], w = torch["w"], b = torch["b"];
  Values y(x.size());
  std::vector<float> mean(kRows), rstd(kRows);
  for_each_block(kRows, [&] {
    device::layernorm::layernorm_forward_reference(x.data(), w.data(), b.data(), y.data(), mean.data(),
                                                   rstd.data(), kRows, kColumns, kEps);
  });
  check_close(y, torch["y"]);
  check_close(as_values(mean), torch["mean"]);
  check_close(as_values(rstd), torch["rstd"]);
}

TEST_CASE("the references of layernorm_backward are torch's gradients of layer_norm") {
  const Torch torch("layernorm_backward");
  const Values x = torch["x"], w = torch["w"], dy = torch["dy"];
  const std::vector<float> mean = torch.in_float32("mean"), rstd = torch.in_float32("rstd");
  Values dx(x.size()), dw(w.size()), db(w.size());
  for_each_block(kRows, [&] {
    device::layernorm_gradients::layernorm_backward_reference(x.data(), w.data(), dy.data(), mean.data(),
                                                              rstd.data(), dx.data(), kRows, kColumns);
  });
  for_each_block(kColumns, [&] {
    device::layernorm_gradients::layernorm_backward_columns_reference(
        x.data(), dy.data(), mean.data(), rstd.data(), dw.data(), db.data(), kRows, kColumns);
  });
  check_close(dx, torch["dx"]);
  check_close(dw, torch["dw"]);
  check_close(db, torch["db"]);
}

TEST_CASE("the references of rmsnorm_forward and rmsnorm_fused_forward are torch's rms_norm") {
  const Torch plain("rmsnorm_forward"), fused("rmsnorm_fused_forward");
  const Values x = plain["x"], w = plain["w"], residual = fused["residual"];
  Values y(x.size()), sum(x.size());
  std::vector<float> rstd(kRows);
  for_each_block(
      kRows, [&] { device::rmsnorm_forward_reference(x.data(), w.data(), y.data(), kRows, kColumns, kEps); });
  check_close(y, plain["y"]);
  for_each_block(kRows, [&] {
    device::rmsnorm_fused_forward_reference<double, 1, 1>(x.data(), residual.data(), w.data(), sum.data(),
                                                          y.data(), rstd.data(), kRows, kColumns, kEps);
  });
  check_close(y, fused["y"]);
  check_close(sum, fused["sum"]);
}

TEST_CASE("the references of rmsnorm_backward are torch's gradients of rms_norm") {
  const Torch torch("rmsnorm_backward");
  const Values x = torch["x"], w = torch["w"], dy = torch["dy"];
  const std::vector<float> rstd = torch.in_float32("rstd");
  Values dx(x.size()), dw(w.size());
  for_each_block(kRows, [&] {
    device::rmsnorm_backward_reference(x.data(), w.data(), dy.data(), rstd.data(), dx.data(), kRows,
                                       kColumns);
  });
  for_each_block(kColumns, [&] {
    device::rmsnorm_backward_columns_reference(x.data(), dy.data(), rstd.data(), dw.data(), kRows, kColumns);
  });
  check_close(dx, torch["dx"]);
  check_close(dw, torch["dw"]);
}

TEST_CASE("the references of the weighted sum are torch's mv and its gradients") {
  const Torch torch("weighted_sum_backward");
  const Values x = torch["x"], w = torch["w"], dy = torch["dy"];
  Values y(kRows), dx(x.size()), dw(w.size());
  for_each_block(kRows, [&] {
    device::weighted_sum_forward_reference(x.data(), w.data(), y.data(), kRows, kColumns);
    device::weighted_sum_backward_reference(w.data(), dy.data(), dx.data(), kRows, kColumns);
  });
  for_each_block(kColumns, [&] {
    device::weighted_sum_backward_columns_reference(x.data(), dy.data(), dw.data(), kRows, kColumns);
  });
  check_close(y, Torch("weighted_sum_forward")["y"]);
  check_close(dx, torch["dx"]);
  check_close(dw, torch["dw"]);
}

TEST_CASE("the reference of matmul is torch's linear with its GELU and SiLU") {
  const Torch torch("matmul");
  check_sums(linear<0, 0>(torch["x"], torch), torch["linear"]);
  check_sums(linear<1, 1>(torch["x"], torch), torch["gelu"]);
  check_sums(linear<1, 2>(torch["x"], torch), torch["silu"]);
}

TEST_CASE("the references of layernorm_linear are torch's linear behind its layer_norm") {
  const Torch torch("layernorm_linear");
  const Values x = torch["x"], gamma = torch["gamma"], beta = torch["beta"];
  Values rows(x.size());
  std::vector<float> mean(kM), rstd(kM);
  for_each_block(kM, [&] {
    device::layernorm::layernorm_forward_reference(x.data(), gamma.data(), beta.data(), rows.data(),
                                                   mean.data(), rstd.data(), static_cast<long long>(kM),
                                                   static_cast<long long>(kK), kEps);
  });
  check_sums(linear<1, 1>(rows, torch), torch["y"]);
}

TEST_CASE("the references of attention are torch's with grouped heads and its gradients") {
  check_attention<0>(Torch("flash_attention_forward, full"));
  check_attention<1>(Torch("flash_attention_forward, causal"));
  check_attention_gradients<0>(Torch("flash_attention_backward, full"));
  check_attention_gradients<1>(Torch("flash_attention_backward, causal"));
}

TEST_CASE("the reference of vector_add is torch's sum") {
  const Torch torch("vector_add");
  const Values a = torch["a"], b = torch["b"];
  Values c(a.size());
  for_each_block(1, [&] { device::vector_add_reference(a.data(), b.data(), c.data(), kColumns); });
  check_close(c, torch["c"]);
}

}  // namespace cubind::test
