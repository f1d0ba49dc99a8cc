#include "python/extension/operator_call.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cubind::python {
namespace {

std::vector<ShapePattern> patterns(const std::vector<std::string>& texts, std::span<const std::string> dims) {
  std::vector<ShapePattern> all;
  std::ranges::transform(texts, std::back_inserter(all),
                         [&](const std::string& text) { return ShapePattern(text, dims); });
  return all;
}

}  // namespace

ArgumentValue number_of(PyObject* object) {
  if (PyFloat_Check(object) != 0) {
    return PyFloat_AsDouble(object);
  }
  int overflow = 0;
  if (PyLong_Check(object) == 0) {
    return {};
  }
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0 ? ArgumentValue(static_cast<std::int64_t>(value)) : ArgumentValue();
}

// What one call works with.
struct OperatorCall::Problem {
  DType type = DType::F32;
  int device = -1;
  Dims dims;
  bool has_type = false;
  TensorView first;    // of the inputs
  Object first_shape;  // what the view points into
  std::array<ArgumentValue, kMaxValues> values{};
  std::array<std::int64_t, kMaxValues> strides{};  // by the numbers of the inputs with the word rows
};

OperatorCall::OperatorCall(std::shared_ptr<const TorchAccess> torch, const OperatorLayout& layout)
    : torch_(std::move(torch)),
      dims_(layout.dims.size()),
      numbers_(layout.numbers),
      strides_(0),
      inputs_(patterns(layout.inputs, layout.dims)),
      outputs_(patterns(layout.outputs, layout.dims)) {
  strides_ = static_cast<std::size_t>(std::ranges::count_if(inputs_, &ShapePattern::has_row_stride));
  if (dims_ > kMaxDims || inputs_.empty() || outputs_.size() > kMaxOutputs || values() > kMaxValues) {
    throw Error(ErrorCode::ResourceExhausted, "operator", "too many dims or values, or no tensors");
  }
  std::ranges::for_each(inputs_, [this](const ShapePattern& pattern) { check_order(pattern); });
  std::ranges::for_each(outputs_, [this](const ShapePattern& pattern) { check_order(pattern); });
  std::ranges::transform(outputs_, std::back_inserter(stars_),
                         [this](const ShapePattern& pattern) { return pattern.source_of_star(inputs_); });
  fixed_.fill(ShapePattern::kUnknown);
  std::copy_n(layout.fixed.begin(), std::min(layout.fixed.size(), dims_), fixed_.begin());
  for (const std::string& name : layout.known) {
    const auto found = std::ranges::find(layout.dims, name);
    if (found == layout.dims.end()) {
      throw Error(ErrorCode::InvalidArgument, "operator", "the kernel has no dim " + name);
    }
    known_.push_back(static_cast<std::size_t>(found - layout.dims.begin()));
  }
}

void OperatorCall::check_order(const ShapePattern& pattern) const {
  const std::optional<std::size_t> as = pattern.ordered_as(), in = pattern.memory_of();
  if (as && (*as >= inputs_.size() || !inputs_[*as].has_row_stride())) {
    throw Error(ErrorCode::InvalidArgument, "operator",
                "as:" + std::to_string(*as) + " is no input with rows");
  }
  if (in && *in >= inputs_.size()) {
    throw Error(ErrorCode::InvalidArgument, "operator", "in:" + std::to_string(*in) + " is no input");
  }
}

void OperatorCall::know(DType type, int device, std::span<const std::int64_t> known,
                        std::vector<Variant> variants) {
  std::ranges::for_each(variants, [this](const Variant& variant) { check(variant); });
  Variants all;
  for (Variant& variant : variants) {
    all.push_back({std::move(variant)});
  }
  variants_.insert_or_assign(key_of(type, device, known), std::make_shared<const Variants>(std::move(all)));
}

void OperatorCall::forget(DType type, int device, std::span<const std::int64_t> known) {
  variants_.erase(key_of(type, device, known));
}

