// IntrusiveList: a doubly linked list through a base class of its elements; no allocation, O(1) removal from anywhere.
//
// An element derives from ListNode<Tag> and is in at most one list per Tag. Its destructor unlinks it. Not thread-safe.
#pragma once

#include "base/check.h"

namespace sluice::base {

template <typename Tag = void>
class ListNode {
 public:
  ListNode() = default;
  ListNode(const ListNode&) = delete;
  ListNode& operator=(const ListNode&) = delete;
  ~ListNode() { Unlink(); }

  bool linked() const { return next_ != nullptr; }
  void Unlink() {
    if (next_ == nullptr) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <typename, typename>
  friend class IntrusiveList;
  ListNode* next_ = nullptr;
  ListNode* prev_ = nullptr;
};

template <typename T, typename Tag = void>
class IntrusiveList {
 public:
  using Node = ListNode<Tag>;
  IntrusiveList() { head_.next_ = head_.prev_ = &head_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    while (!empty()) PopFront();
    head_.next_ = head_.prev_ = nullptr;
  }

  bool empty() const { return head_.next_ == &head_; }
  T* front() { return empty() ? nullptr : static_cast<T*>(head_.next_); }
  T* back() { return empty() ? nullptr : static_cast<T*>(head_.prev_); }
  // The element after `element`, or null. `element` must be in this list.
  T* Next(T& element) {
    Node* next = static_cast<Node&>(element).next_;
    return next == &head_ ? nullptr : static_cast<T*>(next);
  }
  void PushBack(T& element) {
    Node& node = element;
    SLUICE_DCHECK(!node.linked());
    node.prev_ = head_.prev_;
    node.next_ = &head_;
    head_.prev_->next_ = &node;
    head_.prev_ = &node;
  }
  T* PopFront() {
    T* element = front();
    if (element != nullptr) static_cast<Node*>(element)->Unlink();
    return element;
  }
  // Moves all of `other` to the end of this, in order.
  void Splice(IntrusiveList& other) {
    if (other.empty()) return;
    Node* first = other.head_.next_;
    Node* last = other.head_.prev_;
    other.head_.next_ = other.head_.prev_ = &other.head_;
    first->prev_ = head_.prev_;
    head_.prev_->next_ = first;
    last->next_ = &head_;
    head_.prev_ = last;
  }

 private:
  Node head_;
};

}  // namespace sluice::base
