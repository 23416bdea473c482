#include "workers.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checked/checker.h"
#include "report.h"

inline void* operator new(size_t, void* at) noexcept { return at; }

__thread const cpu_device::Thread* cpu_device_thread;
__thread cpu_device::Block cpu_device_block;
alignas(1024) __thread char cpu_device_shared[cpu_device::max_shared_bytes + cpu_device::shared_watch_bytes];

namespace cpu_device {

// What lies behind dynamic shared memory: from the seed of the run, else another word in every process.
static u64 watch_word, random_word;
// Holds the thread-local shared memory too; the kernels' own frames are on fibers.
constexpr unsigned long thread_stack_bytes = 1024 * 1024;

static const Launch* current;
static u64 current_pattern_seed;
static u64 next_block;
static u64 block_stride, block_offset;
static unsigned worker_count;
static Scheduler* schedulers[max_workers];
static sem_t begin[max_workers], end, watch;

// How many workers the launch that runs now has, and may have. Behind `gate`.
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static bool is_running;
static unsigned started, wanted;
static unsigned processor_count;
constexpr unsigned patience_microseconds = 5000;

static void start_until(unsigned count) {
    while (started < count) sem_post(&begin[started++]);
}
static void* (*static_shared_anchor)();

void set_static_shared_anchor(void* (*anchor)()) { static_shared_anchor = anchor; }

// ---- blocks ----

static u64 greatest_common_divisor(u64 a, u64 b) {
    while (b) {
        const u64 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool take_block(u64* number) {
    const u64 turn = __atomic_fetch_add(&next_block, 1, __ATOMIC_RELAXED);
    const u64 blocks = current->blocks;
    if (turn >= blocks) return false;
    if (current->order == Order::forward)
        *number = turn;
    else if (current->order == Order::reverse)
        *number = blocks - 1 - turn;
    else
        *number = (turn * block_stride + block_offset) % blocks;
    return true;
}

u64 blocks_done() {
    if (!current) return 0;
    const u64 taken = __atomic_load_n(&next_block, __ATOMIC_RELAXED);
    const u64 running = __atomic_load_n(&started, __ATOMIC_RELAXED);
    return taken > running ? taken - running : 0;
}

// ---- shared memory ----

static void fill(void* address, unsigned long bytes, u64 seed) {
    u64 state = seed * 0x9E3779B97F4A7C15ull | 1;
    for (unsigned long at = 0; at < bytes; at += sizeof state) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        memcpy((char*)address + at, &state, bytes - at < sizeof state ? bytes - at : sizeof state);
    }
}

// Static shared memory is the module's thread-local memory: find this thread's part by an address inside it.
static int find_static_shared(struct dl_phdr_info* info, size_t, void* data) {
    StaticShared* found = (StaticShared*)data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr)& segment = info->dlpi_phdr[i];
        char* base = (char*)info->dlpi_tls_data;
        if (segment.p_type != PT_TLS || !base) continue;
        if (found->begin >= base && found->begin < base + segment.p_memsz) {
            *found = {base, segment.p_memsz};
            return 1;
        }
    }
    return 0;
}

StaticShared find_static_shared_memory(void* (*anchor)()) {
    StaticShared found = {anchor ? (char*)anchor() : nullptr, 0};
    if (!found.begin || !dl_iterate_phdr(find_static_shared, &found)) return {nullptr, 0};
    return found;
}

static void prepare_shared(const Launch& launch, u64 pattern_seed) {
    if (pattern_seed) {
        fill(cpu_device_shared, launch.shared_bytes, pattern_seed);
        const StaticShared found = find_static_shared_memory(static_shared_anchor);
        fill(found.begin, found.bytes, pattern_seed);
    }
    for (unsigned i = 0; i < shared_watch_bytes; i += sizeof watch_word)
        memcpy(cpu_device_shared + launch.shared_bytes + i, &watch_word, sizeof watch_word);
}

void check_shared_overrun() {
    if (is_checking()) return;  // every store was looked at
    const unsigned char* after = (const unsigned char*)cpu_device_shared + current->shared_bytes;
    u64 word;
    for (unsigned i = 0; i < shared_watch_bytes; i += sizeof word) {
        memcpy(&word, after + i, sizeof word);
        if (word == watch_word) continue;
        i += (unsigned)__builtin_ctzll(word ^ watch_word) / 8;
        Report report = {};
        report.type = ReportType::shared_overrun;
        report.address = i;
        fail(report);
    }
}

