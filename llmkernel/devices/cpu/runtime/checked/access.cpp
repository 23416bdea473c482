#include "access.h"

#include <string.h>

#include "findings.h"

namespace cpu_device {

static Report report_of(ReportType type, const Access& access, const Region& region, u64 address) {
    Report report = report_here(type, access.line);
    report.kind = access.kind;
    report.bytes = access.bytes;
    report.space = (u32)region.space;
    report.element_bytes = region.element_bytes;
    // A buffer is found again by its address, anything else lies at an offset.
    report.address = region.space == Space::global ? address : address - region.begin;
    report.size = region.bytes;
    strncpy(report.text, region.name ? region.name : "", sizeof report.text - 1);
    return report;
}

void report_misaligned(const Access& access, const Region& region) {
    Report report = report_of(ReportType::misaligned_element, access, region, access.address);
    report.code = (int)access.bytes;
    report_finding(report);
}

void report_out_of_bounds(const Access& access, const Region& region) {
    // A vector that begins inside is named by its first byte outside.
    const u64 end = region.begin + region.bytes;
    const bool begins_inside = access.address >= region.begin && access.address < end;
    report_finding(report_of(ReportType::out_of_bounds, access, region, begins_inside ? end : access.address));
}

void check_initialised(const Access& access, Region& region) {
    u8* const written = region.is_written + (access.address - region.begin);
    if (!(access.kind & is_write) || access.kind & is_atomic) {
        // Padding inside of a struct is copied with it: a granule of which a part was written counts as written.
        const u32 step = region.granule;
        for (u32 at = 0; at < access.bytes; at += step) {
            const u32 count = access.bytes - at < step ? access.bytes - at : step;
            if (memchr(written + at, 1, count)) continue;
            report_uninitialised(report_of(ReportType::uninitialised_read, access, region, access.address + at));
            break;
        }
    }
    if (access.kind & is_write) memset(written, 1, access.bytes);
}

static bool is_synchronised(const Access& access, const Stamp& earlier, const Region& region) {
    if (access.kind & earlier.kind & is_atomic) return true;
    // A volatile access is one to memory, whole and in order, as a relaxed atomic is.
    const u32 strong = is_atomic | is_volatile;
    if (!(access.kind & strong) || !(earlier.kind & strong)) return false;
    if (!region.is_shared()) return access.kind & is_write || !access.clock->is_data(earlier, access.address);
    // In shared memory it is often meant to stand for a barrier, which it does only together with a fence.
    return access.clock->has_fenced(access.kind & is_write ? access.rank : earlier.rank);
}

static bool conflicts(const Access& access, const Stamp& earlier, const Region& region) {
    if (!earlier.time) return false;
    // What lay there when another block had this shared memory.
    if (region.is_shared() && earlier.block != access.clock->block()) return false;
    return !access.clock->comes_before(earlier, access.rank) && !is_synchronised(access, earlier, region);
}

static Report race(const Access& access, const Stamp& earlier, const Region& region, u64 address) {
    Report report = report_of(ReportType::data_race, access, region, address);
    set_other(report, earlier);
    return report;
}

void settle_store(PendingStore& pending) {
    // Several threads that store the same value do no harm.
    for (u64 left = pending.contested; left; left &= left - 1) {
        const u32 at = (u32)__builtin_ctzll(left);
        if (((const u8*)pending.address)[at] == pending.before[at]) continue;
        report_finding(pending.report);
        break;
    }
    pending.contested = 0;
}

static void check_write(const Access& access, const Stamp& earlier, const Region& region, u64 address,
                        PendingStore& pending) {
    if (!conflicts(access, earlier, region)) return;
    if (!pending.contested) pending.report = race(access, earlier, region, address);
    if (access.kind & is_atomic) return report_finding(pending.report);
    pending.address = access.address;
    for (u32 i = 0; i < region.granule; i++) {
        const u64 at = address + i - access.address;
        if (at >= access.bytes || at >= sizeof pending.before) continue;
        pending.contested |= 1ull << at;
        pending.before[at] = ((const u8*)access.address)[at];
    }
}

static void check_read_before(const Access& access, const Stamp& earlier, const Region& region, u64 address) {
    if (!conflicts(access, earlier, region)) return;
    explain_uninitialised(earlier.line);
    const Report report = race(access, earlier, region, address);
    if (access.kind & is_atomic) return report_read_beside_atomic(report, earlier.line);
    report_finding(report);
}

static void check_written_before(const Access& access, const Stamp& earlier, const Region& region, u64 address) {
    if (!conflicts(access, earlier, region)) return;
    const Report report = race(access, earlier, region, address);
    if (earlier.kind & is_atomic) return report_read_beside_atomic(report, access.line);
    report_finding(report);
}

// An atomic access checks what the same thread has just read.
static void excuse_own_read(const Access& access, const Stamp& read) {
    const bool is_own = read.time && read.block == access.clock->block() && read.rank == access.rank;
    const bool is_plain = !(read.kind & (is_atomic | is_volatile));
    if (is_own && is_plain && access.clock->is_since_barrier(read)) excuse_read(read.line);
}

static void remember_read(Cell& cell, const Stamp& now, const Access& access) {
    // A read that comes before this one need not be kept: what races with it races with this one too.
    for (Stamp& old : cell.read) {
        const bool is_stale = !old.time || old.block != now.block || access.clock->comes_before(old, access.rank);
        if (is_stale) {
            old = now;
            return;
        }
    }
    cell.read[1] = now;
}

void check_races(const Access& access, Region& region, PendingStore& pending) {
    const Stamp now = {time_now(), access.clock->block(), (u16)access.rank, (u16)access.kind, access.line};
    const u64 offset = access.address - region.begin;
    for (u64 i = offset / region.granule; i <= (offset + access.bytes - 1) / region.granule; i++) {
        Cell& cell = region.cells[i];
        const u64 address = region.begin + i * region.granule;
        if (access.kind & is_atomic)
            for (const Stamp& read : cell.read) excuse_own_read(access, read);
        if (access.kind & is_write) {
            check_write(access, cell.written, region, address, pending);
            for (const Stamp& read : cell.read) check_read_before(access, read, region, address);
            cell.written = now;
            if (!(access.kind & is_atomic)) cell.read[0].time = cell.read[1].time = 0;
        } else {
            check_written_before(access, cell.written, region, address);
            remember_read(cell, now, access);
        }
    }
}

}  // namespace cpu_device
