"""Pieces of what the parsers read, for hostile texts."""

from __future__ import annotations


def _pieces(text: str, *others: str) -> tuple[str, ...]:
    """Split at ``¦``, where line ends are of this file only; add pieces that are better written by themselves."""
    return (*(p for p in text.replace("¦\n", "¦").strip("\n").split("¦") if p), *others)


C = _pieces(
    """
(¦)¦{¦}¦[¦]¦<¦>¦,¦;¦:¦=¦*¦&¦#¦\\¦"¦'¦.¦/¦ ¦<<<¦>>>¦::¦->¦//¦/*¦*/¦...¦##¦<:¦:>¦%:¦??=¦
__global__ ¦void k(¦const ¦float* x¦int¦template <¦typename T¦struct ¦union ¦enum ¦class ¦namespace a ¦extern "C" ¦
static ¦inline ¦__device__ ¦__shared__ ¦__restrict__ ¦__launch_bounds__(¦__align__(¦alignas(¦decltype(¦operator ¦
using X = ¦typedef ¦auto ¦constexpr ¦if ¦else ¦for (¦while (¦return ¦asm(¦[[¦]]¦__attribute__((¦R"(¦)"¦u8"¦
#define A B¦#undef A¦#include <x>¦#if 1¦#endif¦#pragma unroll¦#line 7¦A¦B¦k¦x¦y¦N¦T¦0¦1¦0x7f¦1e5f¦1'000¦
unsigned ¦long ¦char ¦half ¦const&¦&&¦extern __shared__ float s[];¦é¦//! ¦999999999999999999999999999999¦
__global__ void k(const float* x, float* y, int N) {}¦k<<<1, 2>>>(x, y)
""",
    "\n",
    "\\\n",
    "\t",
    "\x00",
    "\u2028",
    "\ufeff",
    "\x0c",
    "\r",
)

HEADER = _pieces(
    """
//!¦    ¦(¦)¦[¦]¦<<<¦>>>¦<¦>¦,¦:¦::¦->¦=¦= 0¦let ¦require ¦scratch ¦when ¦otherwise:¦repeat ¦swap(¦where ¦ in ¦
float32¦T¦x¦y¦N¦M¦f(x: float32[N]) -> y: float32[N]¦k<<<1, 2>>>(x, y)¦tensor_map(¦box=¦swizzle=¦cluster=¦cooperative¦
inout ¦strided ¦1¦0¦99999999999999999999¦//¦%¦**¦/¦and ¦not ¦or ¦sizeof(¦aligned(¦tma_ok(¦min(¦max(¦ceil_div(¦
.stride(¦num_sms¦repeat_index¦if ¦else ¦lambda ¦for ¦x.y¦'¦"¦#¦\\¦é¦{¦}¦0x¦1e5¦1_000¦==¦!=¦<=¦+¦-¦*¦~¦@¦:=¦await ¦`
""",
    "\n",
    "\n//! ",
    "\x00",
    "\u2028",
    "\t",
)

REPLY = _pieces(
    """
```¦```cuda¦~~~¦> ¦- ¦1. ¦    ¦`¦__global__ void k() {}¦//! ¦~~~~~¦```` cpp¦{¦}¦*/¦#include¦template
""",
    "\n",
    "\n\n",
    "\r",
    "\ufeff",
    "\n```\n",
    "\n```cuda\n",
)

JSON = _pieces(
    """
{¦}¦[¦]¦,¦:¦"¦\\¦\\u0000¦\\ud800¦null¦true¦false¦NaN¦Infinity¦-1¦1e999¦0.5¦12345678901234567890¦é¦"name"¦"problem"¦
"report"¦"domain"¦"environment"¦"usage"¦"created"¦"examples"¦"schema"¦"2026-11-30T12:00:00"¦"2026-11-30T12:00:00+00:00"
""",
    "[" * 70,
    '{"a":' * 70,
    "\ufeff",
    "\n",
)

LINE = _pieces(
    """
--¦-¦--name¦--shapes¦--inputs¦--device¦--attempts¦--timeout¦--replay¦--baseline¦--from¦--checks¦--tolerance¦--quiet¦
=¦ ¦'¦"¦\\¦{¦}¦$¦;¦,¦M=3¦x[¦]¦f¦np.exp¦1¦0¦-1¦1e400¦nan¦cpu¦cuda¦auto¦only¦é¦%¦%%¦#¦--fix¦--error¦--context¦list¦
history¦rollback¦export¦show¦diff¦why?¦--atempts¦...¦**¦@
""",
    "\n",
    "\t",
    "\x00",
    "\ud800",
)

LOG = _pieces(
    """
kernel.cu:3:5: error: ¦kernel.cu(7): error: ¦warning: ¦note: ¦fatal error: ¦<launch>:1: ¦In file included from ¦^¦:¦(¦)¦
ptxas info    : Used 32 registers, 400 bytes cmem[0]¦ptxas info    : Compiling entry function 'k' for 'sm_90a'¦
Function properties for ¦8 bytes stack frame¦========= Invalid __global__ read of size 4 bytes¦========= ¦
at k(float*)+0x40 in kernel.cu:12¦by thread (1,2,3) in block (0,0,0)¦Address 0x7f00¦is out of bounds¦1¦
Race reported between Write access¦ERROR SUMMARY: 1 error¦é¦'¦`¦cpu_device_entry_¦99999999999999999999
""",
    "\n",
    "\r\n",
    "\x1b[31m",
    "\x00",
)

SHAPES = _pieces(
    """
N¦M¦ ¦*¦...¦#¦_¦?¦=¦1¦0¦²¦٣¦N-1¦{n}¦*batch¦n=3¦class¦min¦num_sms¦é¦-¦(¦T¦x¦lambda¦sizeof
""",
    "\n",
    "\x00",
)

SECRETS = _pieces(
    """
sk-ant-api03-¦key=¦Bearer ¦password: ¦AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA¦://a:b@¦-----BEGIN ¦a1a1a1a1a1a1a1a1 ¦
eyJ¦eyJaaaaaaaaaa-¦.eyJa¦sk-¦T3BlbkFJ¦//a/:_authToken=¦glagent-¦glcbt-¦xoxb-1-¦AKC¦ AKCa1¦MTIzNDU2Nzg5MDEyMzQ1Njc4.¦AC¦
aws key "¦pwd="¦auth_key='¦ibm_cloud_iam_api_key¦cl_token=¦softlayer key  ¦        ¦AccountKey=¦12345678:¦-us1¦SG.¦
https://hooks.slack.com/services/T1/B1/¦PuTTY-User-Key-File-2:¦---- BEGIN PRIVATE KEY ----¦ghp_¦sk_live_¦sq0csp-¦"¦_
""",
    "\n",
)
