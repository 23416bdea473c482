"""Candidates that try to get out, by what they try; ``{path}`` is a file of the user's."""

from __future__ import annotations

HEADER = "//! f(x: float32[N]) -> y: float32[N]\n//! f<<<1, 32>>>(x, y, N)\n"
KERNEL = "__global__ void f(const float* x, float* y, int N) { if (threadIdx.x < N) y[threadIdx.x] = x[threadIdx.x]; }\n"


def candidate(before: str = "", body: str = "", after: str = "") -> str:
    """A kernel that copies its input, with code before it, at the start of its body and behind it."""
    kernel = KERNEL.replace("{ if", "{ " + body + " if")
    return HEADER + before + "\n" + kernel + after + "\n"


# What the compiler would read.
READS = {
    "include": candidate('#include "{path}"'),
    "include, angle brackets": candidate("#include <{path}>"),
    "include, upwards": candidate('#include "../../../../../../../../{path}"'),
    "include, digraph": candidate("%:include <{path}>"),
    "include, spliced": candidate("#inc\\\nlude <{path}>"),
    "include, comment inside": candidate("#/**/include/**/<{path}>"),
    "include, by macro": candidate("#define F <{path}>\n#include F"),
    "include, behind quotes that hide it": candidate('#define X a\'"\' "/*"\n#include <{path}>\n// */'),
    "include, behind a raw string": candidate(
        '#define FOOR\n#define Y FOOR"a("\n#include <{path}>\n#define Z ")a"'
    ),
    "include_next": candidate("#include_next <{path}>"),
    "import": candidate('#import "{path}"'),
    "embed": candidate("const unsigned char e[] = {\n#embed <{path}>\n};"),
    "asks for a file": candidate("#if __has_include(<{path}>)\n#error there\n#endif"),
    "asks for a file to embed": candidate("#if __has_embed(<{path}>)\n#error there\n#endif"),
    "line": candidate('#line 1 "{path}"'),
    "pragma dependency": candidate('#pragma GCC dependency "{path}"'),
    "pragma in a macro": candidate('_Pragma("GCC dependency \\"{path}\\"")'),
    "pragma pch": candidate('#pragma GCC pch_preprocess "{path}"'),
    "pragma library": candidate('#pragma comment(lib, "{path}")'),
    "pragma plugin": candidate('#pragma GCC optimize("-fplugin={path}")'),
    "optimize attribute": candidate(
        '__attribute__((optimize("-fplugin={path}"))) __device__ int g() { return 1; }'
    ),
    "incbin": candidate('asm(".incbin \\"{path}\\"");'),
    "incbin in a function": candidate(body='asm volatile(".incbin \\"{path}\\"");'),
    "incbin in pieces": candidate(body='asm volatile(".inc" "bin \\"{path}\\"");'),
    "incbin by its characters": candidate(body='asm volatile("\\x2eincbin \\"{path}\\"");'),
    "incbin by pasting": candidate(
        "#define CAT(a, b) a##b\n#define STR(x) #x\n#define XSTR(x) STR(x)",
        'CAT(as, m) volatile(XSTR(CAT(.inc, bin)) " \\"{path}\\"");',
    ),
    "assembler include": candidate(body='asm volatile(".include \\"{path}\\"");'),
    "section": candidate(body='asm volatile(".section .init_array");'),
}

# What would run on the host, and when.
RUNS = {
    "constructor": candidate("__attribute__((constructor)) void early() {}"),
    "destructor": candidate("__attribute__((destructor)) void late() {}"),
    "constructor, other spelling": candidate("[[gnu::constructor]] void early() {}"),
    "init array": candidate('__attribute__((section(".init_array"))) void (*early)() = 0;'),
    "indirect function": candidate(
        'extern "C" void* choose() { return 0; } __device__ int g() __attribute__((ifunc("choose")));'
    ),
    "alias": candidate('extern "C" int g() { return 1; } int h() __attribute__((alias("g")));'),
    "weak reference": candidate('static int g() __attribute__((weakref("system")));'),
    "cleanup": candidate(body="int v __attribute__((cleanup(f))) = 0;"),
    "global object": candidate("struct E { int v; E() : v(1) {} }; E early;"),
    "host function": candidate("void host() {}"),
    "main": candidate("int main() { return 0; }"),
    "inline system call": candidate(body='asm volatile("syscall");'),
    "inline interrupt": candidate(body='asm volatile("int $0x80");'),
    "asm by pasting": candidate("#define CAT(a, b) a##b", 'CAT(__a, sm__) volatile("sysc" "all");'),
    "redefined word": candidate("#define __global__ __attribute__((constructor))"),
    "launches": candidate(body="f<<<1, 1>>>(x, y, N);"),
}

