#include "tests/unit/client/bound_sample.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "tests/fakes/sample_reply.hpp"

namespace cubind::test {
namespace {

const char* const kFunctions[] = {"_Z10scale_rows", "_Z6finish"};
constexpr std::size_t kParameters[] = {4, 3};

cuda::Result record_launch(cuda::Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, cuda::Stream, void** parameters,
                           void**) {
  if (!recorded().launching) {
    return cuda::Result::Success;
  }
  const auto index = reinterpret_cast<std::uintptr_t>(function) - 1;
  RecordedLaunch launch{kFunctions[index], {gx, gy, gz}, {bx, by, bz}, shared, {}, {}};
  for (std::size_t i = 0; i < kParameters[index]; ++i) {
    std::memcpy(&launch.parameters[i], parameters[i], 8);  // ParameterBytes has 8
  }
  recorded().launches.push_back(launch);
  return cuda::Result::Success;
}

cuda::Result record_launch_ex(const cuda::LaunchConfig* config, cuda::Function function, void** parameters,
                              void** extra) {
  const cuda::Result result = record_launch(function, config->grid_x, config->grid_y, config->grid_z,
                                            config->block_x, config->block_y, config->block_z,
                                            config->shared_bytes, config->stream, parameters, extra);
  for (const cuda::LaunchAttribute& one : std::span(config->attributes, config->attribute_count)) {
    recorded().launches.back().attributes.push_back(
        {static_cast<unsigned>(one.id), one.value[0], one.value[1], one.value[2]});
  }
  return result;
}

cuda::Result record_map(cuda::TensorMap* map, int type, unsigned axes, void* base, const std::uint64_t* sizes,
                        const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* steps,
                        int interleave, int swizzle, int promotion, int fill) {
  map->opaque[0] = reinterpret_cast<std::uintptr_t>(base);
  recorded().maps.push_back({map->opaque[0],
                             type,
                             {sizes, sizes + axes},
                             {strides, strides + axes - 1},
                             {box, box + axes},
                             {steps, steps + axes},
                             {interleave, swizzle, promotion, fill}});
  return type == static_cast<int>(TensorMapType::F64) ? cuda::Result::InvalidValue : cuda::Result::Success;
}

std::shared_ptr<cuda::DriverApi> recording_driver() {
  recorded() = {};
  auto api = std::make_shared<cuda::DriverApi>();
  api->init = [](unsigned) { return cuda::Result::Success; };
  api->device_get_count = [](int* count) { return *count = 1, cuda::Result::Success; };
  api->device_get = [](cuda::DeviceOrdinal* device, int) { return *device = 0, cuda::Result::Success; };
  api->ctx_get_current = [](cuda::Context* context) {
    *context = reinterpret_cast<cuda::Context>(1);
    return cuda::Result::Success;
  };
  api->module_load_data = [](cuda::Module*, const void*) { return cuda::Result::Success; };
  api->module_unload = [](cuda::Module) { return cuda::Result::Success; };
  api->module_get_function = [](cuda::Function* function, cuda::Module, const char* name) {
    const auto found = std::ranges::find(kFunctions, std::string_view(name));
    const auto number = found - std::begin(kFunctions) + 1;
    *function = reinterpret_cast<cuda::Function>(number);  // NOLINT: never dereferenced
    return cuda::Result::Success;
  };
  api->func_get_attribute = [](int* value, cuda::FunctionAttribute, cuda::Function) {
    return *value = 8192, cuda::Result::Success;
  };
  api->func_set_attribute = [](cuda::Function, cuda::FunctionAttribute, int value) {
    recorded().granted.push_back(value);
    return cuda::Result::Success;
  };
  api->module_get_global = [](cuda::DevicePtr* address, std::size_t* bytes, cuda::Module, const char*) {
    *address = kVariable;
    return *bytes = 16 << 10, cuda::Result::Success;
  };
  api->memcpy_dtod_async = [](cuda::DevicePtr to, cuda::DevicePtr from, std::size_t bytes, cuda::Stream) {
    if (recorded().launching) {
      recorded().copies.push_back({to, from, bytes, recorded().launches.size()});
    }
    return cuda::Result::Success;
  };
  api->tensor_map_encode_tiled = record_map;
  api->stream_is_capturing = [](cuda::Stream, int* status) {
    return *status = recorded().capturing ? 1 : 0, cuda::Result::Success;
  };
  api->launch_kernel = record_launch;
  api->launch_kernel_ex = record_launch_ex;
  api->get_error_name = [](cuda::Result, const char** text) { return *text = "NAME", cuda::Result::Success; };
  api->get_error_string = api->get_error_name;
  return api;
}

}  // namespace

Recorded& recorded() {
  static Recorded instance;
  return instance;
}

std::shared_ptr<const Rule> sample_rule(PlanTemplate plan, std::vector<Problem> own_records) {
  return std::make_shared<const Rule>(RuleParts{"scale",
                                                rows_problem(1024),
                                                sample_configuration(),
                                                {{"N", 257, 2000}},
                                                std::move(own_records),
                                                std::move(plan),
                                                {132, 232448, 0, 90}});
}

Problem rows_problem(std::int64_t n) { return {{{"N", n}, {"D", 4096}}, {{"T", DType::F16}}, {}, ""}; }

std::shared_ptr<const Rule> bound_rule(std::vector<Problem> own_records) {
  return sample_rule(sample_template(), std::move(own_records));
}

std::shared_ptr<const Rule> rule_with_attributes() {
  PlanTemplate plan = sample_template();
  plan.launches[0].cluster = {"VECTOR", "1"};
  plan.launches[0].attributes = {true, true, -3};
  return sample_rule(std::move(plan));
}

std::shared_ptr<const Rule> rule_with_tensor_maps() {
  PlanTemplate plan = sample_template();
  for (LaunchTemplate& launch : plan.launches) {
    ParameterTemplate& mapped = launch.parameters[0];
    mapped.source = ParameterSource::TensorMap;
    mapped.tensor_map = {.argument = mapped.name + "_map",
                         .type = TensorMapType::F16,
                         .sizes = {"D", "N"},
                         .box = {"16 * VECTOR", "8"},
                         .modes = {"128", "0", "256"}};
  }
  return sample_rule(std::move(plan));
}

std::shared_ptr<const Rule> rule_with_strides() {
  PlanTemplate plan = rule_with_tensor_maps()->program().plan_template();
  std::vector<ParameterTemplate>& parameters = plan.launches[0].parameters;
  std::ranges::find(parameters, "alpha", &ParameterTemplate::name)->type = DType::I32;
  parameters[0].tensor_map.strides = {"(caller.alpha ? caller.alpha : D) * sizeof(T)"};
  return sample_rule(std::move(plan));
}

std::shared_ptr<const Rule> rule_with_variables() {
  PlanTemplate plan = sample_template();
  std::vector<ParameterTemplate>& parameters = plan.launches[1].parameters;
  parameters.insert(
      parameters.begin(),
      {{"filter", ParameterSource::Symbol, DType::F32, Role::In, "4*N", 16, "", {}, "d_filter", "d_filter"},
       {"counter",
        ParameterSource::Symbol,
        DType::I32,
        Role::Scratch,
        "1",
        16,
        "",
        {},
        "counter",
        "counter"}});
  return sample_rule(std::move(plan));
}

BoundKernel bound_sample(std::shared_ptr<const Rule> rule) {
  auto module =
      std::make_shared<CubinModule>(recording_driver(), "cubin", BoundKernel::symbols(*rule), "scale");
  return {std::move(rule), std::move(module)};
}

BoundValues bound_values() {
  return {cuda::DevicePtr{0x1000}, cuda::DevicePtr{0x2000}, 0.5, cuda::DevicePtr{0x3000}};
}

}  // namespace cubind::test
