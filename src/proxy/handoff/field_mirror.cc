#include "proxy/handoff/field_mirror.h"

#include <cstring>

#include "base/check.h"

namespace sluice::proxy {

size_t MirrorSender::Write(const http2::HeaderList& fields, uint8_t* out) {
  const auto count = static_cast<uint32_t>(fields.size());
  std::memcpy(out, &count, sizeof count);
  uint8_t* code = out + sizeof count;
  uint8_t* record = out + AlignUp(sizeof count + count * sizeof(uint16_t));
  for (const http2::Field* field : fields) {
    uint16_t value = kTransient;
    if (field->interned()) {
      const size_t slot = field->id % kSlots;
      if (!field->counted()) {
        value = static_cast<uint16_t>(field->id);
      } else if (sent_[slot] == field->id) {
        value = static_cast<uint16_t>(kSlotCodes + slot);
      } else if (size_t{field->name_size} + field->value_size <= kMirroredBytesMax) {
        sent_[slot] = field->id;
        value = kDefine;
      }
    }
    std::memcpy(code, &value, sizeof value);
    code += sizeof value;
    if (value < kDefine) continue;
    std::memcpy(record, static_cast<const void*>(field), sizeof(http2::Field) + field->name_size + field->value_size);
    record += field->bytes_taken();
  }
  return static_cast<size_t>(record - out);
}

MirrorReceiver::~MirrorReceiver() {
  for (const http2::Field* field : known_) {
    if (field != nullptr) interns_.Unref(field);
  }
}

http2::HeaderList MirrorReceiver::Read(const uint8_t* in) {
  http2::HeaderList out(&interns_);
  uint32_t count;
  std::memcpy(&count, in, sizeof count);
  const uint8_t* code = in + sizeof count;
  const uint8_t* record = in + AlignUp(sizeof count + count * sizeof(uint16_t));
  for (uint32_t i = 0; i < count; ++i, code += sizeof(uint16_t)) {
    uint16_t value;
    std::memcpy(&value, code, sizeof value);
    if (value < kSlotCodes) {
      out.AddInterned(http2::InternTable::Static(value));
      continue;
    }
    if (value < kDefine) {
      const http2::Field* field = known_[value - kSlotCodes];
      SLUICE_DCHECK(field != nullptr);
      http2::InternTable::Ref(field);
      out.AddInterned(field);
      continue;
    }
    const auto* from = reinterpret_cast<const http2::Field*>(record);
    record += from->bytes_taken();
    if (value == kDefine) {
      const http2::Field* field = interns_.Intern(from->name(), from->value());
      const http2::Field*& known = known_[from->id % kSlots];
      if (known != nullptr) interns_.Unref(known);
      known = field;
      http2::InternTable::Ref(field);
      out.AddInterned(field);
      continue;
    }
    const size_t bytes = size_t{from->name_size} + from->value_size;
    http2::Field* field = out.StartField(bytes);
    std::memcpy(static_cast<void*>(field), static_cast<const void*>(from), sizeof(http2::Field) + bytes);
    field->id = 0;
    field->refs = 0;
    out.FinishField(field);
  }
  return out;
}

}  // namespace sluice::proxy
