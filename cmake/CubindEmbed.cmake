# cubind_embed(FILE schemas/store.sql NAME kStoreSchema)
#   Makes "schemas/store.hpp", which holds the file's text as `inline constexpr std::string_view cubind::kStoreSchema`.
#   HEADER names another header, for files that differ in their extension alone.
function(cubind_embed)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "FILE;NAME;HEADER" "")
  set(source "${PROJECT_SOURCE_DIR}/${arg_FILE}")
  if(arg_HEADER)
    set(header "${arg_HEADER}")
  else()
    cmake_path(REPLACE_EXTENSION arg_FILE LAST_ONLY hpp OUTPUT_VARIABLE header)
  endif()
  cubind_text_literals("${source}" literals)
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

# cubind_embed_folder(FOLDER tuner/includes/stand_ins NAME kStandInTexts)
#   Makes "tuner/includes/stand_ins.texts.hpp", which holds each file's path below the folder and its text, sorted, as
#   `inline constexpr std::array cubind::kStandInTexts` of pairs.
function(cubind_embed_folder)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "FOLDER;NAME" "")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/${arg_FOLDER}" "${PROJECT_SOURCE_DIR}/${arg_FOLDER}/*")
  list(SORT sources)
  set(texts "")
  foreach(source IN LISTS sources)
    cubind_text_literals("${PROJECT_SOURCE_DIR}/${arg_FOLDER}/${source}" literals)
    string(APPEND texts "    std::pair<std::string_view, std::string_view>{\"${source}\",\n${literals}},\n")
  endforeach()
  file(CONFIGURE OUTPUT "${CUBIND_GENERATED_DIR}/${arg_FOLDER}.texts.hpp" @ONLY CONTENT
"// Made from ${arg_FOLDER}/.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace cubind {

inline constexpr std::array ${arg_NAME} = {
@texts@};

}  // namespace cubind
")
endfunction()

# The file's text as C++ literals. Split: compilers limit the length of one literal.
function(cubind_text_literals source result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  file(READ "${source}" text)
  string(LENGTH "${text}" length)
  set(literals "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 part)
    string(APPEND literals "R\"cubind(${part})cubind\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  set(${result} "${literals}" PARENT_SCOPE)
endfunction()
