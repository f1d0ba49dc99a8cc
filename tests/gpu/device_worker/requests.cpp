#include "tests/gpu/device_worker/requests.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <utility>

#include "plan/dtype.hpp"
#include "tests/gpu/device_worker/device_worker_process.hpp"

namespace cubind::test {

Requests& Requests::buffer(const std::string& name, const std::string& type, v1::Role role,
                           std::uint64_t elements, const BufferOptions& options) {
  prepare_.set_setup(1);
  v1::BufferSpec& spec = *prepare_.add_buffers();
  spec.set_name(name);
  spec.set_type(type);
  spec.set_role(role);
  spec.set_elements(elements);
  spec.set_align_bytes(options.align);
  spec.set_seed(static_cast<std::uint64_t>(prepare_.buffers_size()));
  spec.set_timed_zero(options.timed_zero);
  spec.set_constant_output(options.constant);
  spec.set_partial(options.partial);
  spec.mutable_summed_shape()->Add(options.summed.begin(), options.summed.end());
  spec.set_rtol(options.rtol);
  spec.set_atol(options.atol);
  spec.mutable_fill()->set_kind(options.fill);
  spec.mutable_fill()->set_file_content(options.content);
  for (const double parameter : options.parameters) {
    spec.mutable_fill()->add_parameters(parameter);
  }
  return *this;
}

Requests& Requests::reference(const v1::Launch& launch) {
  prepare_.set_reference("kernel");
  prepare_.set_reference_cubin(kernels_cubin());
  *prepare_.mutable_reference_plan() = plan({launch});
  return *this;
}

Requests& Requests::expected(const std::string& name, const std::string& type, const std::string& bytes) {
  prepare_.set_reference("expected");
  v1::ExpectedOutput& output = *prepare_.add_expected();
  output.set_name(name);
  output.set_type(type);
  output.set_data(bytes);
  return *this;
}

v1::Launch Requests::launch(const std::string& kernel, std::uint32_t grid, v1::Dim3 block,
                            const std::vector<std::string>& buffers,
                            const std::vector<std::int64_t>& numbers) const {
  v1::Launch launch;
  launch.set_entry(kernel);
  launch.set_entry_symbol(kernel);
  *launch.mutable_grid() = dim(grid);
  *launch.mutable_block() = std::move(block);
  for (const std::string& name : buffers) {
    const auto found = std::ranges::find_if(prepare_.buffers(),
                                            [&](const v1::BufferSpec& spec) { return spec.name() == name; });
    REQUIRE(found != prepare_.buffers().end());
    v1::Parameter& parameter = *launch.add_parameters();
    parameter.set_name(name);
    parameter.set_source(v1::Parameter::BUFFER);
    parameter.set_type(found->type());
    parameter.set_role(found->role());
    parameter.set_extent_bytes(found->elements() * size_of(parse_dtype(found->type()).value()));
  }
  for (const std::int64_t number : numbers) {
    v1::Parameter& parameter = *launch.add_parameters();
    parameter.set_name("n" + std::to_string(launch.parameters_size()));
    parameter.set_source(v1::Parameter::VALUE);
    parameter.set_type("i64");
    parameter.set_value(number);
  }
  return launch;
}

v1::Dim3 Requests::dim(std::uint32_t x, std::uint32_t y) {
  v1::Dim3 made;
  made.set_x(x);
  made.set_y(y);
  made.set_z(1);
  return made;
}

v1::LaunchPlan Requests::plan(const std::vector<v1::Launch>& launches) {
  v1::LaunchPlan made;
  for (const v1::Launch& launch : launches) {
    *made.add_launches() = launch;
  }
  return made;
}

v1::DeviceRequest Requests::prepare() const {
  v1::DeviceRequest request;
  *request.mutable_prepare() = prepare_;
  return request;
}

v1::DeviceRequest Requests::load(const v1::LaunchPlan& plan, std::uint32_t trial) {
  v1::DeviceRequest request;
  request.mutable_load()->set_trial(trial);
  request.mutable_load()->set_setup(1);
  request.mutable_load()->set_cubin(kernels_cubin());
  std::set<std::string> symbols;
  for (const v1::Launch& launch : plan.launches()) {
    symbols.insert(launch.entry_symbol());
  }
  for (const std::string& symbol : symbols) {
    request.mutable_load()->add_entry_symbols(symbol);
  }
  return request;
}

v1::DeviceRequest Requests::verify(const v1::LaunchPlan& plan, std::uint64_t seed, bool check_same_bits) {
  v1::DeviceRequest request;
  v1::VerifyTrial& verify = *request.mutable_verify();
  verify.set_trial(1);
  verify.set_setup(1);
  *verify.mutable_plan() = plan;
  verify.set_input_seed(seed);
  verify.set_check_same_bits(check_same_bits);
  return request;
}

v1::DeviceRequest Requests::measure(const v1::LaunchPlan& plan, std::uint32_t samples, bool warm_up) {
  v1::DeviceRequest request;
  request.mutable_measure()->set_setup(1);
  request.mutable_measure()->set_warm_up(warm_up);
  v1::MeasureTrials::Item& item = *request.mutable_measure()->add_items();
  item.set_trial(1);
  *item.mutable_plan() = plan;
  item.set_samples(samples);
  return request;
}

v1::DeviceRequest Requests::release() {
  v1::DeviceRequest request;
  request.mutable_release()->set_setup(1);
  return request;
}

v1::DeviceRequest Requests::probe() {
  v1::DeviceRequest request;
  request.mutable_probe();
  return request;
}

Requests row_problem(const BufferOptions& x_options, const BufferOptions& w_options) {
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kRows * kColumns, x_options)
      .buffer("w", "f32", v1::IN, kColumns, w_options)
      .buffer("y", "f32", v1::OUT, kRows * kColumns);
  problem.reference(
      problem.launch("reference", kRows, Requests::dim(64), {"x", "w", "y"}, {kRows, kColumns}));
  return problem;
}

v1::LaunchPlan row_plan(const Requests& problem, const std::string& kernel) {
  return Requests::plan(
      {problem.launch(kernel, (kRows + 3) / 4, Requests::dim(64, 4), {"x", "w", "y"}, {kRows, kColumns})});
}

double median(const v1::MeasuredItem& item) {
  std::vector<double> samples(item.samples_us().begin(), item.samples_us().end());
  REQUIRE_FALSE(samples.empty());
  std::ranges::sort(samples);
  return samples[samples.size() / 2];
}

}  // namespace cubind::test
