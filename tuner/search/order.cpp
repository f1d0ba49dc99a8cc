#include "tuner/search/order.hpp"

#include <algorithm>

namespace cubind {
namespace {

class Order {
 public:
  explicit Order(const std::vector<Configuration>& valid) : valid_(valid), taken_(valid.size(), false) {}

  void take(const Configuration& configuration) {
    const auto found = std::ranges::find(valid_, configuration);
    if (found != valid_.end()) {
      take(static_cast<std::size_t>(found - valid_.begin()));
    }
  }

  void take(std::size_t index) {
    if (taken_[index]) {
      return;
    }
    taken_[index] = true;
    order_.push_back(index);
  }

  std::vector<std::size_t> take_rest() && {
    for (std::size_t i = 0; i < valid_.size(); ++i) {
      take(i);
    }
    return std::move(order_);
  }

 private:
  const std::vector<Configuration>& valid_;
  std::vector<bool> taken_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::vector<std::size_t> search_order(const std::vector<Configuration>& valid, const SearchHints& hints) {
  Order order(valid);
  if (hints.incumbent) {
    order.take(*hints.incumbent);
  }
  if (hints.preset) {
    order.take(*hints.preset);
  }
  for (const Configuration& neighbour : hints.neighbours) {
    order.take(neighbour);
  }
  return std::move(order).take_rest();
}

}  // namespace cubind
