# Language level, warnings, ccache, sanitizers. Everything here applies to our own
# targets through kmosaic_target(); dependencies are not touched.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

set(KMOSAIC_SANITIZE "" CACHE STRING "address, thread or empty")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Relative paths let clones and build directories share what they compiled.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_program(LLD_PROGRAM ld.lld)
if(LLD_PROGRAM AND NOT KMOSAIC_SANITIZE)
  add_link_options(-fuse-ld=lld)
endif()

if(KMOSAIC_SANITIZE)
  add_compile_options(-fsanitize=${KMOSAIC_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${KMOSAIC_SANITIZE})
  if(KMOSAIC_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=undefined -fno-sanitize-recover=undefined)
    add_link_options(-fsanitize=undefined)
  else()
    # Headers of protobuf and Abseil change the layout of classes where this macro is defined, and
    # the distribution's libraries were built without it.
    # libstdc++ looks at it too, to count references in a way that ThreadSanitizer understands.
    add_compile_options(-U__SANITIZE_THREAD__)
    add_compile_definitions(KMOSAIC_TSAN _GLIBCXX_TSAN=1)
  endif()
endif()

# kmosaic_target(NAME): include root, warnings as errors.
function(kmosaic_target name)
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
    -Woverloaded-virtual -Wno-missing-field-initializers -Werror>
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Werror>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Wrong about std::string at -O2: https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105329
    target_compile_options(${name} PRIVATE
      $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-Wno-restrict>)
  endif()
  if(KMOSAIC_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Wrong about std::regex in instrumented code: https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105562
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
  endif()
endfunction()
