#include "python/extension/kernel_types.hpp"

#include <array>
#include <optional>
#include <vector>

#include "client/bound_kernel.hpp"
#include "client/reply_check.hpp"
#include "client/rule.hpp"
#include "cuda_api/driver_api.hpp"
#include "python/extension/argument_value.hpp"
#include "python/extension/boxed.hpp"
#include "python/extension/launcher.hpp"
#include "python/extension/plan_object.hpp"

namespace cubind::python {
namespace {

using RulePointer = std::shared_ptr<const Rule>;

PyTypeObject* rule_type = nullptr;
PyTypeObject* kernel_type = nullptr;

// A call's dims without memory of their own.
struct Dims {
  std::array<std::int64_t, RuleValues::kCapacity> values;
  std::size_t count = 0;

  explicit Dims(PyObject* tuple) {
    if (PyTuple_Check(tuple) == 0 || PyTuple_Size(tuple) > static_cast<Py_ssize_t>(values.size())) {
      raise(PyExc_TypeError, "dims: expected a tuple of ints in the order of the kernel's dims");
    }
    count = static_cast<std::size_t>(PyTuple_Size(tuple));
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = integer_of(PyTuple_GetItem(tuple, static_cast<Py_ssize_t>(i)));
    }
  }
  std::span<const std::int64_t> span() const { return std::span(values).first(count); }
};

void expect_count(Py_ssize_t count, Py_ssize_t least, const char* signature) {
  if (count < least) {
    raise(PyExc_TypeError, std::string("expected ") + signature);
  }
}

int init_rule(PyObject* self, PyObject* arguments, PyObject*) {
  return init_boxed<RulePointer>(self, [&] {
    const char* reply = nullptr;
    Py_ssize_t size = 0;
    parse(arguments, "y#", &reply, &size);
    return std::make_shared<const Rule>(read_told({reply, static_cast<std::size_t>(size)}).rule);
  });
}

PyObject* rule_covers(PyObject* self, PyObject* dims) {
  return guarded([&] {
    RuleValues values;
    return Object::share(unbox<RulePointer>(self)->evaluate(Dims(dims).span(), values) ? Py_True : Py_False);
  });
}

PyObject* rule_plan(PyObject* self, PyObject* dims) {
  return guarded([&] {
    const Rule& rule = *unbox<RulePointer>(self);
    RuleValues values;
    if (!rule.evaluate(Dims(dims).span(), values)) {
      return Object::share(Py_None);
    }
    return plan_object(rule.program().plan(values.span()));
  });
}

PyObject* rule_violation(PyObject* self, PyObject*) {
  return guarded([&] { return text(unbox<RulePointer>(self)->violation()); });
}

BoundKernel load(const RulePointer& rule, const std::string& cubin, const BoundKernel* same_cubin) {
  const std::vector<std::string> symbols = BoundKernel::symbols(*rule);
  if (same_cubin != nullptr && same_cubin->module()->has_functions(symbols)) {
    return {rule, same_cubin->module()};
  }
  const WithoutGil others_run;
  return {rule, std::make_shared<CubinModule>(cuda::load_driver(), cubin, symbols, rule->kernel())};
}

int init_kernel(PyObject* self, PyObject* arguments, PyObject*) {
  return init_boxed<BoundKernel>(self, [&] {
    PyObject *rule = nullptr, *same_cubin = Py_None;
    const char* cubin = nullptr;
    Py_ssize_t size = 0;
    parse(arguments, "Oy#|O", &rule, &cubin, &size, &same_cubin);
    return load(unbox<RulePointer>(rule, rule_type, "Rule"), {cubin, static_cast<std::size_t>(size)},
                same_cubin == Py_None ? nullptr : &bound_kernel(same_cubin));
  });
}

PyObject* kernel_parameters(PyObject* self, PyObject*) {
  return guarded([&] {
    const std::vector<Parameter>& parameters = unbox<BoundKernel>(self).arguments();
    return tuple_of(parameters.size(), [&](std::size_t i) {
      const Parameter& from = parameters[i];
      return Object::take(Py_BuildValue("(ssss)", from.name.c_str(), name_of(from.source),
                                        std::string(to_string(from.type)).c_str(), name_of(from.role)));
    });
  });
}

PyObject* kernel_extents(PyObject* self, PyObject* dims) {
  return guarded([&] {
    const BoundKernel& kernel = unbox<BoundKernel>(self);
    std::array<std::uint64_t, BoundKernel::kMaxParameters> extents;
    if (!kernel.extents(Dims(dims).span(), extents)) {
      return Object::share(Py_None);
    }
    return tuple_of(kernel.arguments().size(),
                    [&](std::size_t i) { return Object::take(PyLong_FromUnsignedLongLong(extents[i])); });
  });
}

PyObject* kernel_launch(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return guarded([&] {
    expect_count(count, 2, "launch(dims, stream, *arguments)");
    const BoundKernel& kernel = unbox<BoundKernel>(self);
    const std::vector<Parameter>& parameters = kernel.arguments();
    const auto passed = static_cast<std::size_t>(count - 2);
    if (passed != parameters.size()) {
      raise(PyExc_TypeError, kernel.rule().kernel() + " takes " + std::to_string(parameters.size()) +
                                 " arguments, " + std::to_string(passed) + " were given");
    }
    std::array<ArgumentValue, BoundKernel::kMaxParameters> values;
    for (std::size_t i = 0; i < passed; ++i) {
      values[i] = argument_value(given[i + 2], parameters[i]);
    }
    const cuda::Stream stream = stream_at(given[1]);
    return Object::share(
        kernel.launch(Dims(given[0]).span(), std::span(values).first(passed), stream) ? Py_True : Py_False);
  });
}

PyObject* kernel_prepare(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return guarded([&] {
    expect_count(count, 4, "prepare(dims, arguments, stream, device)");
    const BoundKernel& kernel = unbox<BoundKernel>(self);
    std::optional<PreparedLaunch> launch = kernel.prepare(Dims(given[0]).span());
    return launch ? make_launcher(std::move(*launch), kernel, given[1], given[2], given[3])
                  : Object::share(Py_None);
  });
}

}  // namespace

