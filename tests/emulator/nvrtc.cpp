// SPDX-License-Identifier: Apache-2.0
// An NVRTC that hands CUDA C++ to the C++ compiler ($CXX or g++) with shim.h in front and gives the shared library back
// as the "cubin". Libraries are kept in PENSTOCK_EMULATOR_CACHE by the preprocessed text. g++ reads shim.h precompiled
// (see build.py): nine tenths of the text would otherwise be that of the standard library's headers.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default"))) int

namespace {

struct Program {
  std::string source, log, image;
};

std::string quoted(const std::string &s) { return "'" + s + "'"; }

std::string read_file(const std::string &path) {
  std::ifstream f(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), std::istreambuf_iterator<char>()};
}

std::string folder_of_this() {
  Dl_info info;
  dladdr((void *)folder_of_this, &info);
  return std::string(info.dli_fname).substr(0, std::string(info.dli_fname).rfind('/'));
}

std::string cache_folder() {
  const char *given = getenv("PENSTOCK_EMULATOR_CACHE");
  std::string folder = given ? given : folder_of_this() + "/kernels";
  mkdir(folder.c_str(), 0777);
  return folder;
}

// Runs a command; what it says goes to `log`.
bool run(const std::string &command, std::string &log) {
  FILE *p = popen((command + " 2>&1").c_str(), "r");
  if (!p) return false;
  char text[4096];
  while (size_t n = fread(text, 1, sizeof text, p)) log.append(text, n);
  return pclose(p) == 0;
}

// The names of the kernels in preprocessed text. std::regex recurses, and threads of Python may have little stack.
std::vector<std::string> kernels_of(const std::string &text) {
  static const std::string marks = "used, used, visibility", before_name = "))) void ";
  std::vector<std::string> names;
  for (size_t at = text.find(marks); at != std::string::npos; at = text.find(marks, at + 1)) {
    const size_t end = text.find(')', at);
    if (end == std::string::npos || text.compare(end, before_name.size(), before_name)) continue;
    const size_t begin = end + before_name.size(), bracket = text.find('(', begin);
    if (bracket != std::string::npos) names.push_back(text.substr(begin, bracket - begin));
  }
  return names;
}

bool compile(Program &p, const std::string &includes) {
  const char *cxx = getenv("CXX");
  const std::string compiler = cxx ? cxx : "g++", folder = cache_folder();
  const std::string base = folder + "/" + std::to_string(getpid()) + "_" + std::to_string((uintptr_t)&p);
  std::ofstream(base + ".cpp") << p.source;
  // With the options that the header was compiled with; the text then names it, and begins behind it.
  const std::string flags = std::string(" ") + OPTIONS + " ";
  const bool found = run(
      compiler + flags + "-E -P -include " + quoted(SHIM) + includes + " " + base + ".cpp -o " + base + ".ii", p.log);
  std::string text = read_file(base + ".ii");
  unlink((base + ".cpp").c_str());
  if (!found) return false;
  std::string entries;
  for (const std::string &name : kernels_of(text))
    entries += "extern \"C\" void emulated_" + name + "(const void *a) { emulated_call(" + name + ", a); }\n" +
               "extern \"C\" const int emulated_size_" + name + " = emulated_size(" + name + ");\n";
  text += entries;
  char name[64];
  snprintf(name, sizeof name, "/%016zx%08zx.so", std::hash<std::string>()(text + compiler + flags), text.size());
  const std::string library = folder + name;
  if (access(library.c_str(), R_OK) != 0) {
    std::ofstream(base + ".ii") << text;
    // What a kernel needs of libraries is mathematics: to look through the others takes half of the linker's time.
    if (!run(compiler + flags + "-shared -nostdlib -x c++-cpp-output " + base + ".ii -x none -lm -lgcc -o " + base +
                 ".so",
             p.log)) {
      unlink((base + ".ii").c_str());
      return false;
    }
    rename((base + ".so").c_str(), library.c_str());
  }
  unlink((base + ".ii").c_str());
  const std::string code = read_file(library);
  const uint64_t head[2] = {0x656c756d45ull, code.size()};
  p.image = std::string((const char *)head, sizeof head) + code;
  return true;
}

}  // namespace

API nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0, 0; }
API nvrtcGetNumSupportedArchs(int *n) { return *n = 2, 0; }
API nvrtcGetSupportedArchs(int *archs) { return archs[0] = 75, archs[1] = 90, 0; }
API nvrtcCreateProgram(void **program, const char *source, const char *, int, const char *const *,
                       const char *const *) {
  return *program = new Program{source, "", ""}, 0;
}
API nvrtcCompileProgram(void *program, int n, const char *const *options) {
  std::string includes;
  for (int i = 0; i < n; i++)
    if (!strncmp(options[i], "--include-path=", 15)) includes += " -I" + quoted(options[i] + 15);
  return compile(*(Program *)program, includes) ? 0 : 6;
}
API nvrtcGetProgramLogSize(void *program, size_t *size) { return *size = ((Program *)program)->log.size() + 1, 0; }
API nvrtcGetProgramLog(void *program, char *log) { return strcpy(log, ((Program *)program)->log.c_str()), 0; }
API nvrtcGetCUBINSize(void *program, size_t *size) { return *size = ((Program *)program)->image.size(), 0; }
API nvrtcGetCUBIN(void *program, char *image) {
  const std::string &from = ((Program *)program)->image;
  return memcpy(image, from.data(), from.size()), 0;
}
API nvrtcGetPTXSize(void *program, size_t *size) { return nvrtcGetCUBINSize(program, size); }
API nvrtcGetPTX(void *program, char *image) { return nvrtcGetCUBIN(program, image); }
API nvrtcDestroyProgram(void **program) { return delete (Program *)*program, *program = nullptr, 0; }
extern "C" __attribute__((visibility("default"))) const char *nvrtcGetErrorString(int code) {
  return code == 6 ? "NVRTC_ERROR_COMPILATION" : code ? "NVRTC_ERROR" : "NVRTC_SUCCESS";
}
