// InternTable and HeaderList: a header field is spelled once and then passed by pointer.
//
// A field that HPACK decodes from (or adds to) its dynamic table is *interned*: one Field per worker for
// equal name and value, classified once (Token), with an id that encoders remember. A repeated gRPC header
// block costs table look-ups. A field sent as a literal without indexing is *transient*: it lives in the
// arena of the HeaderList it came in.
//
// Thread safety: none. Interned Fields, their counts and the InternTable belong to one worker. A HeaderList
// that goes to another worker goes as a Clone made transient there; the original returns home to be
// destroyed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "http2/fields/field.h"

namespace sluice::http2 {

// Fields that came in this order before: the front of a repeated header block. A HeaderList refers to the run as a
// whole instead of counting or copying each of its fields; what has been found out about them, or spelled of them, is
// remembered by the run (decoder.h, encoder.h, validate.cc). Transient fields lie in the run itself. Immutable but for
// the count and the summary. One worker only.
struct FieldRun {
  enum class Check : uint8_t { kNotYet, kWellFormed, kBroken };
  enum class Canonical : uint8_t { kNotYet, kYes, kNo };

  uint32_t refs;
  uint32_t count;                        // of fields, at least 1
  uint64_t id;                           // unique in the process, never reused
  size_t hpack_size;                     // sum over the fields
  uint64_t tokens = 0;                   // bit T: a field with token T is among them
  std::array<uint8_t, kTokens> first{};  // by token: the index of its first field
  // Of the walk over the run alone (validate.cc).
  Check check = Check::kNotYet;
  bool regular = false;  // there are fields that are no pseudo-headers
  uint32_t pseudo = 0;   // bit T: pseudo-header T
  int64_t content_length = -1;
  // What it says of the request is whole and legal, and the method is neither HEAD nor CONNECT.
  bool request_line = false;
  bool trailers = false;  // legal as trailers by itself
  uint16_t status = 0;    // legal as a response's headers by itself: the :status. 0: it is not, or that is not known
  Canonical canonical = Canonical::kNotYet;  // every field is in its one spelling (proxy/canonical/request.cc)

  static constexpr uint32_t kCountMax = 32;
  static constexpr size_t kLiteralBytesMax = 448;  // of the transient fields, with their headers
  const Field* const* fields() const { return reinterpret_cast<const Field* const*>(this + 1); }
  bool has(Token token) const { return (tokens >> static_cast<uint32_t>(token) & 1) != 0; }
};

// The interned fields of one worker. Entries live while they have a holder, so its size is bounded by the
// tables and header lists alive. Must outlive every HeaderList and HPACK table that uses it (checked when it
// is destroyed).
class InternTable {
 public:
  InternTable();
  ~InternTable();
  InternTable(const InternTable&) = delete;
  InternTable& operator=(const InternTable&) = delete;

  // The field, with one reference added for the caller. `indexing` is kIndexed. What is in the static table
  // is returned as the static field.
  const Field* Intern(std::string_view name, std::string_view value);
  // Entry `index` (1..61) of the static table, as a Field that lives for ever; counting it is harmless.
  static const Field* Static(size_t index);

  static void Ref(const Field* field) {
    if (field->counted()) ++const_cast<Field*>(field)->refs;
  }
  // Drops a reference; the last one frees the field.
  void Unref(const Field* field) {
    if (field->counted() && --const_cast<Field*>(field)->refs == 0) Free(const_cast<Field*>(field));
  }

  size_t size() const;

  // A run of these, or of as many from the first on as there is room for; counts or copies each. One reference is the
  // caller's. Null: not even the first has room.
  FieldRun* MakeRun(const Field* const* fields, size_t count);
  void UnrefRun(FieldRun* run) {
    if (--run->refs == 0) FreeRun(run);
  }

 private:
  struct Impl;
  void Free(Field* field);
  void FreeRun(FieldRun* run);

  std::unique_ptr<Impl> impl_;
};

// An ordered list of fields: a request's or response's header block or trailers.
//
// Six words, cheap to move: the pointers to the fields live in the arena with the transient fields, or, as long as
// nothing follows it, in the run that the list begins with. The arena's first chunk holds what a gRPC request has
// beside a run, and chunks are recycled through a free list of the thread.
class HeaderList {
 public:
  HeaderList() = default;  // may hold transient and static fields only
  explicit HeaderList(InternTable* table) : table_(table) {}
  // The list moved from is empty.
  HeaderList(HeaderList&& other) noexcept
      : table_(other.table_),
        fields_(std::exchange(other.fields_, nullptr)),
        chunks_(std::exchange(other.chunks_, nullptr)),
        run_(std::exchange(other.run_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)),
        hpack_size_(std::exchange(other.hpack_size_, 0)) {}
  HeaderList& operator=(HeaderList&& other) noexcept;
  ~HeaderList() {
    if (chunks_ != nullptr || run_ != nullptr) Clear();
  }

