// InternTable: a chained hash table of reference-counted fields, with storage recycled by size class.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <random>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory_budget.h"
#include "http2/fields/header.h"
#include "http2/fields/static_table.h"

namespace sluice::http2 {
namespace {

// What stands before each interned Field.
struct Node {
  Node* next;  // in its bucket or free list
  uint64_t hash;
  Field field;
};

// What lies where a FieldRun was.
struct SpareRun {
  SpareRun* next;
};

Node* NodeOf(Field* field) { return reinterpret_cast<Node*>(reinterpret_cast<char*>(field) - offsetof(Node, field)); }

// Storage classes: multiples of a cache line; what is larger goes to the heap. The spare nodes kept of each
// class are bounded, so that a burst of odd fields does not stay in memory: 8 classes x 64 nodes <= 144 KiB a
// worker.
constexpr size_t kClassBytes = 64;
constexpr size_t kClasses = 8;
constexpr size_t kSparesMax = 64;
constexpr size_t kBucketsMin = 256;

size_t NodeBytes(size_t name_size, size_t value_size) { return sizeof(Node) + name_size + value_size; }
size_t ClassOf(size_t bytes) { return (bytes - 1) / kClassBytes; }
size_t HeapBytes(size_t bytes) { return ClassOf(bytes) < kClasses ? (ClassOf(bytes) + 1) * kClassBytes : bytes; }
// All runs are of one size, so that a peer that changes its table often costs no allocation a change.
constexpr size_t kRunPointers = FieldRun::kCountMax * sizeof(const Field*);
constexpr size_t kRunBytes = sizeof(FieldRun) + kRunPointers + FieldRun::kLiteralBytesMax;

// Each table owns a range of ids, so that handing them out needs no shared counter; one that has used its
// range up (12 days at a million new fields a second) takes another.
constexpr uint64_t kIdsPerRange = uint64_t{1} << 40;

uint64_t NewIdRange() {
  // Relaxed: only uniqueness counts. From 1 on: range 0 holds the ids of static fields.
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed) * kIdsPerRange;
}

}  // namespace

struct InternTable::Impl {
  // Names and values are chosen by peers: keyed, so that they cannot aim at one bucket.
  const uint64_t seed = std::random_device{}() | uint64_t{std::random_device{}()} << 32;
  uint64_t next_id = NewIdRange();
  size_t size = 0;
  std::vector<Node*> buckets = std::vector<Node*>(kBucketsMin, nullptr);
  std::array<Node*, kClasses> spares{};
  std::array<size_t, kClasses> spare_counts{};
  SpareRun* spare_runs = nullptr;
  size_t spare_run_count = 0;
  size_t run_count = 0;            // alive
  base::MemoryBudget::Share held;  // nodes and runs taken from the heap, spare ones included

  ~Impl() { held.Flush(); }

  void* FromHeap(size_t bytes) {
    held.Count(static_cast<int64_t>(bytes));
    return ::operator new(bytes);
  }
  void ToHeap(void* memory, size_t bytes) {
    held.Count(-static_cast<int64_t>(bytes));
    ::operator delete(memory);
  }

  void* TakeRun() {
    if (spare_runs == nullptr) return FromHeap(kRunBytes);
    --spare_run_count;
    return std::exchange(spare_runs, spare_runs->next);
  }

  Node*& Bucket(uint64_t hash) { return buckets[hash & (buckets.size() - 1)]; }

  uint64_t NewId() {
    const uint64_t id = next_id++;
    if (next_id % kIdsPerRange == 0) next_id = NewIdRange();
    return id;
  }

  Node* Allocate(size_t bytes) {
    const size_t cls = ClassOf(bytes);
    Node* node = cls < kClasses ? spares[cls] : nullptr;
    if (node == nullptr) return static_cast<Node*>(FromHeap(HeapBytes(bytes)));
    spares[cls] = node->next;
    --spare_counts[cls];
    return node;
  }

  void Recycle(Node* node) {
    const size_t bytes = NodeBytes(node->field.name_size, node->field.value_size);
    const size_t cls = ClassOf(bytes);
    if (cls >= kClasses || spare_counts[cls] == kSparesMax) return ToHeap(node, HeapBytes(bytes));
    node->next = spares[cls];
    spares[cls] = node;
    ++spare_counts[cls];
  }

  void Grow() {
    std::vector<Node*> old(buckets.size() * 2, nullptr);
    old.swap(buckets);
    for (Node* node : old) {
      while (node != nullptr) {
        Node* next = node->next;
        Node*& bucket = Bucket(node->hash);
        node->next = bucket;
        bucket = node;
        node = next;
      }
    }
  }
};

