"""The messages of schemas/cubind.proto. cubind_pb2 is generated when the package is built."""
