# Warnings, sanitizers and the one way a layer is declared.

add_library(headroom_flags INTERFACE)
target_include_directories(headroom_flags INTERFACE "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}")
target_compile_definitions(headroom_flags INTERFACE HEADROOM_VERSION="${PROJECT_VERSION}")
# -Wrestrict, -Wstringop-overflow, and -Warray-bounds in a release: g++ 12 warns wrongly on std::string's operator+ and
# insert (GCC bug 105651).
target_compile_options(headroom_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -Wimplicit-fallthrough -Wno-missing-field-initializers -Wno-restrict -Wno-stringop-overflow
  $<$<CONFIG:Release>:-Wno-array-bounds> $<$<BOOL:${HEADROOM_WERROR}>:-Werror>)
# __FILE__ is a path in the checkout, wherever that lies: else no compiler cache could share a test, or a file with HR_CHECK.
target_compile_options(headroom_flags INTERFACE "-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=")
# Hardening in every build: what a hostile recording reaches must stop, not corrupt. _FORTIFY_SOURCE needs an optimiser,
# and hides from the address sanitizer what it would report.
target_compile_options(headroom_flags INTERFACE -fstack-protector-strong -fstack-clash-protection)
target_compile_definitions(headroom_flags INTERFACE _GLIBCXX_ASSERTIONS)
target_link_options(headroom_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(headroom_flags INTERFACE -fcf-protection)
endif()
if(NOT HEADROOM_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(headroom_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
# g++ collects its garbage less often: a twentieth less to compile, for a quarter of a gigabyte.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(headroom_flags INTERFACE --param=ggc-min-expand=300 --param=ggc-min-heapsize=524288)
endif()
set(HEADROOM_HANGS_AFTER 300)  # seconds; of a unit test or the corpus of a fuzz target
if(HEADROOM_SANITIZE)
  set(HEADROOM_HANGS_AFTER 900)  # unoptimised and instrumented: twenty times as slow
  target_compile_options(headroom_flags INTERFACE -fsanitize=${HEADROOM_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(headroom_flags INTERFACE -fsanitize=${HEADROOM_SANITIZE})
endif()
# At a place of their own in memory, six million places of UBSan's tables are not to be written by the linker, nor by each
# start: the program is a third smaller, and starts in a third of the time.
if(HEADROOM_SANITIZE MATCHES "undefined")
  set(CMAKE_CXX_LINK_OPTIONS_PIE -no-pie)
endif()
# What is not handed out is linked by LLVM's linker, where it is: a fifth of the time, which is most of a build whose objects
# are in ccache.
find_program(LLD ld.lld)
if(LLD AND NOT HEADROOM_PORTABLE)
  add_link_options(-fuse-ld=lld)
endif()

# Files of one folder are compiled several at a time, and what most of them read of other libraries is compiled once for all
# that have the same options: most of what a compiler does here is to read the same headers again.
option(HEADROOM_UNITY "compile several files of a folder as one, with precompiled headers" OFF)
set(HEADROOM_PRECOMPILED <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory> <numeric>
  <optional> <set> <span> <string> <string_view> <tuple> <unordered_map> <utility> <vector> <fmt/format.h>
  <tl/expected.hpp>)
if(HEADROOM_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(headroom_flags INTERFACE -fpch-preprocess)  # for ccache
endif()

# headroom_precompiled(NAME LIBS library... OPTIONS option... HEADERS header...): what targets with these options share.
function(headroom_precompiled name)
  cmake_parse_arguments(ARG "" "" "LIBS;OPTIONS;HEADERS" ${ARGN})
  add_library(precompiled_${name} OBJECT EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/cmake/precompiled.cc")
  target_link_libraries(precompiled_${name} PRIVATE headroom_flags ${HEADROOM_FMT} tl::expected ${ARG_LIBS})
  target_compile_options(precompiled_${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(precompiled_${name} PRIVATE ${HEADROOM_PRECOMPILED} ${ARG_HEADERS})
endfunction()

# headroom_unity(TARGET [NAME]): its files several at a time, with the headers that are precompiled as NAME.
function(headroom_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HEADROOM_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  if(HEADROOM_UNITY AND ARGC GREATER 1)
    target_precompile_headers(${target} REUSE_FROM precompiled_${ARGV1})
  endif()
endfunction()

if(HEADROOM_UNITY)
  headroom_precompiled(layer)
  headroom_precompiled(layer_O1 OPTIONS -O1)
  headroom_precompiled(layer_O2 OPTIONS -O2)
endif()

# headroom_optimised(TARGET LEVEL): compiled with -LEVEL, whatever the build says.
function(headroom_optimised target level)
  target_compile_options(${target} PRIVATE -${level})
  get_target_property(precompiled ${target} PRECOMPILE_HEADERS_REUSE_FROM)
  if(precompiled STREQUAL "precompiled_layer")
    set_target_properties(${target} PROPERTIES PRECOMPILE_HEADERS_REUSE_FROM precompiled_layer_${level})
  elseif(precompiled)
    set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# What computes for minutes without optimisation: a little more to compile, a third of the time to test.
function(headroom_computes target)
  if(HEADROOM_SANITIZE)
    headroom_optimised(${target} O1)
  endif()
endfunction()

# What runs beside the job: optimised in a build for development, too. (What reads files takes a third less to compile without.)
function(headroom_hot target)
  if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    headroom_optimised(${target} O2)
  endif()
endfunction()

# headroom_layer(NAME [IN folder] [FOLDERS folder...] [DEPS layer...] [LIBS library...] [TEST_LIBS library...])
# All *.cc of the calling folder (or of IN below it, and of FOLDERS below that) become library hr_NAME; all *_test.cc become
# one GoogleTest program NAME_test.
# DEPS are layers it may include (tools/check_layers.py holds the same table); LIBS are outside libraries.
function(headroom_layer name)
  cmake_parse_arguments(ARG "" "IN" "FOLDERS;DEPS;LIBS;TEST_LIBS" ${ARGN})
  cmake_path(APPEND CMAKE_CURRENT_SOURCE_DIR "${ARG_IN}" OUTPUT_VARIABLE here)
  set(patterns "${here}/*.cc")
  foreach(folder ${ARG_FOLDERS})
    list(APPEND patterns "${here}/${folder}/*.cc")
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(fuzzers ${sources})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")
  list(TRANSFORM ARG_DEPS PREPEND hr_)
  if(sources)
    add_library(hr_${name} STATIC ${sources})
    headroom_unity(hr_${name} layer)
    target_link_libraries(hr_${name} PUBLIC headroom_flags ${HEADROOM_FMT} tl::expected ${ARG_DEPS} ${ARG_LIBS})
  else()
    add_library(hr_${name} INTERFACE)
    target_link_libraries(hr_${name} INTERFACE headroom_flags ${HEADROOM_FMT} tl::expected ${ARG_DEPS} ${ARG_LIBS})
  endif()
  if(BUILD_TESTING)
    foreach(fuzzer ${fuzzers})
      get_filename_component(fuzz_name "${fuzzer}" NAME_WE)
      headroom_fuzz(${fuzz_name} SOURCE "${fuzzer}" LIBS hr_${name} ${ARG_TEST_LIBS})
    endforeach()
  endif()
  if(BUILD_TESTING AND tests)
    headroom_test(${name}_test SOURCES ${tests} LIBS hr_${name} ${ARG_TEST_LIBS})
  endif()
endfunction()

# What the sanitizers run: no benchmarks, and nothing that only end-to-end tests need.
add_custom_target(unit_tests)
add_custom_target(fuzzers)
# What the tests with the label `truth` start.
add_custom_target(measurements)

# Where tests find what lies in the checkout and in the build (base/testing.h).
if(BUILD_TESTING)
  add_library(checkout STATIC "${CMAKE_SOURCE_DIR}/tests/checkout.cc")
  target_compile_definitions(checkout PRIVATE HEADROOM_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    HEADROOM_BUILD_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(checkout PRIVATE headroom_flags)
endif()

# headroom_test(NAME SOURCES file... LIBS library...): one GoogleTest program, one line in ctest. Tests named
# OnAQuietMachine... compare what a live run measured with a figure: a line of their own, with the label `truth`.
function(headroom_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  # What is tested is optimised as ever; the tests themselves are half of all code, and take a third less to compile.
  set(options "")
  if(NOT HEADROOM_SANITIZE)
    set(options -O0 -U_FORTIFY_SOURCE)
  endif()
  if(HEADROOM_UNITY AND NOT TARGET precompiled_test)
    headroom_precompiled(test LIBS GTest::gmock OPTIONS ${options} -fPIE HEADERS <gmock/gmock.h> <gtest/gtest.h>)
    set_target_properties(precompiled_test PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  endif()
  headroom_unity(${name} test)
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} checkout headroom_flags GTest::gmock_main)
  target_compile_options(${name} PRIVATE ${options})
  set(measures "")
  foreach(source ${ARG_SOURCES})
    file(STRINGS "${source}" named REGEX "^TEST.*, OnAQuietMachine")
    list(APPEND measures ${named})
  endforeach()
  add_dependencies(unit_tests ${name})
  add_test(NAME unit.${name} COMMAND ${name} --gtest_filter=-*.OnAQuietMachine*)
  set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT ${HEADROOM_HANGS_AFTER})
  if(measures)
    add_test(NAME truth.${name} COMMAND ${name} --gtest_filter=*.OnAQuietMachine*)
    set_tests_properties(truth.${name} PROPERTIES LABELS truth TIMEOUT ${HEADROOM_HANGS_AFTER} RUN_SERIAL ON)
    add_dependencies(measurements ${name})
  endif()
endfunction()

# headroom_fuzz(NAME SOURCE file LIBS library...): a fuzz target. As a test it replays tests/fuzz/NAME/* and a fixed
# number of mutations of each; with -DHEADROOM_FUZZ=ON (clang) it becomes a libFuzzer program.
option(HEADROOM_FUZZ "build fuzz targets with libFuzzer (clang)" OFF)
if(HEADROOM_FUZZ)
  target_compile_options(headroom_flags INTERFACE -fsanitize=fuzzer-no-link)
else()
  add_library(fuzz_driver OBJECT "${CMAKE_SOURCE_DIR}/tests/fuzz/driver.cc")
  target_link_libraries(fuzz_driver PRIVATE headroom_flags)
endif()
function(headroom_fuzz name)
  cmake_parse_arguments(ARG "" "SOURCE" "LIBS" ${ARGN})
  if(HEADROOM_FUZZ)
    add_executable(${name} ${ARG_SOURCE})
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/corpus/${name}")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${ARG_SOURCE} $<TARGET_OBJECTS:fuzz_driver>)
    add_test(NAME fuzz.${name} COMMAND ${name} "${CMAKE_SOURCE_DIR}/tests/fuzz/${name}")
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${HEADROOM_HANGS_AFTER})
  endif()
  add_dependencies(fuzzers ${name})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} headroom_flags)
endfunction()