OperatorCall::Key OperatorCall::key_of(DType type, int device, std::span<const std::int64_t> known) const {
  if (known.size() != known_.size()) {
    throw Error(ErrorCode::InvalidArgument, "operator",
                "expected the values of " + std::to_string(known_.size()) + " dims");
  }
  Key key{type, device, {}};
  std::ranges::copy(known, key.known.begin());
  return key;
}

void OperatorCall::check(const Variant& variant) const {
  const int values = static_cast<int>(this->values());
  const std::vector<int>& order = variant.order;
  if (order.size() != variant.kernel.arguments().size() || order.size() > kMaxValues ||
      std::ranges::any_of(order, [values](int index) { return index < kNothing || index >= values; })) {
    throw Error(ErrorCode::InvalidArgument, variant.kernel.rule().kernel(),
                "its arguments are not those of the operator");
  }
}

OperatorCall::Outcome OperatorCall::launch(std::span<PyObject* const> arguments, const Options& options,
                                           Outputs& outputs) const {
  Problem problem;
  if (variants_.empty() || arguments.size() != this->arguments() || !read(arguments, problem) ||
      (options.last && *options.last != problem.dims[dims_ - 1])) {
    return Outcome::NotSimple;
  }
  const std::shared_ptr<const Variants> variants =
      find(problem);  // kept: Python runs while memory is allocated
  if (variants == nullptr) {
    return Outcome::NotSimple;
  }
  if (are_missing(*variants, problem)) {
    return Outcome::Missing;
  }
  if ((options.condition && !options.condition(problem)) ||
      !run_any(*variants, arguments, options, problem, outputs)) {
    return Outcome::NotSimple;
  }
  ++launched_;
  return Outcome::Launched;
}

bool OperatorCall::is_known(const Problem& problem) const {
  const std::shared_ptr<const Variants> variants = find(problem);
  return variants != nullptr && !variants->empty() &&
         std::ranges::none_of(*variants, [](const Known& known) { return known.variant.yields; });
}

std::optional<OperatorCall::Need> OperatorCall::need(std::span<PyObject* const> tensors) const {
  Problem problem;
  if (tensors.size() != inputs_.size() || !read_tensors(tensors, false, problem) ||
      (problem.type != DType::Bf16 && problem.type != DType::F16 && problem.type != DType::F32)) {
    return std::nullopt;
  }
  Need need{problem.type, problem.device, {}, {problem.dims.begin(), problem.dims.begin() + dims_}};
  std::ranges::transform(known_, std::back_inserter(need.known),
                         [&](std::size_t dim) { return problem.dims[dim]; });
  return need;
}

bool OperatorCall::are_missing(const Variants& variants, const Problem& problem) const {
  if (std::ranges::none_of(variants, [](const Known& known) { return known.variant.yields; })) {
    return variants.empty();
  }
  const auto first =
      std::ranges::find_if(variants, [&](const Known& known) { return known.covers(problem.dims, dims_); });
  return first != variants.end() && first->variant.yields;
}

bool OperatorCall::Known::covers(const Dims& now, std::size_t count) const {
  if (asked != now) {
    std::array<std::uint64_t, BoundKernel::kMaxParameters> extents;  // NOLINT: nothing reads it
    asked = now;
    covered = variant.kernel.extents(std::span(now).first(count), extents);
  }
  return covered;
}

bool OperatorCall::run_any(const Variants& variants, std::span<PyObject* const> arguments,
                           const Options& options, Problem& problem, Outputs& outputs) const {
  const std::optional<cuda::Stream> stream = options.stream ? options.stream : torch_->stream(problem.first);
  return stream && allocate(arguments, problem, outputs) &&
         std::ranges::any_of(
             variants, [&](const Known& known) { return run(known, arguments.front(), problem, *stream); });
}

