# The programs are built as SLUICE_HARDEN says: read from the ELF file itself (x86-64).
#
#   harden_test.py [--cet] [--protected=N] PROGRAM...   exit 0, or 1 with a line for each thing that is missing. N: how many places
#                                the stack protector must have at least, so that a library built without it is seen.
#                                --cet: marked for control-flow enforcement too
#   harden_test.py --commands=FILE [--data-path=A,B]   the same of compile_commands.json: no file of src/ and cmd/ is compiled without
#                                its flags. A, B: layers without checked libc calls, and with the lesser stack protector
#   harden_test.py --self-test   that the reader sees what is missing, in programs that it builds without
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

ET_DYN, PT_LOAD, PT_DYNAMIC, PT_INTERP = 3, 1, 2, 3
PT_GNU_STACK, PT_GNU_RELRO, PT_GNU_PROPERTY = 0x6474E551, 0x6474E552, 0x6474E553
GNU_PROPERTY_X86_FEATURE_1_AND, IBT, SHSTK = 0xC0000002, 1, 2
DT_NULL, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_FLAGS, DT_FLAGS_1, DT_TEXTREL = 0, 5, 6, 10, 30, 0x6FFFFFFB, 22
DF_TEXTREL, DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 4, 8, 1, 0x08000000
WRITE, EXECUTE = 2, 1


class Elf:
    """As much of a 64-bit little-endian ELF file as is needed here."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(path + ": not a 64-bit little-endian ELF file")
        self.type, = struct.unpack_from("<H", self.data, 16)
        offset, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        # type, flags, offset, virtual address, physical address, size in the file, size in memory, alignment
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.data, offset + i * size) for i in range(count)]
        self.dynamic = {}
        for segment in self.of_type(PT_DYNAMIC):
            for at in range(segment[2], segment[2] + segment[5], 16):
                tag, value = struct.unpack_from("<QQ", self.data, at)
                if tag == DT_NULL:
                    break
                self.dynamic[tag] = value

    def canaries(self):
        """Places in code that use the stack protector's secret, %fs:0x28 (x86-64)."""
        code = b"".join(self.data[s[2]:s[2] + s[5]] for s in self.of_type(PT_LOAD) if s[1] & EXECUTE)
        return len(re.findall(rb"\x64[\x48\x4c].[\x04\x0c\x14\x1c\x24\x2c\x34\x3c]\x25\x28\x00\x00\x00", code, re.DOTALL))

    def features(self):
        """What the linker says of control-flow enforcement: bits of GNU_PROPERTY_X86_FEATURE_1_AND."""
        for segment in self.of_type(PT_GNU_PROPERTY):
            at, end = segment[2] + 16, segment[2] + segment[5]  # behind the note's header and its name
            while at + 8 <= end:
                kind, size = struct.unpack_from("<II", self.data, at)
                if kind == GNU_PROPERTY_X86_FEATURE_1_AND:
                    return struct.unpack_from("<I", self.data, at + 8)[0]
                at += 8 + (size + 7) // 8 * 8
        return 0

    def of_type(self, kind):
        return [segment for segment in self.segments if segment[0] == kind]

    def symbols(self):
        """Names the dynamic linker looks for or gives: all of its string table."""
        address, size = self.dynamic.get(DT_STRTAB, 0), self.dynamic.get(DT_STRSZ, 0)
        for segment in self.of_type(PT_LOAD):
            if segment[3] <= address < segment[3] + segment[5]:
                start = segment[2] + address - segment[3]
                return set(self.data[start:start + size].decode("utf-8", "replace").split("\0"))
        return set()


def missing(path, places_min, cet):
    """What is not as it should be, a line each."""
    elf = Elf(path)
    flags, flags_1 = elf.dynamic.get(DT_FLAGS, 0), elf.dynamic.get(DT_FLAGS_1, 0)
    symbols = elf.symbols()
    checks = [
        ("PIE", elf.type == ET_DYN and elf.of_type(PT_INTERP) and flags_1 & DF_1_PIE),
        ("RELRO", elf.of_type(PT_GNU_RELRO)),
        ("BIND_NOW", flags & DF_BIND_NOW or flags_1 & DF_1_NOW),
        ("stack that cannot be executed", elf.of_type(PT_GNU_STACK) and not elf.of_type(PT_GNU_STACK)[0][1] & EXECUTE),
        ("no segment both written and executed",
         not any(s[1] & WRITE and s[1] & EXECUTE for s in elf.of_type(PT_LOAD))),
        ("no relocations in code", DT_TEXTREL not in elf.dynamic and not flags & DF_TEXTREL),
        ("stack protector", "__stack_chk_fail" in symbols and elf.canaries() >= places_min),
        ("checked libc calls", any(s.startswith("__") and s.endswith("_chk") for s in symbols)),
        ("marks of control-flow enforcement", not cet or elf.features() & (IBT | SHSTK) == IBT | SHSTK),
    ]
    return [name for name, good in checks if not good]


def last(words, pattern):
    """Of the words that are like that the last, which is the one that counts; empty if there is none."""
    return ([""] + [word for word in words if re.fullmatch(pattern, word)])[-1]


