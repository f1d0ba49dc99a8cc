#include "python/extension/operator_types.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "python/extension/argument_value.hpp"
#include "python/extension/boxed.hpp"
#include "python/extension/kernel_types.hpp"
#include "python/extension/operator_call.hpp"

namespace cubind::python {
namespace {

using TorchPointer = std::shared_ptr<const TorchAccess>;

PyTypeObject* torch_type = nullptr;
PyTypeObject* operator_type = nullptr;

// A call, and what autograd has to know of it. No cycle leads through it that Python's collector would have
// to see: the operators live as long as their modules.
struct Operator {
  OperatorCall call;
  // From a tuple of constants and numbers to the apply() of an autograd.Function.
  Object differentiated = {};
  std::vector<std::size_t> saved = {};  // of the inputs and outputs
  Object also = {};                     // an OperatorCall that has to have a kernel too, or null
  Object constants;                     // a tuple
  std::size_t returned = 1;             // the outputs that direct() gives, with gradients
  Object to_save = interned("to_save");

  // By the numbers of a call, which are seldom others in the next one: ctx need not keep them.
  struct Applied {
    std::vector<ArgumentValue> numbers;
    Object apply;
  };
  std::vector<Applied> applied = {};
};
constexpr std::size_t kMaxApplied = 16;

// What the Function's forward() is to return, on its way there through Python.
class Computed {
 public:
  Computed(const Operator& op, const OperatorCall::Outputs& outputs)
      : operator_(&op), outputs_(&outputs), before_(std::exchange(latest, this)) {}
  Computed(const Computed&) = delete;
  Computed& operator=(const Computed&) = delete;
  ~Computed() { latest = before_; }

  // Throws PythonError where this thread is not in a call of that operator.
  static const OperatorCall::Outputs& of(const Operator& op) {
    if (latest == nullptr || latest->operator_ != &op) {
      raise(PyExc_TypeError, "only direct() may call forward()");
    }
    return *latest->outputs_;
  }

 private:
  static thread_local constinit const Computed* latest;