bool OperatorCall::read(std::span<PyObject* const> arguments, Problem& problem) const {
  if (!read_tensors(arguments.first(inputs_.size()), true, problem)) {
    return false;
  }
  for (std::size_t i = 0; i < numbers_; ++i) {
    ArgumentValue& value = problem.values[inputs_.size() + outputs_.size() + i];
    value = number_of(arguments[inputs_.size() + i]);
    if (std::holds_alternative<std::monostate>(value)) {
      return false;
    }
  }
  std::size_t next = values() - strides_;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].has_row_stride()) {
      problem.values[next++] = problem.strides[i];
    }
  }
  return true;
}

bool OperatorCall::read_tensors(std::span<PyObject* const> tensors, bool in_order, Problem& problem) const {
  problem.dims = fixed_;
  if (!outputs_.empty()) {  // where each input has a type of its own
    problem.type = outputs_.front().type().value_or(problem.type);
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!read_tensor(tensors[i], i, in_order, problem)) {
      return false;
    }
  }
  // The order of these is that of others, which are known by now.
  for (std::size_t i = 0; in_order && strides_ > 0 && i < inputs_.size(); ++i) {
    if (inputs_[i].ordered_as() && !is_in_order(tensors[i], inputs_[i], problem)) {
      return false;
    }
  }
  return true;
}

bool OperatorCall::read_tensor(PyObject* tensor, std::size_t number, bool in_order, Problem& problem) const {
  Object keep;
  const std::optional<TensorView> view = torch_->view(tensor, keep);
  const std::optional<DType> type = view ? dtype_of(*view) : std::nullopt;
  const std::optional<int> device = view ? device_of(*view) : std::nullopt;
  if (!type || !device) {
    return false;
  }
  const ShapePattern& pattern = inputs_[number];
  if (number == 0) {
    problem.device = *device;
    problem.first = *view;
    problem.first_shape = std::move(keep);
  }
  if (!pattern.type() && !problem.has_type) {
    problem.type = *type;
    problem.has_type = true;
  }
  if (pattern.has_row_stride()) {
    const std::optional<std::int64_t> stride = row_stride(*view);
    problem.strides[number] = stride.value_or(0);
    in_order = in_order && !stride;
  }
  problem.values[number] = address_of(*view);
  return *type == pattern.type().value_or(problem.type) && *device == problem.device &&
         (!in_order || pattern.ordered_as() || is_contiguous(*view)) &&
         pattern.match(shape_of(*view), problem.dims);
}

bool OperatorCall::is_in_order(PyObject* tensor, const ShapePattern& pattern, const Problem& problem) const {
  Object keep;
  const std::optional<TensorView> view = torch_->view(tensor, keep);
  return view &&
         (problem.strides[*pattern.ordered_as()] != 0 ? is_dense_by_rows(*view) : is_contiguous(*view));
}

std::shared_ptr<const OperatorCall::Variants> OperatorCall::find(const Problem& problem) const {
  Key key{problem.type, problem.device, {}};
  std::ranges::transform(known_, key.known.begin(), [&](std::size_t dim) { return problem.dims[dim]; });
  const auto found = variants_.find(key);
  return found == variants_.end() ? nullptr : found->second;
}

bool OperatorCall::allocate(std::span<PyObject* const> arguments, Problem& problem, Outputs& outputs) const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const ShapePattern& pattern = outputs_[i];
    ArgumentValue& value = problem.values[inputs_.size() + i];
    if (const std::optional<std::size_t> in = pattern.memory_of()) {
      outputs[i] = Object::share(arguments[*in]);
      value = problem.values[*in];
      continue;
    }
    std::vector<std::int64_t> shape = shape_of_output(i, arguments, problem);
    const Object& dtype = torch_->dtype(pattern.type().value_or(problem.type));
    const std::optional<std::size_t> as = pattern.ordered_as();
    const bool by_rows = as && problem.strides[*as] != 0;
    TorchAccess::Form& form = forms_[i];
    if (form.dtype.get() != dtype.get() || form.by_rows != by_rows || form.shape != shape) {
      form = torch_->form(std::move(shape), dtype, by_rows);
    }
    std::optional<TorchAccess::Memory> made = torch_->empty(arguments.front(), problem.first, form);
    if (!made) {
      return false;
    }
    if (pattern.is_zero()) {
      torch_->clear(made->tensor);
    }
    outputs[i] = std::move(made->tensor);
    value = made->address;
  }
  return true;
}