# Functions of the host, called or replaced.
CALLS = (
    {
        name: candidate(f'extern "C" {declaration};', call)
        for name, declaration, call in (
            ("system", "int system(const char*)", 'system("touch {path}");'),
            ("popen", "void* popen(const char*, const char*)", 'popen("touch {path}", "r");'),
            ("execve", "int execve(const char*, void*, void*)", 'execve("/bin/sh", 0, 0);'),
            ("posix_spawn", "int posix_spawn(...)", "posix_spawn();"),
            ("fork", "int fork()", "while (true) fork();"),
            ("vfork", "int vfork()", "vfork();"),
            ("clone", "int clone(...)", "clone();"),
            ("kill", 'int kill(int, int); extern "C" int getppid()', "kill(getppid(), 9);"),
            ("killpg", "int killpg(int, int)", "killpg(0, 9);"),
            ("ptrace", "long ptrace(int, ...)", "ptrace(16, 1, 0, 0);"),
            ("prlimit", "int prlimit(...)", "prlimit();"),
            ("open", "int open(const char*, int, ...)", 'open("{path}", 65, 420);'),
            ("fopen", "void* fopen(const char*, const char*)", 'fopen("/proc/self/mem", "r+");'),
            ("unlink", "int unlink(const char*)", 'unlink("{path}");'),
            ("shm_open", "int shm_open(const char*, int, int)", 'shm_open("/out", 66, 384);'),
            ("memfd_create", "int memfd_create(const char*, int)", 'memfd_create("out", 0);'),
            ("mmap", "void* mmap(...)", "mmap();"),
            ("mprotect", "int mprotect(...)", "mprotect();"),
            ("socket", "int socket(int, int, int)", "socket(2, 1, 0);"),
            ("connect", "int connect(...)", "connect();"),
            ("dlopen", "void* dlopen(const char*, int)", 'dlopen("{path}", 2);'),
            ("dlsym", "void* dlsym(void*, const char*)", 'dlsym(0, "fork");'),
            ("syscall", "long syscall(long, ...)", "syscall(57);"),
            ("getenv", "char* getenv(const char*)", 'getenv("HOME");'),
            ("pthread_create", "int pthread_create(...)", "pthread_create();"),
            ("sigaction", "int sigaction(...)", "sigaction();"),
            ("setrlimit", "int setrlimit(...)", "setrlimit();"),
            ("write", "long write(int, const void*, unsigned long)", "write(4, x, 232);"),
            ("_exit", "void _exit(int)", "_exit(0);"),
            ("environ", "char** environ", "y[0] = environ[0][0];"),
        )
    }
    | {
        f"replaces {name}": candidate(f'extern "C" {definition}')
        for name, definition in (
            ("malloc", "void* malloc(unsigned long n) { return 0; }"),
            ("free", "void free(void* p) {}"),
            ("memcpy", "void* memcpy(void* a, const void* b, unsigned long n) { return a; }"),
            ("memset", "void* memset(void* a, int v, unsigned long n) { return a; }"),
            ("write", "long write(int file, const void* data, unsigned long n) { return n; }"),
            ("read", "long read(int file, void* data, unsigned long n) { return n; }"),
            ("prctl", "int prctl(int o, ...) { return 0; }"),
            ("setrlimit", "int setrlimit(int r, const void* v) { return 0; }"),
            ("seccomp's caller", "long syscall(long n, ...) { return 0; }"),
            ("clock_gettime", "int clock_gettime(int c, void* t) { return 0; }"),
            ("the timer", "unsigned long long cpu_device_nanoseconds(void) { return 0; }"),
            ("_start", "void _start() {}"),
            ("_init", "void _init() {}"),
            ("__cxa_finalize", "void __cxa_finalize(void*) {}"),
        )
    }
    | {
        "assembler name of a function": candidate('void g() __asm__("write");'),
        "assembler name of a variable": candidate('__device__ int g __asm__("environ");'),
    }
)
