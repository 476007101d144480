# Warnings, sanitizers and the one way a layer is declared.

add_library(headroom_flags INTERFACE)
target_include_directories(headroom_flags INTERFACE "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}")
target_compile_definitions(headroom_flags INTERFACE HEADROOM_VERSION="${PROJECT_VERSION}")
# -Wrestrict: g++ 12 warns wrongly on std::string operator+ (GCC bug 105651).
target_compile_options(headroom_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -Wimplicit-fallthrough -Wno-missing-field-initializers -Wno-restrict $<$<BOOL:${HEADROOM_WERROR}>:-Werror>)
if(HEADROOM_SANITIZE)
  target_compile_options(headroom_flags INTERFACE -fsanitize=${HEADROOM_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -O1)
  target_link_options(headroom_flags INTERFACE -fsanitize=${HEADROOM_SANITIZE})
endif()

# headroom_uses_regex(FILE...): sources with <regex>, in which g++ 12 warns wrongly when it sanitizes (GCC bug 105616).
function(headroom_uses_regex)
  if(HEADROOM_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -Wno-maybe-uninitialized)
  endif()
endfunction()

# headroom_layer(NAME [DEPS layer...] [LIBS library...])
# All *.cc of the calling folder become library hr_NAME; all *_test.cc become one GoogleTest program NAME_test.
# DEPS are layers it may include (tools/check_layers.py holds the same table); LIBS are outside libraries.
function(headroom_layer name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;TEST_LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")
  list(TRANSFORM ARG_DEPS PREPEND hr_)
  if(sources)
    add_library(hr_${name} STATIC ${sources})
    target_link_libraries(hr_${name} PUBLIC headroom_flags ${HEADROOM_FMT} tl::expected ${ARG_DEPS} ${ARG_LIBS})
  else()
    add_library(hr_${name} INTERFACE)
    target_link_libraries(hr_${name} INTERFACE headroom_flags ${HEADROOM_FMT} tl::expected ${ARG_DEPS} ${ARG_LIBS})
  endif()
  if(BUILD_TESTING)
    file(GLOB fuzzers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*_fuzz.cc")
    foreach(fuzzer ${fuzzers})
      get_filename_component(fuzz_name "${fuzzer}" NAME_WE)
      headroom_fuzz(${fuzz_name} SOURCE "${fuzzer}" LIBS hr_${name})
    endforeach()
  endif()
  if(BUILD_TESTING AND tests)
    headroom_test(${name}_test SOURCES ${tests} LIBS hr_${name} ${ARG_TEST_LIBS})
  endif()
endfunction()

# headroom_test(NAME SOURCES file... LIBS library...): one GoogleTest program, one line in ctest.
function(headroom_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} headroom_flags GTest::gmock_main)
  target_compile_definitions(${name} PRIVATE HEADROOM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 120)
endfunction()

# headroom_fuzz(NAME SOURCE file LIBS library...): a fuzz target. As a test it replays tests/fuzz/NAME/* and a fixed
# number of mutations of each; with -DHEADROOM_FUZZ=ON (clang) it becomes a libFuzzer program.
option(HEADROOM_FUZZ "build fuzz targets with libFuzzer (clang)" OFF)
function(headroom_fuzz name)
  cmake_parse_arguments(ARG "" "SOURCE" "LIBS" ${ARGN})
  if(HEADROOM_FUZZ)
    add_executable(${name} ${ARG_SOURCE})
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${ARG_SOURCE} "${CMAKE_SOURCE_DIR}/tests/fuzz/driver.cc")
    add_test(NAME fuzz.${name} COMMAND ${name} "${CMAKE_SOURCE_DIR}/tests/fuzz/${name}")
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} headroom_flags)
endfunction()
