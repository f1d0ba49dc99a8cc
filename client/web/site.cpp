#include "client/web/site.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/report/report_data.hpp"
#include "client/cubindctl/report/report_page.hpp"
#include "client/report/style.hpp"
#include "client/web/live.hpp"
#include "client/web/page.hpp"
#include "client/web/pages.hpp"
#include "client/web/record_pages.hpp"
#include "client/web/terms.hpp"

namespace cubind::web {
namespace {

constexpr const char* kPolicy =
    "default-src 'none'; base-uri 'none'; form-action 'self'; img-src data:; style-src 'self'; script-src "
    "'self'; connect-src 'self'";

constexpr std::size_t kMostReported = 20'000;  // records of a page of about 14 MB
constexpr std::size_t kMostMade = 64;          // pages that are kept: below 100 KB each

struct Link {
  const char* path;
  const char* text;
};
constexpr std::array kLinks{Link{"/", "Now"}, Link{"/kernels", "Kernels"}, Link{"/wanted", "Wanted"},
                            Link{"/records", "Records"}, Link{"/jobs", "Jobs"}};
constexpr std::array kKernelLinks{Link{"/report", "Report"}, Link{"/stability", "Stability"},
                                  Link{"/audit", "Audit"}};

/// The page of kLinks that leads to this one.
std::string section_of(const Request& request) {
  const std::string& path = request.path;
  const bool is_job = path == "/job" || (path == "/report" && request.query.contains("job"));
  const bool is_kernel = path == "/report" || path == "/stability" || path == "/audit";
  return is_job ? "/jobs" : is_kernel ? "/kernels" : path;
}

std::string link_html(const std::string& address, const char* text, bool is_current) {
  return "<a href=\"" + address + "\"" + (is_current ? " aria-current=\"true\"" : "") + ">" + text + "</a> ";
}

std::string navigation(const Request& request) {
  std::string html =
      "<a class=\"skip\" href=\"#main\">Skip to the content</a><nav aria-label=\"pages\"><b>cubind</b> ";
  for (const Link& link : kLinks) {
    html += link_html(link.path, link.text, section_of(request) == link.path);
  }
  if (const auto kernel = request.query.find("kernel");
      section_of(request) == "/kernels" && kernel != request.query.end()) {
    html += "<b>" + escaped(kernel->second) + "</b> ";
    for (const Link& link : kKernelLinks) {
      html += link_html(link.path + ("?kernel=" + url_encoded(kernel->second)), link.text,
                        request.path == link.path);
    }
  }
  return html + "</nav>";
}

Response page(const View& view, const Request& request, int status = 200) {
  std::string html(kWebPage);
  html = replaced(std::move(html), "@title@", escaped(view.question));
  html = replaced(std::move(html), "@navigation@", navigation(request));
  html = replaced(std::move(html), "@live@", view.is_live ? " data-live" : "");
  html = replaced(std::move(html), "@main@", html_of(view, request));  // last: names may look like a mark
  return {status, "text/html; charset=utf-8", kPolicy, html, 0};
}

std::string value_of(const Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  if (found == request.query.end() || found->second.empty()) {
    throw Error(ErrorCode::NotFound, request.path, "needs " + name + "=... in its address");
  }
  return found->second;
}

// The page of `cubindctl report`, read again while its job runs.
Response report(Snapshots& snapshots, const Request& request) {
  ctl::CommonOptions common;
  common.address = snapshots.address();
  ctl::ReportOptions options;
  options.shipped = true;
  options.job = request.query.contains("job") ? request.query.at("job") : "";
  options.kernel = options.job.empty() ? value_of(request, "kernel") : "";
  options.hint = "the page Kernels lists those with a record, the page Jobs leads to a job's report";
  const std::string command = "cubindctl report " + ctl::shell_word(options.kernel);
  if (const auto view = too_large(*snapshots.now(), options.kernel, kMostReported, command)) {
    return page(*view, request);
  }
  const ctl::ReportInput input = ctl::read_report(options, common);
  const bool is_open = !options.job.empty() && is_running(input.jobs.front());
  const std::string html =
      replaced(ctl::report_page(ctl::report_data(input)), "<main id=\"report\">",
               "<header class=\"site\">" + navigation(request) + "</header><main id=\"report\">");
  return {200, "text/html; charset=utf-8", ctl::report_policy(), html, is_open ? 5U : 0U};
}

View view_of(const Snapshot& snapshot, const Request& request) {
  const std::string& path = request.path;
  return path == "/"            ? overview(snapshot)
         : path == "/jobs"      ? jobs_page(snapshot)
         : path == "/job"       ? job_page(snapshot, value_of(request, "id"))
         : path == "/kernels"   ? kernels_page(snapshot)
         : path == "/wanted"    ? wanted_page(snapshot)
         : path == "/records"   ? records_page(snapshot)
         : path == "/audit"     ? audit_page(snapshot, value_of(request, "kernel"))
         : path == "/stability" ? stability_page(snapshot, value_of(request, "kernel"))
                                : throw Error(ErrorCode::NotFound, path, "is no page");
}

}  // namespace

Response Site::page(const Request& request) {
  const auto snapshot = snapshots_.now();
  const std::pair address(request.path, request.query);
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(last_, snapshot) != snapshot) {
      made_.clear();
    } else if (const auto made = made_.find(address); made != made_.end()) {
      return made->second;
    }
  }
  Response response = web::page(view_of(*snapshot, request), request);
  const std::lock_guard lock(mutex_);
  if (last_ == snapshot && made_.size() < kMostMade) {
    made_.emplace(address, response);
  }
  return response;
}

Response Site::route(const Request& request) {
  if (request.path == "/style.css") {
    return {200, "text/css; charset=utf-8", "", std::string(kReportStyle), 0};
  }
  if (request.path == "/live.js") {
    return {200, "text/javascript; charset=utf-8", "", std::string(kWebLive), 0};
  }
  return request.path == "/report" ? report(snapshots_, request) : page(request);
}

Response Site::answer(const Request& request) {
  try {
    return route(request);
  } catch (const Error& error) {
    const bool is_away =
        error.code() == ErrorCode::Unavailable || error.code() == ErrorCode::DeadlineExceeded;
    return web::page(
        {is_away ? "The daemon does not answer" : "This page cannot be shown", "", {Sentence{error.what()}}},
        request,
        is_away                               ? 503
        : error.code() == ErrorCode::NotFound ? 404
                                              : 400);
  }
}

}  // namespace cubind::web
