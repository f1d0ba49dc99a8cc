#include "tuner/search/additive_kernel.hpp"

#include <cmath>

namespace cubind {
namespace {

constexpr double kRoundness = 0.25;  // how far a round value is from one beside it that is not

double matern(double distance) {
  const double scaled = std::sqrt(5.0) * distance;
  return (1 + scaled + scaled * scaled / 3) * std::exp(-scaled);
}

}  // namespace

AdditiveKernel::AdditiveKernel(const std::vector<Coordinates::Line>& lines, double length,
                               const Orders& orders)
    : orders_(orders) {
  for (const Coordinates::Line& line : lines) {
    Table table{line.axis, line.scaled.size(), {}};
    for (std::size_t i = 0; i < table.values; ++i) {
      for (std::size_t j = 0; j < table.values; ++j) {
        const double across = line.round.empty() ? 0 : kRoundness * (line.round[i] - line.round[j]);
        table.alike.push_back(matern(std::hypot(line.scaled[i] - line.scaled[j], across) / length));
      }
    }
    tables_.push_back(std::move(table));
  }
}

AdditiveKernel AdditiveKernel::with(const Orders& orders) const {
  AdditiveKernel other = *this;
  other.orders_ = orders;
  return other;
}

double AdditiveKernel::operator()(const Point& one, const Point& other) const {
  double sum = 0, squares = 0, cubes = 0, all = 1;
  for (const Table& table : tables_) {
    const double alike = table.alike[one[table.axis] * table.values + other[table.axis]];
    sum += alike;
    squares += alike * alike;
    cubes += alike * alike * alike;
    all *= alike;
  }
  // The means of the products of two and of three different tunables' by Newton's identities. Where there are
  // not so many tunables, what all of them have in common.
  const auto count = static_cast<double>(tables_.size());
  const double pairs = count < 2 ? all : (sum * sum - squares) / (count * (count - 1));
  const double threes =
      count < 3 ? all
                : (sum * sum * sum - 3 * sum * squares + 2 * cubes) / (count * (count - 1) * (count - 2));
  return orders_.single * sum / count + orders_.pairs * pairs + orders_.threes * threes + orders_.all * all;
}

}  // namespace cubind