def missing_flags(commands, data_path):
    """A line for each file of ours that is compiled without what it must have."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    lines, seen = [], 0
    for entry in commands:
        name = os.path.relpath(os.path.join(entry["directory"], entry["file"]), root)
        words = entry["command"].split()
        if not re.match(r"(src|cmd)/", name) or re.search(r" -o tests/", entry["command"]):
            continue  # the latter: compiled once more into a test
        seen += 1
        lesser = name.startswith("src/") and name.split("/")[1] in data_path
        expected = [("-f(no-)?stack-protector.*", "-fstack-protector" if lesser else "-fstack-protector-strong"),
                    ("-f(no-)?stack-clash-protection", "-fstack-clash-protection"),
                    ("-[UD]_FORTIFY_SOURCE.*", "-U_FORTIFY_SOURCE" if lesser else "-D_FORTIFY_SOURCE=3")]
        lines += [f"{name}: {flag}: missing" for pattern, flag in expected if last(words, pattern) != flag]
    return lines if seen > 0 else ["no file of src/ or cmd/ in it"]


SOURCE = r"""
#include <cstdio>
#include <cstring>
#ifdef TEXT_RELOCATION
__asm__(".text\n.quad main\n");
#endif
int main(int argc, char** argv) {
  char copy[64];
  std::memcpy(copy, argv[0], argc * 8);
  std::snprintf(copy, argc, "%s", argv[0]);
  return copy[argc];
}
"""
GOOD = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3", "-fstack-protector-strong", "-fPIE", "-pie",
        "-Wl,-z,relro,-z,now,-z,noexecstack"]
WITHOUT = [  # flags added to the good ones, and what must be found missing
    (["-no-pie"], "PIE"),
    (["-Wl,-z,norelro"], "RELRO"),
    (["-Wl,-z,lazy"], "BIND_NOW"),
    (["-Wl,-z,execstack"], "stack that cannot be executed"),
    (["-DTEXT_RELOCATION", "-Wl,-z,notext"], "no relocations in code"),
    (["-fno-stack-protector"], "stack protector"),
    (["-U_FORTIFY_SOURCE"], "checked libc calls"),
]


def self_test():
    compiler = os.environ.get("CXX", "c++")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "a.cc"), os.path.join(folder, "a")
        with open(source, "w", encoding="utf-8") as file:
            file.write(SOURCE)

        def expect(name, found, expected):
            if (expected is None and found) or (expected is not None and expected not in found):
                print(f"self-test: {name}: expected {expected}, found {found}")
                return 1
            return 0

        for more, expected in [([], None)] + WITHOUT:
            subprocess.run([compiler, *GOOD, *more, source, "-o", program], check=True)
            failed |= expect(more, missing(program, 1, False), expected)
        subprocess.run([compiler, *GOOD, source, "-o", program], check=True)
        failed |= expect("few protected functions", missing(program, 1000, False), "stack protector")
        # No linker flag makes such a program with shared libraries: all code made writable by hand.
        with open(program, "rb") as file:
            data = bytearray(file.read())
        offset, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        for at in range(offset, offset + size * count, size):
            kind, bits = struct.unpack_from("<II", data, at)
            if kind == PT_LOAD and bits & EXECUTE:
                struct.pack_into("<I", data, at + 4, bits | WRITE)
        with open(program + ".rwx", "wb") as file:
            file.write(data)
        failed |= expect("writable code", missing(program + ".rwx", 1, False), "no segment both written and executed")
        good = "c++ -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection"
        lesser = good + " -U_FORTIFY_SOURCE -fstack-protector"
        for name, command, few in [("src/admin/a.cc", good, True), ("src/http2/a.cc", lesser, True), ("src/admin/a.cc", lesser, False),
                                   ("cmd/a.cc", "c++", False), ("src/http2/a.cc", lesser + " -fno-stack-protector", False),
                                   ("tests/a.cc", good, False), ("src/http2/a.cc", "c++", False)]:
            entry = {"directory": os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."), "file": name, "command": command}
            failed |= expect(name + " " + command, [] if (missing_flags([entry], ["http2"]) == []) == few else ["a verdict"], None)
        # Whether the C library carries the marks or not: the reader must see what the linker was told to write.
        subprocess.run([compiler, *GOOD, "-Wl,-z,ibt,-z,shstk", source, "-o", program], check=True)
        failed |= expect("marked", missing(program, 1, True), None)
        subprocess.run([compiler, *GOOD, "-fcf-protection=none", source, "-o", program], check=True)
        failed |= expect("not marked", missing(program, 1, True), "marks of control-flow enforcement")
    return failed


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    failed, places_min, cet, data_path = 0, 1, False, []
    for word in sorted(sys.argv[1:], key=lambda word: word.startswith("--commands=")):
        if word == "--cet":
            cet = True
        elif word.startswith("--protected="):
            places_min = int(word.split("=")[1])
        elif word.startswith("--data-path="):
            data_path = word.split("=")[1].split(",")
        elif word.startswith("--commands="):
            with open(word.split("=")[1], encoding="utf-8") as file:
                for line in missing_flags(json.load(file), data_path):
                    print(line + " (SLUICE_HARDEN)")
                    failed = 1
        else:
            for name in missing(word, places_min, cet):
                print(f"{word}: {name}: missing (SLUICE_HARDEN)")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