  // Appends a copy of the bytes as a transient field.
  const Field* Add(std::string_view name, std::string_view value, Indexing indexing = Indexing::kLiteral);
  // Appends an interned or static field; takes over one reference of the caller.
  void AddInterned(const Field* field) { Append(field); }
  // Makes `run` the front of this list, which is empty and has a table. The run's transient fields are then not the
  // list's own: they stay where they are until the next Remove(), Set() or Clear().
  void AddRun(FieldRun& run);
  // What the list begins with; its count tells how many fields. Null: nothing that has come before.
  FieldRun* run() const { return run_; }
  // The first field with that token (not kOther) or name; null if there is none.
  const Field* Find(Token token) const {
    uint32_t i = 0;
    if (run_ != nullptr) {
      if (run_->has(token)) return fields_[run_->first[static_cast<size_t>(token)]];
      i = run_->count;
    }
    for (; i < size_; ++i) {
      if (fields_[i]->token == token) return fields_[i];
    }
    return nullptr;
  }
  const Field* Find(std::string_view name) const;
  // Where a search for fields with that token, kOther too, may begin: none stands before. end(): not known to be one.
  const Field* const* FirstOf(Token token) const {
    if (run_ == nullptr) return fields_;
    return fields_ + (run_->has(token) ? run_->first[static_cast<size_t>(token)] : run_->count);
  }
  // Whether a field has one of these tokens: bit T is token T's.
  bool HasAny(uint64_t tokens) const {
    uint32_t i = 0;
    if (run_ != nullptr) {
      if ((run_->tokens & tokens) != 0) return true;
      i = run_->count;
    }
    for (; i < size_; ++i) {
      if ((tokens >> static_cast<uint32_t>(fields_[i]->token) & 1) != 0) return true;
    }
    return false;
  }
  // Removes all fields with that token. Order of the others stays; pointers to transient ones do not.
  void Remove(Token token);
  // The same of a name, which is in lower case.
  void Remove(std::string_view name);
  // Replaces the first with that token in place (or appends) by a transient one, removes the others. name and
  // value may point into a field that goes. Pointers to transient fields do not stay good.
  void Set(Token token, std::string_view name, std::string_view value);
  void Clear();
  // For a list that is kept for long: gives back memory that is not used, where that is much. Pointers to transient
  // fields do not stay good.
  void Compact();
  // Gives back to the heap what this thread keeps for later lists.
  static void TrimSpares();
  // A deep copy whose fields are all transient (their Indexing kept), valid on any worker.
  HeaderList Clone() const;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Field& operator[](size_t i) const { return *fields_[i]; }
  const Field* const* begin() const { return fields_; }
  const Field* const* end() const { return fields_ + size_; }
  // RFC 9113 6.5.2 SETTINGS_MAX_HEADER_LIST_SIZE: the sum of hpack_size().
  size_t hpack_size() const { return hpack_size_; }

  // To spell a field in place (the HPACK decoder): memory for a transient Field and up to bytes_max
  // bytes of name and value. Fill bytes(), the sizes and all other members, then FinishField() appends it.
  // Without FinishField() the memory is used again. Nothing else may be called in between.
  Field* StartField(size_t bytes_max);
  void FinishField(Field* field);

 private:
  // A piece of memory for pointers and transient fields, newest first.
  struct Chunk;

  // Not of a run: the list's own pointers.
  const Field** slots() { return const_cast<const Field**>(fields_); }
  void Append(const Field* field) {
    if (size_ == capacity_) Grow();
    slots()[size_++] = field;
    hpack_size_ += static_cast<uint32_t>(field->hpack_size());
  }
  void Grow();
  void LeaveRun();
  // Removes the fields with `token` from place `first` on; none of them is in the run.
  void RemoveFrom(uint32_t first, Token token);
  template <typename Goes>
  void RemoveIf(uint32_t first, Goes goes);
  Chunk* Room(size_t bytes);
  Chunk* AddChunk(size_t bytes);
  static void FreeChunks(Chunk* chunks);
  void Release(const Field* field) {
    if (field->counted()) table_->Unref(field);
  }

  InternTable* table_ = nullptr;
  const Field* const* fields_ = nullptr;  // in the newest large enough chunk, or in run_
  Chunk* chunks_ = nullptr;
  FieldRun* run_ = nullptr;  // holds a reference; its fields are the first, and not counted by the list
  uint32_t size_ = 0;
  uint32_t capacity_ = 0;
  uint32_t hpack_size_ = 0;  // a list is far below 4 GiB: decoders bound it, and what the proxy adds is short
  // Last, so that what is derived has room in the padding behind it.
};

}  // namespace sluice::http2
