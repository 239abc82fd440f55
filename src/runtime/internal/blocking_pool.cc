#include "runtime/internal/blocking_pool.h"

#include "runtime/worker.h"

namespace sluice::runtime {

bool BlockingPool::Submit(Worker& worker, std::function<void()> fn, std::function<void()> done) {
  std::unique_lock lock(mutex_);
  if (closed_ || queue_.size() >= kQueuedMax) return false;  // the parameters die after the lock is gone
  queue_.push_back(Job{&worker, std::move(fn), std::move(done)});
  if (idle_ < queue_.size() && threads_.size() < threads_max_) {
    threads_.emplace_back([this] { RunHelper(); });
  }
  lock.unlock();
  work_.notify_one();
  return true;
}

void BlockingPool::RunHelper() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    work_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    --idle_;
    if (closed_) return;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    job.fn();
    job.fn = nullptr;  // before `done` can see its effects undone
    job.worker->Post(std::move(job.done));
    lock.lock();
  }
}

void BlockingPool::Close() {
  std::deque<Job> dropped;
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(queue_);
    threads.swap(threads_);
  }
  work_.notify_all();
  for (std::thread& thread : threads) thread.join();
  // `done` may hold what belongs to its worker, so it is destroyed there: by a function that does nothing else.
  for (Job& job : dropped) job.worker->Post([done = std::move(job.done)] {});
}

}  // namespace sluice::runtime
