#include "job.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cpu_device {

bool JobReader::open(int file) {
    const long size = lseek(file, 0, SEEK_END);
    if (size <= 0) return false;
    void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED) return false;
    at_ = (char*)mapped;
    end_ = at_ + size;
    return true;
}

u64 JobReader::number() {
    u64 value = 0;
    if (end_ - at_ < (long)sizeof value) {
        is_exhausted_ = true;
        return 0;
    }
    memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
}

char* JobReader::bytes() {
    const u64 length = number();
    static char nothing[8];
    const u64 padded = (length + 7) / 8 * 8;
    if (padded > (u64)(end_ - at_)) {
        is_exhausted_ = true;
        return nothing;
    }
    char* value = at_;
    at_ += padded;
    return value;
}

}  // namespace cpu_device
