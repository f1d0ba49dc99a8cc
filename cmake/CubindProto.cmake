# The generated code of every schemas/*.proto, in two libraries: who needs messages alone links no gRPC.
#   cubind_proto       messages, included as "schemas/cubind.pb.h"
#   cubind_services    their services, "schemas/cubind.grpc.pb.h"; links cubind_proto and gRPC
# Generated code answers to no warning of ours.
file(GLOB protos CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/schemas/*.proto")
file(MAKE_DIRECTORY "${CUBIND_GENERATED_DIR}/schemas")
set(message_sources)
set(service_sources)
foreach(proto IN LISTS protos)
  get_filename_component(stem "${proto}" NAME_WE)
  set(base "${CUBIND_GENERATED_DIR}/schemas/${stem}")
  set(messages "${base}.pb.cc" "${base}.pb.h")
  set(services)
  set(plugin)
  file(STRINGS "${proto}" declarations REGEX "^service ")
  if(declarations)
    set(services "${base}.grpc.pb.cc" "${base}.grpc.pb.h")
    set(plugin "--grpc_out=${CUBIND_GENERATED_DIR}" "--plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>")
  endif()
  # Every file depends on all protos: they import each other, and protoc is quick.
  add_custom_command(OUTPUT ${messages} ${services}
    COMMAND protobuf::protoc "--proto_path=${PROJECT_SOURCE_DIR}" "--cpp_out=${CUBIND_GENERATED_DIR}" ${plugin} "${proto}"
    DEPENDS ${protos}
    COMMENT "Generating schemas/${stem}.pb.h")
  list(APPEND message_sources ${messages})
  list(APPEND service_sources ${services})
endforeach()
add_custom_target(cubind_proto_headers DEPENDS ${message_sources} ${service_sources}) # for who reads them without compiling: clang-tidy

add_library(cubind_proto SHARED ${message_sources})
target_link_libraries(cubind_proto PUBLIC protobuf::libprotobuf)
add_library(cubind_services SHARED ${service_sources})
target_link_libraries(cubind_services PUBLIC cubind_proto gRPC::grpc++)
foreach(library IN ITEMS cubind_proto cubind_services)
  cubind_ship_library(${library})
  target_include_directories(${library} SYSTEM PUBLIC "${CUBIND_GENERATED_DIR}")
  target_compile_options(${library} PRIVATE -w)
endforeach()