// ---- OS threads ----

// What checked mode remembers belongs to one thread at a time.
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
constexpr unsigned turn_microseconds = 20;

void let_others_run() {
    static __thread unsigned calls;
    if (!is_checking() || ++calls % 16) return;
    pthread_mutex_unlock(&turn);
    usleep(turn_microseconds);
    pthread_mutex_lock(&turn);
}

static void work(unsigned worker) {
    if (is_checking()) pthread_mutex_lock(&turn);
    prepare_shared(*current, current_pattern_seed);
    check_worker(*current);
    schedulers[worker]->run(*current);
    if (is_checking()) pthread_mutex_unlock(&turn);
}

static void prepare_thread(unsigned worker) {
    use_alternate_stack(worker);
    void* memory = mmap(nullptr, sizeof(Scheduler), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    schedulers[worker] = new (memory) Scheduler(worker);
}

static void* worker_main(void* argument) {
    const unsigned worker = (unsigned)(uintptr_t)argument;
    prepare_thread(worker);
    sem_post(&end);
    for (;;) {
        while (sem_wait(&begin[worker])) continue;
        work(worker);
        sem_post(&end);
    }
}

// A block that waits for another one needs it to run: when no block has ended for a while, the workers that the
// processors alone did not call for begin too.
static void* watch_main(void*) {
    sem_post(&end);
    for (;;) {
        while (sem_wait(&watch)) continue;
        u64 before = ~0ull;
        for (bool is_needed = true; is_needed;) {
            usleep(patience_microseconds);
            pthread_mutex_lock(&gate);
            is_needed = is_running && started < wanted;
            const u64 taken = __atomic_load_n(&next_block, __ATOMIC_RELAXED);
            if (is_needed && taken == before) start_until(wanted);
            before = taken;
            pthread_mutex_unlock(&gate);
        }
    }
}

static unsigned processors() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

bool start_workers(unsigned count) {
    worker_count = count;
    // Bytes that the system gives every process.
    memcpy(&random_word, (const void*)getauxval(AT_RANDOM), sizeof random_word);
    processor_count = processors();
    sem_init(&end, 0, 0);
    sem_init(&watch, 0, 0);
    prepare_thread(0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, thread_stack_bytes);
    pthread_t thread;
    for (unsigned worker = 1; worker < count; worker++) {
        sem_init(&begin[worker], 0, 0);
        if (pthread_create(&thread, &attributes, worker_main, (void*)(uintptr_t)worker)) return false;
    }
    const bool is_watched = count > processor_count;
    if (is_watched && pthread_create(&thread, &attributes, watch_main, nullptr)) return false;
    // The threads' own start needs system calls that the sandbox takes away: each says when it is through.
    for (unsigned i = 1; i < count + is_watched; i++)
        while (sem_wait(&end)) continue;
    return true;
}

void run_launch(const Launch& launch, u64 pattern_seed) {
    current = &launch;
    current_pattern_seed = pattern_seed;
    next_block = 0;
    if (launch.order == Order::random) {
        // Small, so that the product with a block's turn does not overflow.
        block_stride = (launch.seed * 0x9E3779B97F4A7C15ull >> 48) % launch.blocks;
        // A step that shares no factor with the count visits every block once.
        while (greatest_common_divisor(block_stride, launch.blocks) != 1) block_stride++;
        block_offset = launch.seed % launch.blocks;
    }
    check_launch(launch);
    watch_word = launch.seed ? launch.seed * 0x9E3779B97F4A7C15ull : random_word;
    pthread_mutex_lock(&gate);
    wanted = launch.blocks < worker_count ? (unsigned)launch.blocks : worker_count;
    started = 1;
    is_running = true;
    start_until(wanted < processor_count ? wanted : processor_count);
    if (started < wanted) sem_post(&watch);
    pthread_mutex_unlock(&gate);
    work(0);
    pthread_mutex_lock(&gate);
    is_running = false;
    const unsigned others = started - 1;
    pthread_mutex_unlock(&gate);
    for (unsigned i = 0; i < others; i++)
        while (sem_wait(&end)) continue;
    check_launch_end();
}

}  // namespace cpu_device
