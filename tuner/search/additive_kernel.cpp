#include "tuner/search/additive_kernel.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "tuner/search/gaussian_process.hpp"

namespace cubind {
namespace {

constexpr double kRoundness =
    4;  // how much more than in a scaled coordinate a round value differs from others
constexpr double kLengths[] = {0.3, 0.5, 0.8, 1.2, 2, 3};  // of a tunable's whole list
// Weights of the interactions by order, from independent tunables to interactions of all.
constexpr Orders kOrders[] = {
    {0.5, 0.5, 0, 0}, {0.2, 0.8, 0, 0}, {0.1, 0.4, 0.5, 0}, {0.3, 0.3, 0.3, 0.1}, {0, 0.1, 0.3, 0.6}};

// A Matern 5/2 kernel.
double alike_at(double distance) {
  const double far = std::sqrt(5.0) * distance;
  return (1 + far + far * far / 3) * std::exp(-far);
}

}  // namespace

AdditiveKernel::AdditiveKernel(const Coordinates& coordinates, double length, const Orders& orders)
    : orders_(orders) {
  const std::vector<Coordinates::Scale>& scales = coordinates.scales();
  for (std::size_t first = 0; first < scales.size(); ++first) {
    const Coordinates::Scale& line = scales[first];
    if (!tables_.empty() && line.axis <= tables_.back().axis) {
      break;  // roundness begins
    }
    std::vector<double> round(line.scaled.size(), 0);
    for (std::size_t other = first + 1; other < scales.size(); ++other) {
      round = scales[other].axis == line.axis ? scales[other].scaled : round;
    }
    Table table{line.axis, line.scaled.size(), {}};
    for (std::size_t i = 0; i < table.values; ++i) {
      for (std::size_t j = 0; j < table.values; ++j) {
        const double scaled = line.scaled[i] - line.scaled[j];
        const double rounded = kRoundness * (round[i] - round[j]);
        // Not std::hypot: a program that calls it needs glibc 2.35, and wheels promise 2.34.
        const double distance = std::sqrt(scaled * scaled + rounded * rounded);
        table.alike.push_back(alike_at(distance / length));
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

AdditiveKernel AdditiveKernel::likeliest(const Coordinates& coordinates, const std::vector<Point>& inputs,
                                         const std::vector<double>& targets) {
  std::optional<AdditiveKernel> likeliest;
  double most = -std::numeric_limits<double>::infinity();
  for (const double length : kLengths) {
    const AdditiveKernel of_length(coordinates, length, {});
    for (const Orders& orders : kOrders) {
      AdditiveKernel kernel = of_length.with(orders);
      const double likelihood = GaussianProcess(inputs, targets, kernel).log_likelihood();
      if (!likeliest || likelihood > most) {
        most = likelihood;
        likeliest = std::move(kernel);
      }
    }
  }
  return std::move(*likeliest);
}

}  // namespace cubind