std::vector<std::int64_t> OperatorCall::shape_of_output(std::size_t number,
                                                        std::span<PyObject* const> arguments,
                                                        const Problem& problem) const {
  const std::optional<std::size_t> source = stars_[number];
  if (!source) {
    return outputs_[number].shape(problem.dims, std::nullopt);
  }
  Object keep;
  const std::optional<TensorView> view =
      *source == 0 ? problem.first : torch_->view(arguments[*source], keep);
  return outputs_[number].shape(problem.dims, inputs_[*source].leading(shape_of(view.value())));
}

bool OperatorCall::run(const Known& known, PyObject* like, const Problem& problem,
                       cuda::Stream stream) const {
  const std::vector<int>& order = known.variant.order;
  std::array<ArgumentValue, kMaxValues> values;
  for (std::size_t i = 0; i < order.size(); ++i) {
    values[i] =
        order[i] < 0 ? ArgumentValue(cuda::DevicePtr{0}) : problem.values[static_cast<std::size_t>(order[i])];
  }
  Object scratch;  // memory that later work on the stream may have
  if (std::ranges::any_of(order, [](int index) { return index < 0; })) {
    const Scratch* needed = known.scratch_for(problem.dims, dims_, *torch_);
    if (needed == nullptr) {
      return false;
    }
    if (needed->bytes.shape.front() > 0) {
      const auto offsets = needed->offsets;  // another call may come in between, while memory is allocated
      std::optional<TorchAccess::Memory> made = torch_->empty(like, problem.first, needed->bytes);
      if (!made) {
        return false;
      }
      scratch = std::move(made->tensor);
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (offsets[i]) {
          values[i] = made->address + *offsets[i];
        }
      }
    }
  }
  try {
    return known.run(problem.dims, dims_, std::span(values).first(order.size()), stream);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::InvalidArgument) {
      return false;
    }
    throw;
  }
}

const OperatorCall::Scratch* OperatorCall::Known::scratch_for(const Dims& now, std::size_t count,
                                                              const TorchAccess& torch) const {
  if (scratch && scratch->dims == now) {
    return &*scratch;
  }
  constexpr std::uint64_t kAlignment = 256;                        // bytes: more than any kernel asks
  std::array<std::uint64_t, BoundKernel::kMaxParameters> extents;  // NOLINT: filled where it is read
  if (!variant.kernel.extents(std::span(now).first(count), extents)) {
    return nullptr;
  }
  Scratch made{now, {}, {}};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < variant.order.size(); ++i) {
    if (variant.order[i] == kNothing && extents[i] > 0) {
      return nullptr;
    }
    if (variant.order[i] < 0 && extents[i] > 0) {
      made.offsets[i] = bytes;
      bytes += (extents[i] + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  made.bytes = torch.form({static_cast<std::int64_t>(bytes)}, torch.dtype(DType::U8));
  scratch = std::move(made);
  return &*scratch;
}

bool OperatorCall::Known::run(const Dims& now, std::size_t count, std::span<const ArgumentValue> values,
                              cuda::Stream stream) const {
  if (now != dims) {
    dims = now;
    launch.reset();
    return variant.kernel.launch(std::span(now).first(count), values, stream);
  }
  if (!launch) {
    launch = variant.kernel.prepare(std::span(now).first(count));
  }
  if (!launch) {
    return false;
  }
  launch->launch(values, stream, AfterCapture::AnyBuffers);
  return true;
}

}  // namespace cubind::python
