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
#include "client/report/verdict.hpp"
#include "trust/base64.hpp"

namespace cubind::ctl {
namespace {

std::string source_of(std::string_view text) { return "'sha256-" + base64(Digest::of(text).view()) + "'"; }

// JSON in which no tag can begin.
std::string data_text(const OutputJson& data) {
  return replaced(data.dump(-1, ' ', false, OutputJson::error_handler_t::replace), "<", "\\u003c");
}

const std::string kElements = std::string(kReportElements) + std::string(kReportCharts);

std::string report_script() {
  return kElements + std::string(kReportTable) + std::string(kReportTrials) + std::string(kReportSections);
}

std::string policy_of(std::string_view script) {
  return "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src " +
         source_of(kReportStyle) + "; script-src " + source_of(kReportPlot) + " " + source_of(script);
}

std::string page_of(const std::string& script, const OutputJson& data) {
  std::string page(kReportPage);
  page = replaced(std::move(page), "@policy@", policy_of(script));
  page = replaced(std::move(page), "@style@", kReportStyle);
  page = replaced(std::move(page), "@plot@", kReportPlot);
  page = replaced(std::move(page), "@script@", script);
  return replaced(std::move(page), "@data@", data_text(data));  // last: names may look like a mark
}

}  // namespace

std::string report_policy() { return policy_of(report_script()); }

std::string report_page(const OutputJson& data) { return page_of(report_script(), data); }

std::string verdict_page(const OutputJson& verdict) {
  return page_of(kElements + std::string(kReportVerdict), verdict);
}

}  // namespace cubind::ctl
