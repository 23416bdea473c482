// A stand-in for libcuda on machines without a GPU. Device memory is host memory, and a "kernel" is host code that
// is chosen by its symbol's name, so that parameter packing, addresses, copies and errors can be observed for real.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int id, pad; unsigned value[16]; } Attribute;
typedef struct {
  unsigned grid[3], block[3], shared;
  void* stream;
  Attribute* attributes;
  unsigned count;
} Config;
typedef struct { char name[256]; int attributes[16]; } Function;

static int sticky = 0, running = 0, contexts = 0;
static char record[1 << 16];
static void* current = 0;
static int refuses_without_context = 0;
static long memory_limit = 1L << 30, used = 0;

static void note(const char* format, long a, long b, long c, long d) {
  size_t n = strlen(record);
  if (n < sizeof record - 256) snprintf(record + n, 256, format, a, b, c, d);
}
const char* fake_record(void) { return record; }
void fake_reset(void) { sticky = running = 0; record[0] = 0; refuses_without_context = 0; memory_limit = 1L << 30; }
void fake_refuse_without_context(int yes) { refuses_without_context = yes; }
void fake_limit_memory(long bytes) { memory_limit = bytes; }
int fake_contexts(void) { return contexts; }

int cuInit(unsigned f) { return 0; }
int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
int cuDeviceGetCount(int* n) { *n = 2; return 0; }
int cuDeviceGet(int* d, int i) { *d = i; return 0; }
int cuDeviceGetName(char* s, int n, int d) { snprintf(s, n, "Fake GPU %d", d); return 0; }
int cuDeviceGetPCIBusId(char* s, int n, int d) { snprintf(s, n, "0000:00:0%d.0", d); return 0; }
int cuDeviceTotalMem_v2(size_t* n, int d) { *n = 1L << 30; return 0; }
int cuDeviceGetAttribute(int* v, int a, int d) {
  switch (a) {
    case 75: *v = 9; break;
    case 76: *v = 0; break;
    case 16: *v = 4; break;
    case 38: *v = 1 << 20; break;
    case 39: *v = 2048; break;
    case 97: *v = 232448; break;
    case 5: *v = 2147483647; break;
    case 6: case 7: *v = 65535; break;
    case 4: *v = 64; break;
    case 1: case 2: case 3: *v = 1024; break;
    default: *v = 1;
  }
  return 0;
}
int cuDevicePrimaryCtxRetain(void** c, int d) { contexts++; *c = (void*)(intptr_t)(1000 + d); return 0; }
int cuDevicePrimaryCtxRelease_v2(int d) { return 0; }
int cuCtxGetCurrent(void** c) { *c = current; return 0; }
int cuCtxSetCurrent(void* c) { current = c; return sticky; }
int cuCtxPushCurrent_v2(void* c) { current = c; return 0; }
int cuCtxPopCurrent_v2(void** c) { *c = current; current = 0; return 0; }
int cuCtxSynchronize(void) { return sticky; }
int cuCtxResetPersistingL2Cache(void) { return sticky; }
int cuModuleLoadData(void** m, const char* data) { if (memcmp(data, "\177ELF", 4)) return 200; *m = malloc(8); note("load;", 0, 0, 0, 0); return sticky; }
int cuModuleUnload(void* m) { free(m); note("unload;", 0, 0, 0, 0); return sticky; }
int cuModuleGetFunction(void** f, void* m, const char* name) {
  Function* fn = calloc(1, sizeof *fn);
  snprintf(fn->name, sizeof fn->name, "%s", name);
  fn->attributes[0] = 1024; fn->attributes[1] = strstr(name, "static_shared") ? 40000 : 0; fn->attributes[4] = 32;
  *f = fn;
  return 0;
}
int cuFuncGetAttribute(int* v, int a, Function* f) { *v = f->attributes[a]; return 0; }
int cuFuncSetAttribute(Function* f, int a, int v) { f->attributes[a] = v; note("attribute %ld=%ld;", a, v, 0, 0); return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, Function* f, int threads, size_t shared) { *n = 2048 / threads; return 0; }
int cuMemAlloc_v2(uint64_t* p, size_t n) {
  if (used + (long)n > memory_limit) return 2;
  *p = (uint64_t)aligned_alloc(512, (n + 511) / 512 * 512);
  memset((void*)*p, 0xEE, n);
  return sticky;
}
int cuMemFree_v2(uint64_t p) { free((void*)p); return sticky; }
int cuMemGetInfo_v2(size_t* f, size_t* t) { *f = *t = memory_limit; return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t d, void* s, size_t n, void* st) { memcpy((void*)d, s, n); return sticky; }
int cuMemcpyDtoHAsync_v2(void* d, uint64_t s, size_t n, void* st) { memcpy(d, (void*)s, n); return sticky; }
int cuMemcpyDtoH_v2(void* d, uint64_t s, size_t n) { memcpy(d, (void*)s, n); return sticky; }
int cuMemcpyDtoDAsync_v2(uint64_t d, uint64_t s, size_t n, void* st) { memcpy((void*)d, (void*)s, n); return sticky; }
int cuMemsetD8Async(uint64_t d, unsigned char v, size_t n, void* st) { memset((void*)d, v, n); return sticky; }
int cuStreamCreate(void** s, unsigned f) { *s = malloc(8); return sticky; }
int cuStreamDestroy_v2(void* s) { free(s); return sticky; }
int cuStreamSynchronize(void* s) { return sticky; }
int cuStreamQuery(void* s) { return sticky ? sticky : running ? 600 : 0; }
int cuEventCreate(void** e, unsigned f) { *e = malloc(8); return 0; }
int cuEventDestroy_v2(void* e) { free(e); return 0; }
int cuEventRecord(void* e, void* s) { note("event;", 0, 0, 0, 0); return sticky; }
int cuEventSynchronize(void* e) { return sticky; }
int cuEventElapsedTime(float* ms, void* a, void* b) { *ms = 0.25f; return sticky; }
int cuGetErrorName(int code, const char** s) { *s = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER"; return 0; }
int cuGetErrorString(int code, const char** s) { *s = "an error"; return 0; }

// Writes its arguments where the descriptor goes: type, rank, swizzle, promotion, address, extents, strides, box.
int cuTensorMapEncodeTiled(uint64_t* map, int type, unsigned rank, void* address, const uint64_t* extent,
                           const uint64_t* stride, const uint32_t* box, const uint32_t* step, int interleave,
                           int swizzle, int promotion, int fill) {
  if ((uintptr_t)map % 64 || (uintptr_t)address % 16) return 1;
  map[0] = type; map[1] = rank; map[2] = swizzle; map[3] = (uint64_t)address;
  for (unsigned i = 0; i < rank; i++) { map[4 + i] = extent[i]; map[8 + i] = i + 1 < rank ? stride[i] : 0; map[12 + i] = box[i]; }
  return 0;
}

int cuLaunchKernelEx(Config* c, Function* f, void** p, void** extra) {
  if (sticky) return sticky;
  if (refuses_without_context && !current) return 201;
  if (strcmp(f->name, "hold") && strcmp(f->name, "fill_shared")) {
    note("launch grid=%ld block=%ld shared=%ld attributes=%ld;", c->grid[0], c->block[0], c->shared, c->count);
    for (unsigned i = 0; i < c->count; i++)
      note("attribute id=%ld %ld,%ld,%ld;", c->attributes[i].id, c->attributes[i].value[0], c->attributes[i].value[1], c->attributes[i].value[2]);
  }
  if (strstr(f->name, "add_one")) {  // (const float* x, float* y, int n)
    const float* x = *(const float**)p[0]; float* y = *(float**)p[1]; int n = *(int*)p[2];
    for (int i = 0; i < n; i++) y[i] = x[i] + 1;
  } else if (strstr(f->name, "dump")) {  // copies `bytes` of every parameter: (unsigned char* out, then sizes below)
    unsigned char* out = *(unsigned char**)p[0];
    static const int sizes[] = {2, 2, 4, 8, 1, 8, 16};
    for (int i = 0; i < 7; i++) { memcpy(out, p[1 + i], sizes[i]); out += sizes[i]; }
  } else if (strstr(f->name, "describe")) {  // (CUtensorMap map, unsigned long long* out)
    memcpy(*(void**)p[1], p[0], 128);
  } else if (strstr(f->name, "illegal")) {
    sticky = 700;
  } else if (strstr(f->name, "endless")) {
    running = 1;
  } else if (strstr(f->name, "prints")) {
    printf("hello from the device\n");
  } else if (strstr(f->name, "asserts")) {
    fprintf(stderr, "kernel.cu:7: void asserts(): block: [1,2,3], thread: [4,5,6] Assertion `x > 0` failed.\n");
    sticky = 710;
  }
  return 0;
}