InternTable::InternTable() : impl_(std::make_unique<Impl>()) {}

InternTable::~InternTable() {
  SLUICE_CHECK(impl_->size == 0 && impl_->run_count == 0);  // a holder would free into a table that is gone
  for (size_t cls = 0; cls < kClasses; ++cls) {
    Node* node = impl_->spares[cls];
    while (node != nullptr) impl_->ToHeap(std::exchange(node, node->next), (cls + 1) * kClassBytes);
  }
  while (impl_->spare_runs != nullptr) impl_->ToHeap(impl_->TakeRun(), kRunBytes);
}

const Field* InternTable::Intern(std::string_view name, std::string_view value) {
  Impl& impl = *impl_;
  // The second hash is keyed by the first: where the name ends is part of the key.
  const uint64_t hash = base::Hash64(value, base::Hash64(name, impl.seed));
  for (Node* node = impl.Bucket(hash); node != nullptr; node = node->next) {
    if (node->hash != hash || node->field.name() != name || node->field.value() != value) continue;
    ++node->field.refs;
    return &node->field;
  }
  const NameClass cls = ClassifyName(name);
  if (const uint16_t index = StaticIndex(cls.static_name_index, value)) return StaticField(index);

  if (impl.size == impl.buckets.size()) impl.Grow();
  Node* node = impl.Allocate(NodeBytes(name.size(), value.size()));
  node->hash = hash;
  node->field = Field{.name_size = static_cast<uint32_t>(name.size()),
                      .value_size = static_cast<uint32_t>(value.size()),
                      .refs = 1,
                      .static_name_index = cls.static_name_index,
                      .static_index = 0,
                      .id = impl.NewId(),
                      .token = cls.token,
                      .indexing = Indexing::kIndexed,
                      .checked = false};
  // An empty view may hold a null pointer, which memcpy must not see.
  if (!name.empty()) std::memcpy(node->field.bytes(), name.data(), name.size());
  if (!value.empty()) std::memcpy(node->field.bytes() + name.size(), value.data(), value.size());
  Node*& bucket = impl.Bucket(hash);
  node->next = bucket;
  bucket = node;
  ++impl.size;
  return &node->field;
}

void InternTable::Free(Field* field) {
  Node* node = NodeOf(field);
  Node** link = &impl_->Bucket(node->hash);
  while (*link != node) {
    SLUICE_CHECK(*link != nullptr);  // a field of another table
    link = &(*link)->next;
  }
  *link = node->next;
  --impl_->size;
  impl_->Recycle(node);
}

FieldRun* InternTable::MakeRun(const Field* const* fields, size_t count) {
  auto* run = new (impl_->TakeRun()) FieldRun{.refs = 1, .count = 0, .id = impl_->NewId(), .hpack_size = 0};
  ++impl_->run_count;
  auto* own = const_cast<const Field**>(run->fields());
  char* literals = reinterpret_cast<char*>(own) + kRunPointers;
  size_t room = FieldRun::kLiteralBytesMax;
  for (; run->count < std::min<size_t>(count, FieldRun::kCountMax); ++run->count) {
    const Field* field = fields[run->count];
    if (field->interned()) {
      Ref(field);
    } else {
      const size_t bytes = field->bytes_taken();
      if (bytes > room) break;
      // Its last bytes may be the padding behind it.
      field = static_cast<const Field*>(std::memcpy(literals, field, bytes));
      literals += bytes;
      room -= bytes;
    }
    own[run->count] = field;
    run->hpack_size += field->hpack_size();
    const size_t token = static_cast<size_t>(field->token);
    if (!run->has(field->token)) run->first[token] = static_cast<uint8_t>(run->count);
    run->tokens |= uint64_t{1} << token;
  }
  if (run->count > 0) return run;
  FreeRun(run);
  return nullptr;
}

void InternTable::FreeRun(FieldRun* run) {
  --impl_->run_count;
  for (uint32_t i = 0; i < run->count; ++i) Unref(run->fields()[i]);
  if (impl_->spare_run_count == kSparesMax) return impl_->ToHeap(run, kRunBytes);
  impl_->spare_runs = new (run) SpareRun{impl_->spare_runs};
  ++impl_->spare_run_count;
}

size_t InternTable::size() const { return impl_->size; }

const Field* InternTable::Static(size_t index) { return StaticField(index); }

}  // namespace sluice::http2
