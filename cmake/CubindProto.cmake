# cubind_proto: the protobuf and gRPC code of every schemas/*.proto, included as "schemas/cubind.pb.h" and
# "schemas/cubind.grpc.pb.h". Generated code answers to no warning of ours.
file(GLOB protos CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/schemas/*.proto")
file(MAKE_DIRECTORY "${CUBIND_GENERATED_DIR}/schemas")
set(sources)
foreach(proto IN LISTS protos)
  get_filename_component(stem "${proto}" NAME_WE)
  set(base "${CUBIND_GENERATED_DIR}/schemas/${stem}")
  set(outputs "${base}.pb.cc" "${base}.pb.h" "${base}.grpc.pb.cc" "${base}.grpc.pb.h")
  # Every file depends on all protos: they import each other, and protoc is quick.
  add_custom_command(OUTPUT ${outputs}
    COMMAND protobuf::protoc "--proto_path=${PROJECT_SOURCE_DIR}" "--cpp_out=${CUBIND_GENERATED_DIR}"
            "--grpc_out=${CUBIND_GENERATED_DIR}" "--plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>" "${proto}"
    DEPENDS ${protos}
    COMMENT "Generating schemas/${stem}.pb.h")
  list(APPEND sources ${outputs})
endforeach()
add_custom_target(cubind_proto_headers DEPENDS ${sources}) # for who reads the headers without compiling them: clang-tidy
add_library(cubind_proto SHARED ${sources})
cubind_ship_library(cubind_proto)
target_include_directories(cubind_proto SYSTEM PUBLIC "${CUBIND_GENERATED_DIR}")
target_link_libraries(cubind_proto PUBLIC gRPC::grpc++ protobuf::libprotobuf)
target_compile_options(cubind_proto PRIVATE -w)
