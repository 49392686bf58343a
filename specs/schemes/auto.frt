frt 1

# What scheme="auto" stands for on a device of this compute capability.
auto { capability >= 8.9 => fp8_static, else => none }
