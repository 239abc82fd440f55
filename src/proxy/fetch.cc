#include "proxy/fetch.h"

#include "proxy/fetch_table.h"

namespace sluice::proxy {

std::shared_ptr<const FetchResult> Fetch::Participant::result() const {
  if (fetch_ == nullptr) return result_;
  // Pairs with the release store in FetchTable::Complete; result_ is never written after it.
  return fetch_->done_.load(std::memory_order_acquire) ? fetch_->result_ : nullptr;
}

void Fetch::Participant::Leave() {
  if (fetch_ != nullptr) fetch_->table_.Leave(*this);
  result_.reset();
}

}  // namespace sluice::proxy