  const Operator* operator_;
  const OperatorCall::Outputs* outputs_;
  const Computed* before_;
};

thread_local constinit const Computed* Computed::latest = nullptr;

std::vector<std::string> texts_of(PyObject* sequence) { return each_of(sequence, text_of); }

template <typename Number>
std::vector<Number> numbers_of(PyObject* sequence) {
  return each_of(sequence, [](PyObject* item) { return static_cast<Number>(integer_of(item)); });
}

int init_torch(PyObject* self, PyObject* arguments, PyObject*) {
  return init_boxed<TorchPointer>(self, [&] {
    PyObject* fields = nullptr;
    parse(arguments, "O", &fields);
    return std::make_shared<const TorchAccess>(fields);
  });
}

int init_operator(PyObject* self, PyObject* arguments, PyObject*) {
  return init_boxed<Operator>(self, [&] {
    PyObject *torch = nullptr, *dims = nullptr, *inputs = nullptr, *outputs = nullptr, *known = nullptr;
    PyObject *constants = nullptr, *fixed = nullptr;
    Py_ssize_t numbers = 0, returned = 0;
    parse(arguments, "OOOOOnO!nO", &torch, &dims, &inputs, &outputs, &known, &numbers, &PyTuple_Type,
          &constants, &returned, &fixed);
    const OperatorLayout layout{texts_of(dims),
                                texts_of(inputs),
                                texts_of(outputs),
                                texts_of(known),
                                static_cast<std::size_t>(numbers),
                                numbers_of<std::int64_t>(fixed)};
    OperatorCall call(torch_access(torch), layout);
    if (returned < 0 || static_cast<std::size_t>(returned) > call.outputs()) {
      throw Error(ErrorCode::InvalidArgument, "returned", "there are not as many outputs");
    }
    return Operator{.call = std::move(call),
                    .constants = Object::share(constants),
                    .returned = static_cast<std::size_t>(returned)};
  });
}

std::vector<OperatorCall::Variant> variants_of(PyObject* triples) {
  return each_of(triples, [](PyObject* triple) {
    PyObject *kernel = nullptr, *order = nullptr;
    int yields = 0;
    parse(triple, "OOp", &kernel, &order, &yields);
    return OperatorCall::Variant{bound_kernel(kernel), numbers_of<int>(order), yields == 1};
  });
}

DType dtype_named(const char* name) {
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype) {
    throw Error(ErrorCode::InvalidArgument, name, "is no type");
  }
  return *dtype;
}

PyObject* operator_know(PyObject* self, PyObject* arguments) {
  return guarded([&] {
    PyObject *known = nullptr, *variants = nullptr;
    const char* type = nullptr;
    int device = 0;
    parse(arguments, "siOO", &type, &device, &known, &variants);
    unbox<Operator>(self).call.know(dtype_named(type), device, numbers_of<std::int64_t>(known),
                                    variants_of(variants));
    return Object::share(Py_None);
  });
}

PyObject* operator_forget(PyObject* self, PyObject* arguments) {
  return guarded([&] {
    PyObject* known = nullptr;
    const char* type = nullptr;
    int device = 0;
    parse(arguments, "siO", &type, &device, &known);
    unbox<Operator>(self).call.forget(dtype_named(type), device, numbers_of<std::int64_t>(known));
    return Object::share(Py_None);
  });
}

PyObject* operator_counts(PyObject* self, PyObject*) {
  return guarded([&] {
    const OperatorCall& call = unbox<Operator>(self).call;
    return Object::take(Py_BuildValue("KK", static_cast<unsigned long long>(call.launched()),
                                      static_cast<unsigned long long>(call.missing())));
  });
}

PyObject* operator_clear(PyObject* self, PyObject*) {
  return guarded([&] {
    unbox<Operator>(self).call.clear();
    return Object::share(Py_None);
  });
}

PyObject* operator_differentiate(PyObject* self, PyObject* arguments) {
  return guarded([&] {
    PyObject *differentiated = nullptr, *saved = nullptr, *also = nullptr;
    parse(arguments, "OOO", &differentiated, &saved, &also);
    Operator& op = unbox<Operator>(self);
    op.saved = numbers_of<std::size_t>(saved);
    if (std::ranges::any_of(op.saved,
                            [&](std::size_t i) { return i >= op.call.inputs() + op.call.outputs(); })) {
      throw Error(ErrorCode::InvalidArgument, "saved", "there are not as many inputs and outputs");
    }
    if (also != Py_None) {
      unbox<Operator>(also, operator_type, "OperatorCall");
    }
    op.also = also == Py_None ? Object() : Object::share(also);
    op.differentiated = Object::share(differentiated);
    op.applied.clear();
    return Object::share(Py_None);
  });
}

// A missing one is None.
Object first_of(const OperatorCall::Outputs& outputs, std::size_t count) {
  return tuple_of(count, [&](std::size_t i) {
    return i < outputs.size() && outputs[i] ? outputs[i] : Object::share(Py_None);
  });
}

Object one_or_tuple(const OperatorCall::Outputs& outputs, std::size_t count) {
  return count == 1 ? outputs[0] : first_of(outputs, count);
}

using Outcome = OperatorCall::Outcome;

// NotImplemented is a promise: without another look, torch's own takes its place.
Object not_launched(const OperatorCall& call, Outcome outcome) {
  if (outcome != Outcome::Missing) {
    return Object::share(Py_None);
  }
  call.count_missing();
  return Object::share(Py_NotImplemented);
}

PyObject* operator_launch(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return guarded([&] {
    const OperatorCall& call = unbox<Operator>(self).call;
    OperatorCall::Outputs outputs;
    const Outcome outcome = call.launch({given, static_cast<std::size_t>(count)}, {}, outputs);
    return outcome == Outcome::Launched ? one_or_tuple(outputs, call.outputs()) : not_launched(call, outcome);
  });
}

bool are_plain(const TorchAccess& torch, std::span<PyObject* const> tensors) {
  return std::ranges::all_of(tensors, [&](PyObject* tensor) { return torch.is_plain(tensor); });
}

// As a call of cubind.Kernel, which has no torch's function that could take its place.
PyObject* operator_launch_on(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return guarded([&] {
    const OperatorCall& call = unbox<Operator>(self).call;
    if (count != static_cast<Py_ssize_t>(call.arguments()) + 1 ||
        !are_plain(call.torch(), {given + 1, call.inputs()}) || !call.torch().is_quiet()) {
      return Object::share(Py_NotImplemented);
    }
    OperatorCall::Options options;
    if (given[0] != Py_None) {
      options.stream = stream_at(given[0]);
    }
    OperatorCall::Outputs outputs;
    if (call.launch({given + 1, call.arguments()}, options, outputs) != Outcome::Launched) {
      return Object::share(Py_NotImplemented);
    }
    return call.outputs() == 0 ? Object::share(Py_None) : one_or_tuple(outputs, call.outputs());
  });
}

PyObject* operator_problem(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return guarded([&] {
    const OperatorCall& call = unbox<Operator>(self).call;
    const auto need = call.need({given, static_cast<std::size_t>(count)});
    if (!need) {
      return Object::share(Py_None);
    }
    return Object::take(Py_BuildValue("OiNN", call.torch().dtype(need->type).get(), need->device,
                                      tuple_of(need->known).release(), tuple_of(need->dims).release()));
  });
}

// The one int of a tuple or list, absent for anything else.
std::optional<std::int64_t> only_size(PyObject* sizes) {
  PyObject* only = nullptr;  // borrowed
  if (PyTuple_Check(sizes) != 0 && PyTuple_Size(sizes) == 1) {
    only = PyTuple_GetItem(sizes, 0);
  } else if (PyList_Check(sizes) != 0 && PyList_Size(sizes) == 1) {
    only = PyList_GetItem(sizes, 0);
  }
  int overflow = 0;
  if (only == nullptr || PyLong_Check(only) == 0) {
    return std::nullopt;
  }
  const long long value = PyLong_AsLongLongAndOverflow(only, &overflow);
  return overflow == 0 ? std::optional<std::int64_t>(value) : std::nullopt;
}

Object other_values(const Operator& op, std::span<PyObject* const> numbers) {
  const std::size_t constants = size_of(op.constants.get());
  return tuple_of(constants + numbers.size(), [&](std::size_t i) {
    return Object::share(i < constants ? PyTuple_GetItem(op.constants.get(), static_cast<Py_ssize_t>(i))
                                       : numbers[i - constants]);
  });
}

Object apply_for(Operator& op, std::span<PyObject* const> numbers) {
  std::vector<ArgumentValue> values;
  std::ranges::transform(numbers, std::back_inserter(values), number_of);
  const auto found = std::ranges::find(op.applied, values, &Operator::Applied::numbers);
  if (found != op.applied.end()) {
    return found->apply;
  }
  const Object others = other_values(op, numbers);
  Object apply = Object::take(PyObject_CallFunctionObjArgs(op.differentiated.get(), others.get(), nullptr));
  if (op.applied.size() == kMaxApplied) {
    op.applied.clear();
  }
  return op.applied.emplace_back(std::move(values), std::move(apply)).apply;
}

Object with_gradients(Operator& op, std::span<PyObject* const> given, const OperatorCall::Outputs& outputs) {
  const std::size_t tensors = op.call.inputs();
  const Object apply = apply_for(op, given.subspan(tensors));
  const Object arguments = tuple_of(tensors, [&](std::size_t i) { return Object::share(given[i]); });
  const Computed computed(op, outputs);
  return Object::take(PyObject_Call(apply.get(), arguments.get(), nullptr));
}

PyObject* operator_direct(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return guarded([&]() -> Object {
    Operator& op = unbox<Operator>(self);
    const TorchAccess& torch = op.call.torch();
    if (op.call.is_empty() || !torch.is_fast() || count != static_cast<Py_ssize_t>(op.call.arguments()) + 1) {
      return Object::share(Py_None);
    }
    const std::span<PyObject* const> arguments(given + 1, op.call.arguments());
    const std::span<PyObject* const> tensors = arguments.first(op.call.inputs());
    OperatorCall::Options options;
    options.last = only_size(given[0]);
    if ((given[0] != Py_None && !options.last) || !are_plain(torch, tensors)) {
      return Object::share(Py_None);
    }
    bool needs_gradients = false;
    const auto is_direct = [&](const OperatorCall::Problem& problem) {
      if (!torch.is_quiet()) {
        return false;
      }
      needs_gradients = torch.needs_gradients(tensors);
      return !needs_gradients ||
             (op.differentiated && (!op.also || unbox<Operator>(op.also.get()).call.is_known(problem)));
    };
    options.condition = std::ref(is_direct);
    OperatorCall::Outputs outputs;
    const Outcome outcome = op.call.launch(arguments, options, outputs);
    if (outcome != Outcome::Launched) {
      return not_launched(op.call, outcome);
    }
    return needs_gradients ? with_gradients(op, arguments, outputs) : one_or_tuple(outputs, op.returned);
  });
}

Object saved_tensors(const Operator& op, PyObject* const* inputs, const OperatorCall::Outputs& outputs) {
  return tuple_of(op.saved.size(), [&](std::size_t i) {
    const std::size_t number = op.saved[i], inputs_count = op.call.inputs();
    return number < inputs_count ? Object::share(inputs[number]) : outputs[number - inputs_count];
  });
}

// ctx.to_save is what ctx.save_for_backward() sets, in Python.
PyObject* operator_forward(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return guarded([&] {
    const Operator& op = unbox<Operator>(self);
    if (count != static_cast<Py_ssize_t>(op.call.inputs()) + 1) {
      raise(PyExc_TypeError, "expected forward(ctx, *tensors)");
    }
    const OperatorCall::Outputs& outputs = Computed::of(op);
    const Object saved = saved_tensors(op, given + 1, outputs);
    if (PyObject_SetAttr(given[0], op.to_save.get(), saved.get()) != 0) {
      throw PythonError();
    }
    return one_or_tuple(outputs, op.returned);
  });
}

// The outputs are the gradients of the first tensors. Torch's function, where it takes their place, is called
// and counted by the longer way.
PyObject* operator_gradients(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return guarded([&]() -> Object {
    const OperatorCall& call = unbox<Operator>(self).call;
    const TorchAccess& torch = call.torch();
    if (call.is_empty() || !torch.is_fast() || count != static_cast<Py_ssize_t>(call.arguments()) + 1 ||
        size_of(given[0]) < call.outputs()) {
      return Object::share(Py_None);
    }
    const std::span<PyObject* const> arguments(given + 1, call.arguments());
    OperatorCall::Outputs outputs;
    if (torch.records_gradients() || !are_plain(torch, arguments.first(call.inputs())) || !torch.is_quiet() ||
        call.launch(arguments, {}, outputs) != Outcome::Launched) {
      return Object::share(Py_None);
    }
    for (std::size_t i = 0; i < call.outputs(); ++i) {
      const Object needed = Object::take(PySequence_GetItem(given[0], static_cast<Py_ssize_t>(i)));
      if (needed.get() != Py_True) {
        outputs[i] = Object();
      }
    }
    return first_of(outputs, size_of(given[0]));
  });
}

PyObject* torch_is_quiet(PyObject* self, PyObject*) {
  return guarded([&] { return Object::share(unbox<TorchPointer>(self)->is_quiet() ? Py_True : Py_False); });
}

}  // namespace

