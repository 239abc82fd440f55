// The main of a fuzz target in a build without libFuzzer: gives each file named, or of each directory named, to the
// target once, in the order of their names. What the target finds wrong ends the process; the last name printed is the
// file's.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::printf("%s\n", file.filename().c_str());
    std::fflush(stdout);
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "%s cannot be read\n", file.c_str());
      return 1;
    }
    const std::vector<char> text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    // Of the exact size, so that ASan sees a read behind its end.
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }
  LLVMFuzzerTestOneInput(nullptr, 0);
  std::printf("%zu inputs\n", files.size() + 1);
  return files.empty() ? 1 : 0;  // a corpus that is not there shows nothing
}
