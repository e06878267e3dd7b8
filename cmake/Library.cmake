# liburnic.so: every room, with only the public interface exported.
