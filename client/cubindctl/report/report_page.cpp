#include "client/cubindctl/report/report_page.hpp"

#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "client/report/charts.hpp"
#include "client/report/elements.hpp"
#include "client/report/page.hpp"
#include "client/report/plot.hpp"
#include "client/report/sections.hpp"
#include "client/report/style.hpp"
#include "client/report/table.hpp"
#include "client/report/trials.hpp"
#include "trust/base64.hpp"

namespace cubind::ctl {
namespace {

std::string source_of(std::string_view text) { return "'sha256-" + base64(Digest::of(text).view()) + "'"; }

// JSON in which no tag can begin.
std::string data_text(const OutputJson& data) {
  return replaced(data.dump(-1, ' ', false, OutputJson::error_handler_t::replace), "<", "\\u003c");
}

std::string script() {
  return std::string(kReportElements) + std::string(kReportCharts) + std::string(kReportTable) +
         std::string(kReportTrials) + std::string(kReportSections);
}

}  // namespace

std::string report_policy() {
  return "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src " +
         source_of(kReportStyle) + "; script-src " + source_of(kReportPlot) + " " + source_of(script());
}

std::string report_page(const OutputJson& data) {
  std::string page(kReportPage);
  page = replaced(std::move(page), "@policy@", report_policy());
  page = replaced(std::move(page), "@style@", kReportStyle);
  page = replaced(std::move(page), "@plot@", kReportPlot);
  page = replaced(std::move(page), "@script@", script());
  return replaced(std::move(page), "@data@", data_text(data));  // last: names may look like a mark
}

}  // namespace cubind::ctl
