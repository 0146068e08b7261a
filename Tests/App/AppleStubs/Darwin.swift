// Declarations for type checks, not an implementation: the C library has the same names here.
@_exported import Glibc

public typealias OSStatus = Int32
