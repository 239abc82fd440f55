#include "handover/record_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace sluice::handover {
namespace {

using base::ErrorKind;
using Strings = std::vector<std::string>;

Descriptor Write(const Strings& records) {
  auto writer = RecordWriter::Open();
  EXPECT_TRUE(writer.ok());
  for (const std::string& record : records) writer->Add(record);
  auto file = writer->Finish();
  EXPECT_TRUE(file.ok());
  return std::move(*file);
}

Strings Read(const Descriptor& file) {
  Strings out;
  const auto status = ReadRecordFile(file, [&](std::string_view record) {
    out.emplace_back(record);
    return true;
  });
  EXPECT_TRUE(status.ok()) << status.error().detail;
  return out;
}

// Of `bytes`, in a file that is sealed or not.
Descriptor FileOf(std::string_view bytes, bool sealed) {
  Descriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  if (sealed) {
    EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 0);
  }
  return file;
}

TEST(RecordFileTest, ReadsWhatWasWritten) {
  const Strings records{"", "a", std::string(127, 'b'), std::string(128, 'c'), std::string(3 << 20, 'd'), "e"};
  EXPECT_EQ(Read(Write(records)), records);
  EXPECT_EQ(Read(Write({})), Strings());
}

TEST(RecordFileTest, TheFileCannotBeWrittenAnyMore) {
  const Descriptor file = Write({"a"});
  EXPECT_EQ(::pwrite(file.get(), "x", 1, 0), -1);
  EXPECT_NE(::ftruncate(file.get(), 0), 0);
}

TEST(RecordFileTest, RefusesAFileThatMayStillChange) {
  const auto status =
      ReadRecordFile(FileOf("SLUICEHO\1\0\0\0", /*sealed=*/false), [](std::string_view) { return true; });
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalidArgument);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor read_end(ends[0]), write_end(ends[1]);
  EXPECT_FALSE(ReadRecordFile(read_end, [](std::string_view) { return true; }).ok());
}

TEST(RecordFileTest, NamesThePlaceOfWhatIsWrong) {
  const auto wrong = [](std::string_view bytes, bool good = true) {
    const auto status = ReadRecords(bytes, [good](std::string_view) { return good; });
    return status.ok() ? std::string() : status.error().detail;
  };
  const std::string head("SLUICEHO\1\0\0\0", 12);
  EXPECT_NE(wrong("").find("byte 0"), std::string::npos);
  EXPECT_NE(wrong("SLUICEHO").find("no file of records"), std::string::npos);
  EXPECT_NE(wrong(std::string("SLUICEXX\1\0\0\0", 12)).find("no file of records"), std::string::npos);
  EXPECT_NE(wrong(std::string("SLUICEHO\2\0\0\0", 12)).find("format 2"), std::string::npos);
  EXPECT_EQ(wrong(head), "");
  EXPECT_NE(wrong(head + "\x05"
                         "abc")
                .find("byte 13"),
            std::string::npos);
  EXPECT_NE(wrong(head + "\x80\x80\x80\x80\x80\x80").find("does not end"), std::string::npos);
  EXPECT_NE(wrong(head + "\x01"
                         "a\x01"
                         "b",
                  false)
                .find("no record"),
            std::string::npos);
}

TEST(RecordFileTest, EveryCutIsFoundOrAtABound) {
  std::string bytes("SLUICEHO\1\0\0\0", 12);
  for (int i = 0; i < 5; ++i) bytes += std::string(1, static_cast<char>(i)) + std::string(static_cast<size_t>(i), 'x');
  for (size_t cut = 12; cut <= bytes.size(); ++cut) {
    size_t records = 0, total = 12;
    const auto status = ReadRecords(std::string_view(bytes).substr(0, cut), [&](std::string_view record) {
      ++records;
      total += 1 + record.size();
      return true;
    });
    EXPECT_EQ(status.ok(), total == cut) << cut;
  }
}

}  // namespace
}  // namespace sluice::handover