std::shared_ptr<const TorchAccess> torch_access(PyObject* torch) {
  return unbox<TorchPointer>(torch, torch_type, "Torch");
}

void add_operator_types(PyObject* module) {
  static PyMethodDef torch_methods[] = {
      {"is_quiet", torch_is_quiet, METH_NOARGS,
       "is_quiet(): whether no autocast, dispatch mode, transform or tracer is active."},
      {nullptr, nullptr, 0, nullptr}};
  static PyMethodDef methods[] = {
      {"know", operator_know, METH_VARARGS,
       "know(type, device, known, variants): sets the (kernel, order, yields) of these tensors; none of "
       "them: "
       "there is no kernel. yields: nor is there one for the problems that this kernel covers."},
      {"forget", operator_forget, METH_VARARGS, "forget(type, device, known): undoes know()."},
      {"counts", operator_counts, METH_NOARGS, "counts(): (launches, calls that found no kernel)."},
      {"clear", operator_clear, METH_NOARGS, "clear(): no variant is known any more."},
      {"differentiate", operator_differentiate, METH_VARARGS,
       "differentiate(differentiated, saved, also): where gradients are needed direct() calls "
       "differentiated(others)(*tensors). others: the constants and numbers. saved: numbers of tensors. "
       "also: an OperatorCall that has to have a kernel then, or None."},
      {"launch", as_method(operator_launch), METH_FASTCALL,
       "launch(*arguments): the output, or a tuple of them; NotImplemented if there is no kernel; None if "
       "the fast path does not apply."},
      {"launch_on", as_method(operator_launch_on), METH_FASTCALL,
       "launch_on(stream, *arguments): the same, None without outputs; NotImplemented: nothing was launched. "
       "stream: None for the current one."},
      {"problem", as_method(operator_problem), METH_FASTCALL,
       "problem(*tensors): (dtype, device, known, dims) of the kernel for them, however they lie in memory; "
       "None if they do not fit."},
      {"direct", as_method(operator_direct), METH_FASTCALL,
       "direct(sizes, *arguments): the returned outputs, with gradients; NotImplemented and None as "
       "launch(), "
       "None also if a tensor is not plain or a dispatch mode is active. sizes: a sequence that has to be "
       "that of the last dim, or None."},
      {"forward", as_method(operator_forward), METH_FASTCALL,
       "forward(ctx, *tensors): that of direct()'s autograd.Function."},
      {"gradients", as_method(operator_gradients), METH_FASTCALL,
       "gradients(needed, *arguments): the outputs, in a tuple as long as `needed`, with None for those that "
       "are not needed. None: "
       "not launched, for a reason of direct()'s, or since gradients are recorded here too."},
      {nullptr, nullptr, 0, nullptr}};
  torch_type = boxed_type<TorchPointer>(module, "cubind._core.Torch", torch_methods, init_torch,
                                        "Torch(fields): what operators ask torch for");
  operator_type = boxed_type<Operator>(
      module, "cubind._core.OperatorCall", methods, init_operator,
      "OperatorCall(torch, dims, inputs, outputs, known, numbers, constants, returned, fixed)");
}

}  // namespace cubind::python
