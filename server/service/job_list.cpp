#include "server/service/job_list.hpp"

#include <algorithm>
#include <tuple>

#include "base/error.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/replies.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

constexpr std::size_t kMaxPage = 500;
constexpr std::size_t kMaxPageBytes = std::size_t{2} << 20;

JobAge age_of(const JobRow& job) { return {job.shown().created_at(), job.id}; }

std::string token_of(const JobAge& age) { return age.created_at + "/" + age.id; }

JobAge age_in(const std::string& token) {
  check_text(token, "page_token");
  const auto slash = token.find('/');
  if (!token.empty() && slash == std::string::npos) {
    refuse("page_token", "is not the next_page_token of a reply to ListJobs");
  }
  return token.empty() ? JobAge{} : JobAge{token.substr(0, slash), token.substr(slash + 1)};
}

struct Page {
  std::vector<JobEvent> jobs;
  std::optional<JobAge> next;  // absent: there are no more
};

Page open_jobs(const ServiceContext& context, const JobAge& after, std::size_t size) {
  const auto by_age = [](const JobRow& job) { return std::tie(job.shown().created_at(), job.id); };
  Page page{context.scheduler.open_jobs(), std::nullopt};
  std::erase_if(page.jobs, [&](const JobEvent& event) {
    return by_age(event.job) <= std::tie(after.created_at, after.id);
  });
  std::ranges::sort(page.jobs,
                    [&](const JobEvent& a, const JobEvent& b) { return by_age(a.job) < by_age(b.job); });
  if (page.jobs.size() > size) {
    page.jobs.resize(size);
    page.next = age_of(page.jobs.back().job);
  }
  return page;
}

std::vector<DeviceClass> classes(const ServiceContext& context) {
  return known_devices(*context.fleet.agents(), *context.index.snapshot());
}

JobEvent ended_job(JobRow row, const std::vector<DeviceClass>& known) {
  const Digest& device = row.question.device_class;
  const auto found = std::ranges::find(known, device, &DeviceClass::digest);
  const std::string label = found == known.end() ? "@" + device.hex().substr(0, 8) : found->label;
  return {std::move(row), label, "", 0, 0, nullptr};
}

Page all_jobs(const ServiceContext& context, const JobAge& after, std::size_t size) {
  JobPage stored;
  context.store.read([&](StoreReader& reader) { stored = reader.jobs_after(after, size); });
  const std::vector<DeviceClass> known = classes(context);
  Page page{{}, stored.last};
  for (JobRow& row : stored.jobs) {
    if (auto open = context.scheduler.find(row.id)) {
      page.jobs.push_back(std::move(*open));
    } else if (has_ended(row.state)) {
      page.jobs.push_back(ended_job(std::move(row), known));
    }
  }
  return page;
}

}  // namespace

JobEvent find_job(const ServiceContext& context, const OpenCall& open, const std::string& id) {
  check_name(id, "id");
  std::optional<JobEvent> job = context.scheduler.find(id);
  if (!job) {
    std::optional<JobRow> row;
    context.store.read([&](StoreReader& reader) { row = reader.job(id); });
    if (!row) {
      throw no_such_job(id);
    }
    job = ended_job(*std::move(row), classes(context));
  }
  open.require_job(id, job->job.question.name_space);
  return *std::move(job);
}

void list_jobs(ServiceContext& context, const OpenCall& open, const v1::ListJobsRequest& request,
               v1::ListJobsReply& reply) {
  if (!request.id().empty()) {
    to_wire(find_job(context, open, request.id()), *reply.add_jobs());
    return;
  }
  const std::size_t size =
      request.page_size() == 0 ? kMaxPage : std::min<std::size_t>(request.page_size(), kMaxPage);
  const JobAge after = age_in(request.page_token());
  Page page = request.include_ended() ? all_jobs(context, after, size) : open_jobs(context, after, size);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < page.jobs.size(); ++i) {
    if (!covers(open.caller().namespaces, page.jobs[i].job.question.name_space)) {
      continue;
    }
    v1::Job& job = *reply.add_jobs();
    to_wire(page.jobs[i], job);
    bytes += job.ByteSizeLong();
    if (bytes > kMaxPageBytes && i + 1 < page.jobs.size()) {
      page.next = age_of(page.jobs[i].job);
      break;
    }
  }
  reply.set_next_page_token(page.next ? token_of(*page.next) : "");
}

}  // namespace cubind
