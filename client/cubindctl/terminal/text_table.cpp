#include "client/cubindctl/terminal/text_table.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <numeric>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/terminal/text_wrap.hpp"

namespace cubind::ctl {
namespace {

const std::string kGap = "  ";

}  // namespace

TextTable::TextTable(std::vector<std::string> columns) {
  for (std::string& column : columns) {
    const std::size_t name = column.find_first_not_of(">?");
    right_.push_back(column.starts_with(">"));
    spare_.push_back(static_cast<std::size_t>(std::count(column.begin(), column.begin() + name, '?')));
    column.erase(0, name);
  }
  rows_.push_back(std::move(columns));
}

void TextTable::add(std::vector<std::string> cells) {
  if (cells.size() != right_.size()) {
    throw Error(ErrorCode::Internal, "table", "a row has another number of cells than the head");
  }
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths(right_.size(), 0);
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  return widths;
}

void TextTable::print(std::ostream& out, std::size_t columns, const std::string& prefix) const {
  const std::size_t room = columns > prefix.size() ? columns - prefix.size() : 1;
  const std::vector<std::size_t> widths = this->widths();
  const auto before_last = [&](const Columns& shown) {
    std::size_t before = 0;
    for (std::size_t i = 0; i + 1 < shown.size(); ++i) {
      before += widths[shown[i]] + kGap.size();
    }
    return before;
  };
  const auto fits = [&](const Columns& shown) {
    return columns == 0 || empty() || before_last(shown) + widths.back() <= room;
  };
  const auto fits_broken = [&](const Columns& shown) {
    return fits(shown) || room >= before_last(shown) + std::max(room / 3, rows_.front().back().size());
  };
  const auto fits_beneath = [&](const Columns& shown) { return before_last(shown) <= room + kGap.size(); };
  if (const Columns shown = without_spare(fits_broken); fits_broken(shown)) {
    print_rows(out, shown, widths, prefix, fits(shown) ? 0 : room - before_last(shown), false);
  } else if (const Columns few = without_spare(fits_beneath); fits_beneath(few)) {
    print_rows(out, few, widths, prefix, room, true);
  } else {
    print_blocks(out, columns, prefix);
  }
}

TextTable::Columns TextTable::without_spare(const std::function<bool(const Columns&)>& fits) const {
  Columns shown(right_.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  while (!fits(shown)) {
    auto most = shown.begin();
    for (auto column = shown.begin(); column != shown.end(); ++column) {
      most = spare_[*column] >= spare_[*most] ? column : most;
    }
    if (spare_[*most] == 0) {
      break;
    }
    shown.erase(most);
  }
  return shown;
}

// `room`: of the last cell; 0: it is not broken.
void TextTable::print_rows(std::ostream& out, const Columns& shown, const std::vector<std::size_t>& widths,
                           const std::string& prefix, std::size_t room, bool beneath) const {
  for (const Row& row : rows_) {
    std::string line = prefix;
    for (std::size_t i = 0; i + 1 < shown.size(); ++i) {
      const std::string& cell = row[shown[i]];
      const std::string padding(widths[shown[i]] - cell.size(), ' ');
      line.append(i == 0 ? "" : kGap).append(right_[shown[i]] ? padding + cell : cell + padding);
    }
    if (!beneath) {
      line.append(shown.size() > 1 ? kGap : "");
      const std::string padding(right_.back() ? widths.back() - row.back().size() : 0, ' ');
      const std::string under = prefix + std::string(line.size() - prefix.size(), ' ');
      out << line << padding << wrapped_under(row.back(), room, under) << "\n";
      continue;
    }
    const std::string under = prefix + "    ";
    out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
    if (row.back() != "-") {
      out << under << wrapped_under(row.back(), room > 4 ? room - 4 : 1, under) << "\n";
    }
  }
  tell_left_out(out, shown, prefix);
}

void TextTable::tell_left_out(std::ostream& out, const Columns& shown, const std::string& prefix) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < right_.size(); ++i) {
    if (std::ranges::find(shown, i) == shown.end()) {
      names.push_back(rows_.front()[i]);
    }
  }
  if (!names.empty()) {
    out << prefix << "(a wider terminal shows " << join(names, ", ") << ")\n";
  }
}

void TextTable::print_blocks(std::ostream& out, std::size_t columns, const std::string& prefix) const {
  const Row& names = rows_.front();
  const std::size_t name_width = std::ranges::max(names, {}, &std::string::size).size() + kGap.size();
  const std::string under = prefix + std::string(name_width, ' ');
  const std::size_t room = columns > under.size() + 1 ? columns - under.size() : 1;
  for (std::size_t row = 1; row < rows_.size(); ++row) {
    out << (row == 1 ? "" : "\n");
    for (std::size_t i = 0; i < names.size(); ++i) {
      out << prefix << names[i] << std::string(name_width - names[i].size(), ' ')
          << wrapped_under(rows_[row][i], room, under) << "\n";
    }
  }
}

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string percent(double share, int digits) { return fixed(100 * share, digits) + " %"; }

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) {
    return std::to_string(bytes) + " B";
  }
  double size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (size >= 1024 && unit + 1 < kUnits.size()) {
    size /= 1024;
    ++unit;
  }
  return fixed(size, 1) + " " + kUnits[unit];
}

}  // namespace cubind::ctl
