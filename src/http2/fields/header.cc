// HeaderList and the pool of its chunks.
#include "http2/fields/header.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/memory_budget.h"
#include "http2/fields/static_table.h"

namespace sluice::http2 {

struct HeaderList::Chunk {
  Chunk* next;
  uint32_t capacity;  // of data()
  uint32_t used;

  char* data() { return reinterpret_cast<char*>(this + 1); }
};

namespace {

// The smallest chunk holds the pointers of 12 fields and two literals of 30 bytes, which is what a gRPC request has
// beside a run; the largest a token or a cookie. Every call under way holds what its request needs, hence not larger
// ones at once. Eight bytes less than a round number: glibc's malloc has a word of its own in each piece of memory.
constexpr size_t kChunkBytes[] = {248, 504, 2040};
constexpr size_t kChunkClasses = std::size(kChunkBytes);
// Chunks a thread keeps for later: 1 MiB of each. Above that they go back to the heap.
constexpr uint32_t kSpareChunksMax[kChunkClasses] = {4096, 2048, 512};
constexpr uint32_t kFirstFields = 12;

// The pool is a plain struct, so that it can be used by destructors that run late in the thread's life;
// PoolCloser empties and closes it when the thread ends.
struct SpareChunk {
  SpareChunk* next;
};
struct ChunkPool {
  SpareChunk* head[kChunkClasses];
  uint32_t room[kChunkClasses];  // chunks that it takes further; 0 until it is registered, and where it is closed
  bool registered, closed;
  base::MemoryBudget::Share held;  // taken from the heap, spare ones included
};
constinit thread_local ChunkPool pool_{};

[[gnu::noinline]] void TrimChunks() {
  for (size_t i = 0; i < kChunkClasses; ++i) {
    while (SpareChunk* head = pool_.head[i]) {
      pool_.head[i] = head->next;
      pool_.held.Count(-static_cast<int64_t>(kChunkBytes[i]));
      ::operator delete(head);
    }
    pool_.room[i] = pool_.registered && !pool_.closed ? kSpareChunksMax[i] : 0;
  }
  pool_.held.Flush();
}

struct PoolCloser {
  ~PoolCloser() {
    pool_.closed = true;
    TrimChunks();
  }
  void Touch() {}
};

// All never inlined: a list may be used in a coroutine, whose thread changes while clang 14 keeps the
// address of a thread-local across the suspension.
[[gnu::noinline]] void* NewChunk(size_t bytes) {
  pool_.held.Count(static_cast<int64_t>(bytes));
  return ::operator new(bytes);
}

[[gnu::noinline]] void DeleteChunk(void* memory, size_t bytes) {
  pool_.held.Count(-static_cast<int64_t>(bytes));
  if (pool_.closed) pool_.held.Flush();
  ::operator delete(memory);
}

[[gnu::noinline]] void* TakeChunk(size_t size_class) {
  if (SpareChunk* chunk = pool_.head[size_class]) {
    pool_.head[size_class] = chunk->next;
    ++pool_.room[size_class];
    return chunk;
  }
  return NewChunk(kChunkBytes[size_class]);
}

// The thread's first one, or there is no room for it.
[[gnu::noinline]] void GiveToFullPool(void* memory, size_t size_class) {
  if (!pool_.registered) {
    static thread_local PoolCloser closer;
    closer.Touch();
    pool_.registered = true;
    TrimChunks();
  }
  DeleteChunk(memory, kChunkBytes[size_class]);
}

[[gnu::noinline]] void GiveChunk(void* memory, size_t size_class) {
  if (pool_.room[size_class] == 0) [[unlikely]]
    return GiveToFullPool(memory, size_class);
  pool_.head[size_class] = new (memory) SpareChunk{pool_.head[size_class]};
  --pool_.room[size_class];
}

}  // namespace

// The newest chunk, with room for `bytes` (a multiple of 8).
inline HeaderList::Chunk* HeaderList::Room(size_t bytes) {
  if (chunks_ == nullptr && sizeof(Chunk) + bytes <= kChunkBytes[0]) [[likely]]
    return chunks_ = new (TakeChunk(0)) Chunk{nullptr, kChunkBytes[0] - sizeof(Chunk), 0};
  if (chunks_ != nullptr && chunks_->capacity - chunks_->used >= bytes) [[likely]]
    return chunks_;
  return AddChunk(bytes);
}

HeaderList::Chunk* HeaderList::AddChunk(size_t bytes) {
  SLUICE_CHECK(bytes < UINT32_MAX);
  // As large as what the list has already, so that a long one has few chunks and a short one little that it does not
  // use.
  size_t have = 0;
  for (const Chunk* chunk = chunks_; chunk != nullptr; chunk = chunk->next) have += chunk->used;
  size_t capacity = bytes;
  void* memory = nullptr;
  for (size_t size_class = 0; size_class < kChunkClasses && memory == nullptr; ++size_class) {
    if (sizeof(Chunk) + bytes > kChunkBytes[size_class]) continue;
    if (have > kChunkBytes[size_class] * 2 && size_class + 1 < kChunkClasses) continue;
    capacity = kChunkBytes[size_class] - sizeof(Chunk);
    memory = TakeChunk(size_class);
  }
  if (memory == nullptr) memory = NewChunk(sizeof(Chunk) + capacity);
  return chunks_ = new (memory) Chunk{chunks_, static_cast<uint32_t>(capacity), 0};
}

void HeaderList::Grow() {
  const uint32_t capacity = std::max(kFirstFields, capacity_ * 2);
  const size_t bytes = capacity * sizeof(const Field*);
  Chunk* chunk = Room(bytes);
  auto** fields = reinterpret_cast<const Field**>(chunk->data() + chunk->used);
  chunk->used += static_cast<uint32_t>(bytes);
  if (size_ != 0) std::memcpy(fields, fields_, size_ * sizeof(const Field*));
  fields_ = fields;
  capacity_ = capacity;
}

Field* HeaderList::StartField(size_t bytes_max) {
  if (size_ == capacity_) Grow();  // now, so that FinishField() finds its memory at the end of the newest chunk
  Chunk* chunk = Room(Field::BytesFor(bytes_max));
  return reinterpret_cast<Field*>(chunk->data() + chunk->used);
}

void HeaderList::FinishField(Field* field) {
  chunks_->used += static_cast<uint32_t>(field->bytes_taken());
  Append(field);
}

const Field* HeaderList::Add(std::string_view name, std::string_view value, Indexing indexing) {
  Field* field = StartField(name.size() + value.size());
  const NameClass cls = ClassifyName(name);
  *field = Field{.name_size = static_cast<uint32_t>(name.size()),
                 .value_size = static_cast<uint32_t>(value.size()),
                 .refs = 0,
                 .static_name_index = cls.static_name_index,
                 .static_index = StaticIndex(cls.static_name_index, value),
                 .id = 0,
                 .token = cls.token,
                 .indexing = indexing,
                 .checked = false};
  // An empty view may hold a null pointer, which memcpy must not see.
  if (!name.empty()) std::memcpy(field->bytes(), name.data(), name.size());
  if (!value.empty()) std::memcpy(field->bytes() + name.size(), value.data(), value.size());
  FinishField(field);
  return field;
}

const Field* HeaderList::Find(std::string_view name) const {
  for (const Field* field : *this) {
    if (field->name() == name) return field;
  }
  return nullptr;
}

void HeaderList::AddRun(FieldRun& run) {
  SLUICE_DCHECK(empty() && run_ == nullptr && chunks_ == nullptr && table_ != nullptr);
  ++run.refs;
  run_ = &run;
  fields_ = run.fields();
  size_ = capacity_ = run.count;
  hpack_size_ = static_cast<uint32_t>(run.hpack_size);
}

// Before a field within the run changes: the list counts each of them itself from now on.
void HeaderList::LeaveRun() {
  if (run_ == nullptr) return;
  if (fields_ == run_->fields()) Grow();
  for (uint32_t i = 0; i < run_->count; ++i) {
    const Field* field = fields_[i];
    if (field->interned()) {
      InternTable::Ref(field);
      continue;
    }
    const size_t bytes = field->bytes_taken();
    Chunk* chunk = Room(bytes);
    slots()[i] = static_cast<const Field*>(std::memcpy(chunk->data() + chunk->used, field, bytes));
    chunk->used += static_cast<uint32_t>(bytes);
  }
  table_->UnrefRun(std::exchange(run_, nullptr));
}

void HeaderList::Remove(Token token) {
  if (Find(token) == nullptr) return;
  LeaveRun();
  RemoveFrom(0, token);
}

void HeaderList::Remove(std::string_view name) {
  if (Find(name) == nullptr) return;
  const std::string own(name);  // it may be a field's
  LeaveRun();
  RemoveIf(0, [&own](const Field* field) { return field->name() == own; });
}

void HeaderList::RemoveFrom(uint32_t first, Token token) {
  RemoveIf(first, [token](const Field* field) { return field->token == token; });
}

template <typename Goes>
void HeaderList::RemoveIf(uint32_t first, Goes goes) {
  uint32_t kept = first;
  for (uint32_t i = first; i < size_; ++i) {
    const Field* field = fields_[i];
    if (!goes(field)) {
      slots()[kept++] = field;
      continue;
    }
    hpack_size_ -= static_cast<uint32_t>(field->hpack_size());
    Release(field);  // a transient one's memory goes with the list
  }
  size_ = kept;
}

void HeaderList::Set(Token token, std::string_view name, std::string_view value) {
  Add(name, value);  // before anything goes: the bytes may be a field's
  if (run_ != nullptr && run_->has(token)) LeaveRun();
  const Field* added = fields_[--size_];
  hpack_size_ -= static_cast<uint32_t>(added->hpack_size());
  uint32_t place = 0;
  while (place < size_ && fields_[place]->token != token) ++place;
  if (place == size_) return Append(added);

  hpack_size_ += static_cast<uint32_t>(added->hpack_size() - fields_[place]->hpack_size());
  const Field* replaced = std::exchange(slots()[place], added);
  Release(replaced);
  RemoveFrom(place + 1, token);  // the others with that token, without the one just placed, which may have it too
}

void HeaderList::Clear() {
  for (uint32_t i = run_ != nullptr ? run_->count : 0; i < size_; ++i) Release(fields_[i]);
  if (run_ != nullptr) table_->UnrefRun(std::exchange(run_, nullptr));
  fields_ = nullptr;
  size_ = capacity_ = 0;
  hpack_size_ = 0;
  FreeChunks(std::exchange(chunks_, nullptr));
}

void HeaderList::TrimSpares() { TrimChunks(); }

void HeaderList::FreeChunks(Chunk* chunks) {
  while (chunks != nullptr) {
    Chunk* chunk = std::exchange(chunks, chunks->next);
    const size_t bytes = sizeof(Chunk) + chunk->capacity;  // a class's size exactly, or not of the pool
    if (bytes == kChunkBytes[0]) {
      GiveChunk(chunk, 0);
    } else if (bytes == kChunkBytes[1]) {
      GiveChunk(chunk, 1);
    } else if (bytes == kChunkBytes[2]) {
      GiveChunk(chunk, 2);
    } else {
      DeleteChunk(chunk, bytes);
    }
  }
}

// Into one piece of memory of the size that it takes, if the chunks have at least kWorthBytes more.
void HeaderList::Compact() {
  constexpr size_t kWorthBytes = 128;
  if (chunks_ == nullptr || chunks_->next == nullptr) return;
  const uint32_t own = run_ != nullptr && fields_ != run_->fields() ? run_->count : 0;  // from there on: its own fields
  size_t have = 0, bytes = size_ * sizeof(const Field*);
  for (const Chunk* chunk = chunks_; chunk != nullptr; chunk = chunk->next) have += sizeof(Chunk) + chunk->capacity;
  for (uint32_t i = own; i < size_; ++i) bytes += fields_[i]->interned() ? 0 : fields_[i]->bytes_taken();
  if (sizeof(Chunk) + bytes + kWorthBytes > have || (run_ != nullptr && own == 0)) return;
  Chunk* const old = std::exchange(chunks_, nullptr);
  chunks_ =
      new (NewChunk(sizeof(Chunk) + bytes)) Chunk{nullptr, static_cast<uint32_t>(bytes), static_cast<uint32_t>(bytes)};
  auto** fields = reinterpret_cast<const Field**>(chunks_->data());
  char* to = chunks_->data() + size_ * sizeof(const Field*);
  for (uint32_t i = 0; i < size_; ++i) {
    const Field* field = fields_[i];
    if (i >= own && !field->interned()) {
      const size_t taken = field->bytes_taken();
      field = static_cast<const Field*>(std::memcpy(to, field, taken));
      to += taken;
    }
    fields[i] = field;
  }
  fields_ = fields;
  capacity_ = size_;
  FreeChunks(old);
}

HeaderList& HeaderList::operator=(HeaderList&& other) noexcept {
  if (this == &other) return *this;
  Clear();
  table_ = other.table_;
  fields_ = std::exchange(other.fields_, nullptr);
  size_ = std::exchange(other.size_, 0);
  capacity_ = std::exchange(other.capacity_, 0);
  chunks_ = std::exchange(other.chunks_, nullptr);
  run_ = std::exchange(other.run_, nullptr);
  hpack_size_ = std::exchange(other.hpack_size_, 0);
  return *this;
}

HeaderList HeaderList::Clone() const {
  HeaderList copy;
  for (const Field* from : *this) {
    const size_t bytes = size_t{from->name_size} + from->value_size;
    Field* field = copy.StartField(bytes);
    *field = *from;
    field->id = 0;
    field->refs = 0;
    std::memcpy(field->bytes(), from->bytes(), bytes);
    copy.FinishField(field);
  }
  return copy;
}

}  // namespace sluice::http2
