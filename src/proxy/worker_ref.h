// WorkerRef: a counted reference that costs no atomic operation, for what many calls of one worker hold.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace sluice::proxy {

// One worker's hold of a shared value. Its calls count themselves in and out with plain numbers; together they hold one
// reference of the shared pointer. Thread safety: one worker only, destructor too.
template <typename T>
class WorkerRef {
 public:
  WorkerRef() = default;
  explicit WorkerRef(std::shared_ptr<const T> value) : node_(new Node{std::move(value), 1}) {}
  WorkerRef(const WorkerRef& other) : node_(other.node_) {
    if (node_ != nullptr) ++node_->refs;
  }
  WorkerRef(WorkerRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  WorkerRef& operator=(WorkerRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~WorkerRef() {
    if (node_ != nullptr && --node_->refs == 0) delete node_;
  }
  const T* get() const { return node_ != nullptr ? node_->value.get() : nullptr; }
  const T* operator->() const { return node_->value.get(); }
  const T& operator*() const { return *node_->value; }

 private:
  struct Node {
    std::shared_ptr<const T> value;
    uint64_t refs;
  };
  Node* node_ = nullptr;
};

}  // namespace sluice::proxy
