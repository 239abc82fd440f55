#include "http2/fields/respell.h"

#include <algorithm>

namespace sluice::http2 {
namespace {

constexpr size_t kNameBytesMax = 64;

// `value` without blanks at its ends; `*front` and `*back` are those.
std::string_view Trim(std::string_view value, std::string_view* front, std::string_view* back) {
  size_t begin = 0, end = value.size();
  while (begin < end && base::IsBlank(value[begin])) ++begin;
  while (end > begin && base::IsBlank(value[end - 1])) --end;
  *front = value.substr(0, begin);
  *back = value.substr(end);
  return value.substr(begin, end - begin);
}

void AppendEncoded(std::string_view blanks, std::string* out) {
  for (char c : blanks) out->append(c == ' ' ? "%20" : "%09");
}

// For messages and logs: letters, digits and "-_." as they are.
std::string ShownName(std::string_view name) {
  std::string shown(name.substr(0, kNameBytesMax));
  for (char& c : shown) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (!plain) c = '?';
  }
  return shown;
}

class Builder {
 public:
  Builder(InternTable& interns, size_t count_max) : interns_(interns), count_max_(count_max) {
    out.fields = HeaderList(&interns);
  }

  void Take(const Field& field) {
    if (out.too_many) return;  // no more work is done for it
    if (IsPseudo(field.token)) return Keep(field);
    std::string_view front, back;
    const std::string_view value = Trim(field.value(), &front, &back);
    const bool blanks = value.size() != field.value_size;
    if (blanks) ++out.blanks;
    if (IsBinName(field.name())) return TakeBin(field, value, blanks);
    if (!blanks) return Keep(field);
    if (field.token != Token::kGrpcMessage) return Add(field, value);
    std::string message;
    AppendEncoded(front, &message);
    message.append(value);
    AppendEncoded(back, &message);
    Add(field, message);
  }

  Respelled out;

 private:
  void TakeBin(const Field& field, std::string_view value, bool blanks) {
    if (static_cast<size_t>(std::count(value.begin(), value.end(), ',')) >= count_max_) {
      out.too_many = true;
      return;
    }
    const BinForm form = field.name_size > 4 ? FormOfBin(value) : BinForm::kBroken;  // no name is left of "-bin"
    if (form == BinForm::kBroken) {
      if (out.undecodable++ == 0) out.first_undecodable = ShownName(field.name());
      return;
    }
    if (form == BinForm::kCanonical) return blanks ? Add(field, value) : Keep(field);
    ++out.bin;
    bool more = true;
    while (more && !out.too_many) {
      const auto member = CanonicalBin(TakeBinMember(&value, &more));
      Add(field, member.value_or(std::string()));
    }
  }

  void Keep(const Field& field) {
    if (!field.interned()) {
      Add(field, field.value());
    } else if (HasRoom()) {
      InternTable::Ref(&field);
      out.fields.AddInterned(&field);
    }
  }

  // As the sender wanted it indexed.
  void Add(const Field& field, std::string_view value) {
    if (!HasRoom()) return;
    if (field.interned()) {
      out.fields.AddInterned(interns_.Intern(field.name(), value));
    } else {
      out.fields.Add(field.name(), value, field.indexing);
    }
  }

  bool HasRoom() {
    out.too_many |= out.fields.size() >= count_max_;
    return !out.too_many;
  }

  InternTable& interns_;
  const size_t count_max_;
};

}  // namespace

Spelling SpellingOfBin(const Field& field) {
  const bool plain = field.name_size > 4 && FormOfBin(field.value()) == BinForm::kCanonical;
  return plain ? Spelling::kPlain : Spelling::kOther;
}

Respelled Respell(InternTable& interns, const HeaderList& fields, size_t count_max) {
  Builder builder(interns, count_max);
  for (const Field* field : fields) builder.Take(*field);
  return std::move(builder.out);
}

}  // namespace sluice::http2
