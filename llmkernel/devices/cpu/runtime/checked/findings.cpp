#include "findings.h"

#include <string.h>

namespace cpu_device {

constexpr u32 max_findings = 64;
constexpr u32 max_waiting = 64;

struct Waiting {
    u32 line;
    bool is_settled;  // explained or excused: never to be sent
    bool is_due;      // there is a report to send
    Report report;
};

static dim3 grid_size, block_size;
static Report sent[max_findings];
static u32 sent_count;
static Waiting uninitialised[max_waiting], reads[max_waiting];
static u32 uninitialised_count, reads_count;

void begin_findings(dim3 grid, dim3 block) {
    grid_size = grid;
    block_size = block;
}

Report report_here(ReportType type, u32 line) {
    Report report = {};
    report.type = type;
    report.line = line;
    set_thread(report);
    return report;
}

void set_other(Report& report, const Stamp& other) {
    report.other_line = other.line;
    report.other_kind = other.kind;
    report.other_block[0] = other.block % grid_size.x;
    report.other_block[1] = other.block / grid_size.x % grid_size.y;
    report.other_block[2] = other.block / grid_size.x / grid_size.y;
    report.other_thread[0] = other.rank % block_size.x;
    report.other_thread[1] = other.rank / block_size.x % block_size.y;
    report.other_thread[2] = other.rank / block_size.x / block_size.y;
}

static bool is_same(const Report& a, const Report& b) {
    if (a.type != b.type) return false;
    return (a.line == b.line && a.other_line == b.other_line) || (a.line == b.other_line && a.other_line == b.line);
}

void report_finding(const Report& report) {
    for (u32 i = 0; i < sent_count; i++)
        if (is_same(sent[i], report)) return;
    if (sent_count == max_findings) return;
    sent[sent_count++] = report;
    send(report);
}

// The entry of a line; null when there are too many lines.
static Waiting* entry(Waiting* all, u32& count, u32 line) {
    for (u32 i = 0; i < count; i++)
        if (all[i].line == line) return &all[i];
    if (count == max_waiting) return nullptr;
    all[count].line = line;
    return &all[count++];
}

static void wait(Waiting* waiting, const Report& report) {
    if (!waiting || waiting->is_settled || waiting->is_due) return;
    waiting->is_due = true;
    waiting->report = report;
}

static void settle(Waiting* waiting) {
    if (waiting) waiting->is_settled = true;
}

void report_uninitialised(const Report& report) { wait(entry(uninitialised, uninitialised_count, report.line), report); }

void explain_uninitialised(u32 line) { settle(entry(uninitialised, uninitialised_count, line)); }

void report_read_beside_atomic(const Report& report, u32 reading_line) {
    wait(entry(reads, reads_count, reading_line), report);
}

void excuse_read(u32 reading_line) { settle(entry(reads, reads_count, reading_line)); }

static void flush(Waiting* all, u32& count) {
    for (u32 i = 0; i < count; i++)
        if (all[i].is_due && !all[i].is_settled) report_finding(all[i].report);
    memset(all, 0, count * sizeof(Waiting));
    count = 0;
}

void flush_findings() {
    flush(reads, reads_count);
    flush(uninitialised, uninitialised_count);
}

}  // namespace cpu_device
