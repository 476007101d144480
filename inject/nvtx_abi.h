// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#include <stdint.h>

// What NVTX 3 (a header that is compiled into the programs that use it) and a library named by NVTX_INJECTION64_PATH
// say to each other, as far as we use it. Our own declarations.
//
// At its first call NVTX loads the library and calls InitializeInjectionNvtx2 with a function that gives tables by
// number. Table 1 has a function that gives, for a module, the addresses of the function pointers behind the public
// functions: the library puts its own functions there. What it leaves alone does nothing from then on. NVTX does so
// once for every copy of it that a program is linked from.
namespace headroom::inject::nvtx {

using GetTable = const void* (*)(uint32_t table);

inline constexpr uint32_t kCallbacksTable = 1;
using Function = void (*)();
struct Callbacks {
  size_t struct_bytes;
  // `functions`: as many addresses as `count` says, some of them null. 0: there is no such module.
  int (*module_functions)(uint32_t module, Function*** functions, unsigned* count);
};

inline constexpr uint32_t kCore = 1, kCore2 = 5;  // modules

// Places in the table of kCore. A: char, W: wchar_t, Ex: Attributes.
enum : unsigned {
  kRangeStartEx = 4,  // uint64_t (const Attributes*)
  kRangeStartA = 5,   // uint64_t (const char*)
  kRangeStartW = 6,   // uint64_t (const wchar_t*)
  kRangeEnd = 7,      // void (uint64_t)
  kRangePushEx = 8,   // int (const Attributes*): the depth, from 0; below 0: an error
  kRangePushA = 9,    // int (const char*)
  kRangePushW = 10,   // int (const wchar_t*)
  kRangePop = 11,     // int ()
};
// Places in the table of kCore2. All but the last four begin with the domain, a handle; null: the one of kCore.
enum : unsigned {
  kDomainRangeStartEx = 2,      // uint64_t (void*, const Attributes*)
  kDomainRangeEnd = 3,          // void (void*, uint64_t)
  kDomainRangePushEx = 4,       // int (void*, const Attributes*)
  kDomainRangePop = 5,          // int (void*)
  kDomainRegisterStringA = 10,  // void* (void*, const char*)
  kDomainRegisterStringW = 11,  // void* (void*, const wchar_t*)
  kDomainCreateA = 12,          // void* (const char*)
  kDomainCreateW = 13,          // void* (const wchar_t*)
};

struct Attributes {
  uint16_t version, struct_bytes;
  uint32_t category;
  int32_t color_kind;
  uint32_t color;
  int32_t payload_kind, reserved;
  uint64_t payload;
  int32_t message_kind;
  const void* message;
};
enum : int32_t { kAscii = 1, kUnicode = 2, kRegistered = 3 };  // kinds of message
static_assert(offsetof(Attributes, message_kind) == 32 && offsetof(Attributes, message) == 40 &&
              sizeof(Attributes) == 48);

}  // namespace headroom::inject::nvtx
