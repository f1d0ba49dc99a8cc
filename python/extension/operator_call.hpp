// A kernel as an operator of PyTorch calls it: from tensors to a launch without a line of Python.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/bound_kernel.hpp"
#include "python/extension/shape_pattern.hpp"
#include "python/extension/torch_access.hpp"

namespace cubind::python {

/// The names of the dims as the kernel has them; shape patterns; how many numbers follow the tensors.
struct OperatorLayout {
  std::vector<std::string> dims;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> known;  // the dims by which variants are told apart
  std::size_t numbers = 0;
  std::vector<std::int64_t> fixed = {};  // the dims, kUnknown for those that tensors have; empty: all
};

/// Empty for what is no int and no float of Python.
ArgumentValue number_of(PyObject* object);

/// Variants that are known, and their launches. The numbers of an operator's values: its inputs, its outputs,
/// its numbers, the strides of the inputs with the word rows, in this order. Used with the GIL held.
class OperatorCall {
 public:
  static constexpr std::size_t kMaxDims = 8, kMaxOutputs = 8, kMaxValues = 32;
  using Outputs = std::array<Object, kMaxOutputs>;  // as many as outputs() are set

  /// Throws Error(InvalidArgument) for a name that is no dim, Error(ResourceExhausted) for too many of
  /// anything.
  OperatorCall(std::shared_ptr<const TorchAccess> torch, const OperatorLayout& layout);

  std::size_t inputs() const { return inputs_.size(); }
  std::size_t outputs() const { return outputs_.size(); }
  std::size_t arguments() const { return inputs_.size() + numbers_; }
  const TorchAccess& torch() const { return *torch_; }

  static constexpr int kScratch = -1, kNothing = -2;  // memory for one launch; a buffer without elements

  struct Variant {
    BoundKernel kernel;
    std::vector<int> order;  // the value of each of the kernel's arguments, or one of these
    bool yields = false;     // torch's function is faster: the problems that this covers have no variant
  };

  /// Sets the variants for tensors of this type on this GPU (-1: the CPU) with these values of the known
  /// dims; they are tried in their order. An empty list says that there is none, so that a call need not look
  /// for one. Throws Error(InvalidArgument) if a variant does not fit.
  void know(DType type, int device, std::span<const std::int64_t> known, std::vector<Variant> variants);
  /// Undoes know(): whether there is a variant is not known any more.
  void forget(DType type, int device, std::span<const std::int64_t> known);
  void clear() { variants_.clear(); }
  bool is_empty() const { return variants_.empty(); }

  enum class Outcome {
    Launched,
    Missing,  // know() said that there is no variant, or the one that covers the problem yields
    // No know(); or a tensor does not lie as its pattern says, has no elements or does not fit the others, a
    // number is none, or an address is not aligned.
    NotSimple,
  };

  /// What a call is about. Only is_known() of an operator with the same dims takes one.
  struct Problem;
  using Condition = std::function<bool(const Problem&)>;

  struct Options {
    std::optional<std::int64_t> last = {};  // the value that the last dim has to have
    Condition condition = {};               // asked unless the outcome is Missing; false is NotSimple
    std::optional<cuda::Stream> stream = {};
  };

  /// Allocates the outputs and launches; without a stream on the current one of the tensors' GPU. Unless the
  /// outcome is Launched, nothing was launched.
  Outcome launch(std::span<PyObject* const> arguments, const Options& options, Outputs& outputs) const;

  /// Whether there are variants for the problem's values of the known dims, of which none yields.
  bool is_known(const Problem& problem) const;

  struct Need {
    DType type;
    int device;
    std::vector<std::int64_t> known, dims;
  };
  /// What variant these tensors need, however they lie in memory. Absent for tensors that do not fit.
  std::optional<Need> need(std::span<PyObject* const> tensors) const;

  /// Torch's function takes the place of a call.
  void count_missing() const { ++missing_; }
  std::uint64_t launched() const { return launched_; }
  std::uint64_t missing() const { return missing_; }

 private:
  using Dims = std::array<std::int64_t, kMaxDims>;
  struct Key {
    DType type;
    int device;
    Dims known;
    auto operator<=>(const Key&) const = default;
  };
  // One tensor for all scratch memory of a launch.
  struct Scratch {
    Dims dims;
    std::array<std::optional<std::uint64_t>, kMaxValues> offsets;  // by the kernel's arguments; absent: empty
    TorchAccess::Form bytes;
  };
  // A variant, and its launch for the dims of its last call: they are seldom others in the next one.
  struct Known {
    Variant variant;
    mutable Dims dims{};
    mutable std::optional<PreparedLaunch> launch = {};
    mutable std::optional<Dims> asked = {};  // the dims that `covered` is about
    mutable bool covered = false;
    mutable std::optional<Scratch> scratch = {};  // of its last dims

    bool covers(const Dims& now, std::size_t count) const;
    // Null if the variant does not cover the dims, or needs a buffer that is not given; valid until the next
    // call.
    const Scratch* scratch_for(const Dims& now, std::size_t count, const TorchAccess& torch) const;
    bool run(const Dims& now, std::size_t count, std::span<const ArgumentValue> values,
             cuda::Stream stream) const;
  };
  using Variants = std::vector<Known>;

  /// Whether the variants say that torch's function is to be called.
  bool are_missing(const Variants& variants, const Problem& problem) const;
  Key key_of(DType type, int device, std::span<const std::int64_t> known) const;
  bool run_any(const Variants& variants, std::span<PyObject* const> arguments, const Options& options,
               Problem& problem, Outputs& outputs) const;
  bool read(std::span<PyObject* const> arguments, Problem& problem) const;
  bool read_tensors(std::span<PyObject* const> tensors, bool in_order, Problem& problem) const;
  bool read_tensor(PyObject* tensor, std::size_t number, bool in_order, Problem& problem) const;
  bool is_in_order(PyObject* tensor, const ShapePattern& pattern, const Problem& problem) const;
  void check_order(const ShapePattern& pattern) const;
  std::size_t values() const { return inputs_.size() + outputs_.size() + numbers_ + strides_; }
  std::shared_ptr<const Variants> find(const Problem& problem) const;
  bool allocate(std::span<PyObject* const> arguments, Problem& problem, Outputs& outputs) const;
  std::vector<std::int64_t> shape_of_output(std::size_t number, std::span<PyObject* const> arguments,
                                            const Problem& problem) const;
  void check(const Variant& variant) const;
  bool run(const Known& known, PyObject* like, const Problem& problem, cuda::Stream stream) const;

  std::shared_ptr<const TorchAccess> torch_;
  std::size_t dims_, numbers_, strides_;
  std::vector<ShapePattern> inputs_, outputs_;
  std::vector<std::optional<std::size_t>> stars_;  // of each output, the input whose leading sizes it has
  Dims fixed_{};
  std::vector<std::size_t> known_;                              // numbers of dims
  mutable std::array<TorchAccess::Form, kMaxOutputs> forms_{};  // of the outputs of the last call
  std::map<Key, std::shared_ptr<const Variants>> variants_;
  mutable std::uint64_t launched_ = 0, missing_ = 0;
};

}  // namespace cubind::python
