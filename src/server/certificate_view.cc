#include "server/certificate_view.h"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

namespace sluice::server {

using admin::CertificatePurpose;
using net::CertificateFile;

namespace {

admin::CertificateView ViewOf(const net::CertificateInfo& info, int64_t now) {
  admin::CertificateView view;
  view.subject = info.subject;
  view.issuer = info.issuer;
  for (const auto* names : {&info.names.dns, &info.names.uris, &info.names.ips}) {
    view.names.insert(view.names.end(), names->begin(), names->end());
  }
  view.not_before = info.not_before;
  view.not_after = info.not_after;
  constexpr int64_t kDay = 86400;
  const int64_t left = info.not_after - now;
  view.days_left = left >= 0 ? left / kDay : -((-left + kDay - 1) / kDay);  // the last day is 0, the first one over -1
  return view;
}

}  // namespace

int64_t WallSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

namespace {

std::string DateOf(int64_t seconds) {
  const std::time_t end = seconds;
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&end, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

}  // namespace

std::string ExpiredText(const std::string& file, const net::CertificateInfo& info) {
  return file + ": the certificate has expired at " + DateOf(info.not_after);
}

std::string EndsSoonText(const std::string& file, const net::CertificateInfo& info, int64_t now) {
  return file + ": the certificate ends at " + DateOf(info.not_after) + ", in " +
         std::to_string((info.not_after - now) / 86400) + " days";
}

void AppendViews(const net::TlsContext& context, const net::TlsOptions& options, const std::string& used_by,
                 const std::string& error, std::vector<admin::CertificateView>* out) {
  const int64_t now = WallSeconds();
  const auto append = [&](admin::CertificateView view, CertificatePurpose purpose, const std::string& file) {
    view.used_by = used_by;
    view.purpose = purpose;
    view.file = file;
    view.error = error;
    out->push_back(std::move(view));
  };
  for (size_t i = 0; i < context.own().size(); ++i)
    append(ViewOf(context.own()[i].info, now), CertificatePurpose::kOwn, CertificateFile(options, i));
  for (const net::CertificateInfo& trusted : context.trusted())
    append(ViewOf(trusted, now), CertificatePurpose::kTrusted, options.ca);
  if (options.ca == net::kSystemCa) append({}, CertificatePurpose::kTrusted, options.ca);
}

}  // namespace sluice::server
