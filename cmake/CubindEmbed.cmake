# cubind_embed(FILE schemas/table.schema.json NAME kTableSchema)
#   Makes "schemas/table.schema.hpp", which holds the file's text as `inline constexpr std::string_view cubind::kTableSchema`.
#   HEADER names another header, for files that differ in their extension alone.
function(cubind_embed)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "FILE;NAME;HEADER" "")
  set(source "${PROJECT_SOURCE_DIR}/${arg_FILE}")
  if(arg_HEADER)
    set(header "${arg_HEADER}")
  else()
    cmake_path(REPLACE_EXTENSION arg_FILE LAST_ONLY hpp OUTPUT_VARIABLE header)
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  file(READ "${source}" text)
  # Split: compilers limit the length of one literal.
  string(LENGTH "${text}" length)
  set(literals "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 part)
    string(APPEND literals "R\"cubind(${part})cubind\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  file(CONFIGURE OUTPUT "${CUBIND_GENERATED_DIR}/${header}" @ONLY CONTENT
"// Made from ${arg_FILE}.
#pragma once

#include <string_view>

namespace cubind {

inline constexpr std::string_view ${arg_NAME} =
@literals@;

}  // namespace cubind
")
endfunction()
