#include "memory.h"

#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "../report.h"

namespace cpu_device {

// Around every shared variable lies memory that belongs to none.
constexpr u64 red_zone = 1024;
constexpr u64 arena_bytes = 2ul << 20;
constexpr u32 max_shared_variables = 128;

struct Slots {
    u64 base, bytes, slot_bytes, count;
    Region* buffers;
};

// Shared memory of one OS thread: of the block that it runs.
struct SharedMemory {
    char* arena;
    u64 used;
    u32 count;
    Region dynamic, module;
    Region variables[max_shared_variables];
};

static Slots slots;
static Region module_data;
static void* (*static_shared_anchor_function)();
static __thread SharedMemory* shared;

void* reserve(u64 bytes) {
    void* got = mmap(nullptr, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got != MAP_FAILED) return got;
    Report report = {};
    report.type = ReportType::out_of_memory;
    strcpy(report.text, "what checked mode remembers of the arrays does not fit into memory");
    fail(report);
}

void attach_shadow(Region& region, bool is_initialised) {
    region.cells = (Cell*)reserve((region.bytes / region.granule + 2) * sizeof(Cell));
    region.is_written = is_initialised ? nullptr : (u8*)reserve(region.bytes + 1);
}

static u32 granule_of(u64 element_bytes) {
    return element_bytes % 4 == 0 ? 4 : element_bytes % 2 == 0 ? 2 : 1;
}

void read_buffers(JobReader& job, u64 count) {
    slots.base = job.number();
    slots.slot_bytes = job.number();
    slots.count = count;
    slots.bytes = slots.slot_bytes * count;
    slots.buffers = (Region*)reserve(count * sizeof(Region));
    for (u64 i = 0; i < count; i++) {
        Region& buffer = slots.buffers[i];
        buffer.begin = job.number();
        buffer.bytes = job.number();
        buffer.element_bytes = (u32)job.number();
        buffer.granule = granule_of(buffer.element_bytes);
        attach_shadow(buffer, job.number());
    }
}

struct ModuleData {
    u64 inside, begin, end;
};

static int find_data(struct dl_phdr_info* info, size_t, void* found) {
    ModuleData* data = (ModuleData*)found;
    bool is_it = false;
    u64 begin = 0, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr)& segment = info->dlpi_phdr[i];
        const u64 at = info->dlpi_addr + segment.p_vaddr;
        if (segment.p_type != PT_LOAD) continue;
        is_it |= data->inside >= at && data->inside < at + segment.p_memsz;
        if (!(segment.p_flags & PF_W)) continue;
        begin = begin ? begin : at;
        end = at + segment.p_memsz;
    }
    if (is_it) data->begin = begin, data->end = end;
    return is_it;
}

void find_module(void* address_inside, void* (*anchor)()) {
    static_shared_anchor_function = anchor;
    ModuleData data = {(u64)address_inside, 0, 0};
    dl_iterate_phdr(find_data, &data);
    module_data = {data.begin, data.end - data.begin, Space::module, 1, 1, "", nullptr, nullptr, nullptr};
    attach_shadow(module_data, true);
}

void begin_shared(u32 dynamic_bytes) {
    if (!shared) {
        shared = (SharedMemory*)reserve(sizeof(SharedMemory));
        shared->arena = (char*)reserve(arena_bytes);
        shared->used = red_zone;
        shared->dynamic = {(u64)cpu_device_shared, max_shared_bytes, Space::shared_dynamic, 1, 1, "", nullptr, nullptr, nullptr};
        attach_shadow(shared->dynamic, false);
        StaticShared found = find_static_shared_memory(static_shared_anchor_function);
        shared->module = {(u64)found.begin, found.bytes, Space::shared_of_module, 1, 1, "", nullptr, nullptr, nullptr};
        attach_shadow(shared->module, false);
    }
    shared->dynamic.bytes = dynamic_bytes;
}

static void forget(Region& region) {
    if (region.bytes) memset(region.is_written, 0, region.bytes);
}

void forget_shared() {
    forget(shared->dynamic);
    forget(shared->module);
    for (u32 i = 0; i < shared->count; i++) forget(shared->variables[i]);
}

// The shared variable that lies nearest to an address of the arena.
static Region* nearest_variable(u64 address) {
    Region* nearest = nullptr;
    u64 shortest = ~0ull;
    for (u32 i = 0; i < shared->count; i++) {
        Region& variable = shared->variables[i];
        const u64 end = variable.begin + variable.bytes;
        const u64 distance = address < variable.begin ? variable.begin - address : address >= end ? address - end + 1 : 0;
        if (distance < shortest) shortest = distance, nearest = &variable;
        if (!distance) break;
    }
    return nearest;
}

Region* find_region(u64 address, u64 bytes) {
    if (address - slots.base < slots.bytes) return &slots.buffers[(address - slots.base) / slots.slot_bytes];
    if (address - (u64)shared->arena < arena_bytes) return nearest_variable(address);
    if (address - shared->dynamic.begin < max_shared_bytes + shared_watch_bytes) return &shared->dynamic;
    if (shared->module.holds(address, bytes)) return &shared->module;
    if (module_data.holds(address, bytes)) return &module_data;
    return nullptr;
}

}  // namespace cpu_device

extern "C" void* cpu_device_shared_variable(const void* key, const char* name, unsigned bytes, unsigned alignment,
                                            unsigned element_bytes) {
    using namespace cpu_device;
    for (u32 i = 0; i < shared->count; i++)
        if (shared->variables[i].key == key) return (void*)shared->variables[i].begin;
    const u64 at = (shared->used + alignment - 1) / alignment * alignment;
    if (shared->count == max_shared_variables || at + bytes + red_zone > arena_bytes)
        cpu_device_trap("checked mode has no room for so many shared variables", 0);
    shared->used = at + bytes + red_zone;
    Region& variable = shared->variables[shared->count++];
    variable = {(u64)shared->arena + at, bytes, Space::shared_variable, granule_of(element_bytes), element_bytes, name, key,
                nullptr, nullptr};
    attach_shadow(variable, false);
    return (void*)variable.begin;
}
