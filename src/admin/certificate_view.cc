#include "admin/certificate_view.h"

#include <chrono>

namespace sluice::admin {

CertificateView ViewOf(const net::CertificateInfo& info, std::string file, std::string_view purpose, int64_t now) {
  CertificateView view;
  view.purpose = purpose;
  view.file = std::move(file);
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

int64_t WallSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace sluice::admin
