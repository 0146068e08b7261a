internal import CLibSecret

/// A secret in memory of libsecret, which is not swapped out where the system allows that, and is wiped when released.
final class SecretBytes {
  private let value: OpaquePointer

  /// Copies `bytes`.
  init(_ bytes: [UInt8]) {
    let isText = !bytes.contains(0) && String(validating: bytes, as: UTF8.self) != nil
    value = bytes.withUnsafeBytes { buffer in
      secret_value_new(
        buffer.baseAddress?.assumingMemoryBound(to: CChar.self), gssize(buffer.count),
        isText ? "text/plain" : "application/octet-stream")
    }
  }

  /// Takes over a reference.
  init(owning value: OpaquePointer) { self.value = value }

  deinit { secret_value_unref(UnsafeMutableRawPointer(value)) }

  /// A copy, in ordinary memory.
  var bytes: [UInt8] {
    defer { withExtendedLifetime(self) {} }
    var count: gsize = 0
    guard let start = secret_value_get(value, &count) else { return [] }
    return Array(UnsafeRawBufferPointer(start: start, count: Int(count)))
  }

  /// Lends the value to `body`.
  func withPointer<R>(_ body: (OpaquePointer) throws(SecretServiceError) -> R) throws(SecretServiceError) -> R {
    defer { withExtendedLifetime(self) {} }
    return try body(value)
  }
}