const BoundKernel& bound_kernel(PyObject* kernel) {
  return unbox<BoundKernel>(kernel, kernel_type, "Kernel");
}

void add_kernel_types(PyObject* module) {
  static PyMethodDef rule_methods[] = {
      {"covers", rule_covers, METH_O, "covers(dims): whether the rule answers for these values of the dims."},
      {"plan", rule_plan, METH_O, "plan(dims): the launches, None where the rule does not cover the dims."},
      {"violation", rule_violation, METH_NOARGS,
       "violation(): why the asked problem has no plan; empty: it has."},
      {nullptr, nullptr, 0, nullptr}};
  static PyMethodDef kernel_methods[] = {
      {"parameters", kernel_parameters, METH_NOARGS,
       "parameters(): (name, source, type, role) of what launch() takes, in its order."},
      {"extents", kernel_extents, METH_O,
       "extents(dims): bytes of each parameter, 0 for a scalar; None where the rule does not cover the "
       "dims."},
      {"launch", as_method(kernel_launch), METH_FASTCALL,
       "launch(dims, stream, *arguments): False where the rule does not cover the dims."},
      {"prepare", as_method(kernel_prepare), METH_FASTCALL,
       "prepare(dims, arguments, stream, device): a callable that launches; None where the rule does not "
       "cover the dims."},
      {nullptr, nullptr, 0, nullptr}};
  rule_type = boxed_type<RulePointer>(module, "cubind._core.Rule", rule_methods, init_rule,
                                      "Rule(reply): of the bytes of a v1.GetVariantReply");
  kernel_type = boxed_type<BoundKernel>(module, "cubind._core.Kernel", kernel_methods, init_kernel,
                                        "Kernel(rule, cubin, same_cubin=None): a cubin in the current CUDA "
                                        "context, or where another kernel has it");
}

}  // namespace cubind::python
