// What a compiled candidate and the runner agree on. Both sides include this file, and nothing else is shared.
#pragma once

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

namespace cpu_device {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

// The largest dynamic shared memory of a block; what follows it is watched for overruns.
constexpr unsigned max_shared_bytes = 227 * 1024;
constexpr unsigned shared_watch_bytes = 1024;

// Marks a line number that is not the candidate's.
constexpr u32 header_line = 0x80000000u;

// A line of the candidate as it is, one of a header with the mark. Only headers are known by an absolute path.
constexpr inline __attribute__((always_inline)) u32 place(u32 line, const char* file) {
    return file[0] == '/' ? line | header_line : line;
}

// A CUDA thread, as its own code sees it.
struct Thread {
    uint3 index;
    u32 lane;
    u32 warp;
    u32 rank;  // position in the block
};

// The block that the calling OS thread runs. A block never moves to another OS thread.
struct Block {
    uint3 index = {};
    dim3 block_dim = {};
    dim3 grid_dim = {};
    u32 shared_bytes = 0;
};

// Operations in which the lanes of a warp take part together.
enum class Collective : u32 {
    sync,
    shuffle,
    ballot,
    match_any,
    match_all,
    add,
    min_signed,
    max_signed,
    min_unsigned,
    max_unsigned,
    bit_and,
    bit_or,
    bit_xor,
    gather,
};

// How __syncthreads_count, _and and _or combine the threads' predicates.
enum class Vote : u32 { none, count, all, any };

// A kernel parameter, for the check of a launch against the kernel that was really compiled.
struct Parameter {
    u32 bytes;
    u32 is_pointer;
};

// What the runner finds under a kernel's entry symbol.
struct Entry {
    void (*call)(void** arguments);
    const Parameter* parameters;
    u32 parameter_count;
};

}  // namespace cpu_device

// The variables live in the runner's executable, so this model needs no call to find them.
#define CPU_DEVICE_TLS __attribute__((tls_model("initial-exec")))

extern "C" {
extern __thread const cpu_device::Thread* cpu_device_thread CPU_DEVICE_TLS;
extern __thread cpu_device::Block cpu_device_block CPU_DEVICE_TLS;
extern __thread char cpu_device_shared[] CPU_DEVICE_TLS;

void cpu_device_barrier(unsigned line);
int cpu_device_barrier_vote(cpu_device::Vote vote, int predicate, unsigned line);
cpu_device::u64 cpu_device_collective(
    cpu_device::u32 mask, cpu_device::Collective operation, cpu_device::u64 value, cpu_device::u32 source, unsigned line);
// The values that the lanes gave to the last `gather`, by lane; they stand until the next one.
const cpu_device::u64* cpu_device_gathered(void);
cpu_device::u32 cpu_device_active_mask(unsigned line);
void cpu_device_yield(void);
[[noreturn]] void cpu_device_misaligned(const void* address, unsigned long alignment);
[[noreturn]] void cpu_device_trap(const char* what, unsigned line);
cpu_device::u64 cpu_device_nanoseconds(void);
// Checked mode only: where a shared variable of the calling thread's block lies.
void* cpu_device_shared_variable(const void* key, const char* name, unsigned bytes, unsigned alignment,
                                 unsigned element_bytes);
void* cpu_device_malloc(unsigned long bytes);
void cpu_device_free(void* address);
}
