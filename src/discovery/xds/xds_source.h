// XdsSource: a cluster's list by xDS, as the process's AdsClient hears it.
//
// What the server says is given when it is said. Asked again it says the same once more, if the server could have told
// of a change meanwhile: a list whose server has gone away with it is not confirmed.
#pragma once

#include <memory>
#include <string>

#include "discovery/bell.h"
#include "discovery/source.h"
#include "discovery/xds/ads_client.h"
#include "discovery/xds_options.h"

namespace sluice::discovery {

class XdsSource final : public Source {
 public:
  XdsSource(std::shared_ptr<AdsClient> client, const XdsOptions& options, Bell& bell);
  ~XdsSource() override;

  runtime::Task<Answer> Next(base::TimePoint until) override;
  void Ask() override { asked_ = true; }
  void Hurry() override { client_->Hurry(); }

 private:
  // What is new; monostate: nothing.
  Answer Look();
  Answer Give(const AdsNews& news);

  const std::shared_ptr<AdsClient> client_;
  const XdsOptions options_;
  Bell& bell_;
  const std::shared_ptr<AdsWatch> watch_;
  bool asked_ = false;
  AdsNews given_;  // what was given last
};

}  // namespace sluice::discovery
