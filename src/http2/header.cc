// HeaderList and the pool of its chunks.
#include "http2/header.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "http2/hpack/static_table.h"

namespace sluice::http2 {

struct HeaderList::Chunk {
  Chunk* next;
  uint32_t capacity;  // of data()
  uint32_t used;

  char* data() { return reinterpret_cast<char*>(this + 1); }
};

namespace {

// The smaller chunk holds the pointers of 16 fields and five literals of 30 bytes, which is what a gRPC request has of its
// own; the larger one a token or a cookie beside. Every call under way holds a chunk, hence not larger ones at once.
constexpr size_t kChunkBytes[] = {512, 2048};
// Chunks a thread keeps for later: 1 MiB of each. Above that they go back to the heap.
constexpr uint32_t kSpareChunksMax[] = {2048, 512};
constexpr uint32_t kFirstFields = 16;

// The pool is a plain struct, so that it can be used by destructors that run late in the thread's life;
// PoolCloser empties and closes it when the thread ends.
struct SpareChunk {
  SpareChunk* next;
};
struct ChunkPool {
  SpareChunk* head[2];
  uint32_t count[2];
  bool registered, closed;
};
constinit thread_local ChunkPool pool_{};

struct PoolCloser {
  ~PoolCloser() {
    pool_.closed = true;
    for (SpareChunk*& head : pool_.head) {
      while (head != nullptr) ::operator delete(std::exchange(head, head->next));
    }
  }
  void Touch() {}
};

// Both never inlined: a list may be used in a coroutine, whose thread changes while clang 14 keeps the
// address of a thread-local across the suspension.
[[gnu::noinline]] void* TakeChunk(size_t size_class) {
  if (SpareChunk* chunk = pool_.head[size_class]) {
    pool_.head[size_class] = chunk->next;
    --pool_.count[size_class];
    return chunk;
  }
  return ::operator new(kChunkBytes[size_class]);
}

[[gnu::noinline]] void GiveChunk(void* memory, size_t size_class) {
  if (!pool_.registered) {
    static thread_local PoolCloser closer;
    closer.Touch();
    pool_.registered = true;
  }
  if (pool_.closed || pool_.count[size_class] == kSpareChunksMax[size_class]) return ::operator delete(memory);
  pool_.head[size_class] = new (memory) SpareChunk{pool_.head[size_class]};
  ++pool_.count[size_class];
}

constexpr size_t AlignUp(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

}  // namespace

// The newest chunk, with room for `bytes` (a multiple of 8).
HeaderList::Chunk* HeaderList::Room(size_t bytes) {
  if (chunks_ != nullptr && chunks_->capacity - chunks_->used >= bytes) return chunks_;
  SLUICE_CHECK(bytes < UINT32_MAX);
  size_t capacity = bytes;
  void* memory = nullptr;
  for (size_t size_class = 0; size_class < std::size(kChunkBytes) && memory == nullptr; ++size_class) {
    if (sizeof(Chunk) + bytes > kChunkBytes[size_class]) continue;
    capacity = kChunkBytes[size_class] - sizeof(Chunk);
    memory = TakeChunk(size_class);
  }
  if (memory == nullptr) memory = ::operator new(sizeof(Chunk) + capacity);
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
  if (size_ == capacity_)
    Grow();  // now, so that FinishField() finds its memory at the end of the newest chunk
  Chunk* chunk = Room(AlignUp(sizeof(Field) + bytes_max));
  return reinterpret_cast<Field*>(chunk->data() + chunk->used);
}

void HeaderList::FinishField(Field* field) {
  chunks_->used += static_cast<uint32_t>(AlignUp(sizeof(Field) + field->name_size + field->value_size));
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
  hpack_size_ = run.hpack_size;
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
    const size_t bytes = AlignUp(sizeof(Field) + field->name_size + field->value_size);
    Chunk* chunk = Room(bytes);
    slots()[i] = static_cast<const Field*>(std::memcpy(chunk->data() + chunk->used, field, bytes));
    chunk->used += static_cast<uint32_t>(bytes);
  }
  table_->UnrefRun(std::exchange(run_, nullptr));
}

void HeaderList::Remove(Token token) {
  if (Find(token) == nullptr) return;
  LeaveRun();
  uint32_t kept = 0;
  for (uint32_t i = 0; i < size_; ++i) {
    const Field* field = fields_[i];
    if (field->token != token) {
      slots()[kept++] = field;
      continue;
    }
    hpack_size_ -= field->hpack_size();
    Release(field);  // a transient one's memory goes with the list
  }
  size_ = kept;
}

void HeaderList::Set(Token token, std::string_view name, std::string_view value) {
  Add(name, value);  // before anything goes: the bytes may be a field's
  if (run_ != nullptr && (run_->tokens >> static_cast<uint32_t>(token) & 1) != 0) LeaveRun();
  const Field* added = fields_[--size_];
  hpack_size_ -= added->hpack_size();
  uint32_t place = 0;
  while (place < size_ && fields_[place]->token != token) ++place;
  if (place == size_) return Append(added);

  hpack_size_ += added->hpack_size() - fields_[place]->hpack_size();
  const Field* replaced = std::exchange(slots()[place], added);
  Release(replaced);
  // The others with that token, without the one just placed, which may have it too.
  uint32_t kept = place + 1;
  for (uint32_t i = kept; i < size_; ++i) {
    const Field* field = fields_[i];
    if (field->token != token) {
      slots()[kept++] = field;
      continue;
    }
    hpack_size_ -= field->hpack_size();
    Release(field);
  }
  size_ = kept;
}

void HeaderList::Clear() {
  for (uint32_t i = run_ != nullptr ? run_->count : 0; i < size_; ++i) Release(fields_[i]);
  if (run_ != nullptr) table_->UnrefRun(std::exchange(run_, nullptr));
  fields_ = nullptr;
  size_ = capacity_ = 0;
  hpack_size_ = 0;
  while (chunks_ != nullptr) {
    Chunk* chunk = std::exchange(chunks_, chunks_->next);
    const size_t bytes = sizeof(Chunk) + chunk->capacity;  // a class's size exactly, or not of the pool
    if (bytes == kChunkBytes[0]) {
      GiveChunk(chunk, 0);
    } else if (bytes == kChunkBytes[1]) {
      GiveChunk(chunk, 1);
    } else {
      ::operator delete(chunk);
    }
  }
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
