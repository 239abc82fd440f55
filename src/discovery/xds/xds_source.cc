#include "discovery/xds/xds_source.h"

#include <utility>

#include "discovery/xds/assignment.h"
#include "runtime/worker.h"

namespace sluice::discovery {

XdsSource::XdsSource(std::shared_ptr<AdsClient> client, const XdsOptions& options, Bell& bell)
    : client_(std::move(client)), options_(options), bell_(bell), watch_(client_->Watch(options.resource, bell)) {}

XdsSource::~XdsSource() { client_->Close(watch_); }

Answer XdsSource::Give(const AdsNews& news) {
  given_.list = news.list;
  given_.given_at = news.given_at;
  List list = *news.list;
  FitWeights(list, options_.weights_max);
  if (!options_.ordered) Sort(list);
  return list;
}

Answer XdsSource::Look() {
  const AdsNews news = watch_->news();
  const bool fresh = news.list != given_.list || news.given_at != given_.given_at;
  if (news.list != nullptr && (fresh || (asked_ && news.connected))) {
    asked_ = false;
    // Told again behind a list that is new, if there is one; not behind one that was asked for, as a list that has to
    // be seen twice is not interrupted by what is wrong with another resource.
    if (fresh) given_.error.clear();
    return Give(news);
  }
  const bool recovered = news.error.empty() && !given_.error.empty();
  const bool news_of_error = !news.error.empty() && (asked_ || news.error != given_.error);
  given_.error = news.error;
  if (news_of_error) {
    asked_ = false;
    return news.error;
  }
  if (recovered && news.list != nullptr) return Give(news);
  return {};
}

runtime::Task<Answer> XdsSource::Next(base::TimePoint until) {
  Answer answer = Look();
  if (answer.index() == 0 && runtime::Worker::Current()->now() < until) {
    co_await bell_.Wait(until);
    answer = Look();
  }
  co_return answer;
}

}  // namespace sluice::discovery
