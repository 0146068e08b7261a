import Foundation
import TestSupport

/// A change of one byte by exclusive or with a mask.
struct ByteChange: CustomStringConvertible {
  let offset: Int
  let mask: UInt8

  var description: String { "byte \(offset) ^ 0x\(String(mask, radix: 16))" }

  func applied(to bytes: [UInt8]) -> [UInt8] {
    var changed = bytes
    changed[offset] ^= mask
    return changed
  }

  /// Returns the changes of every byte with every mask in `values`.
  static func all(of bytes: [UInt8], values: some Sequence<UInt8>) -> [ByteChange] {
    bytes.indices.flatMap { offset in values.map { ByteChange(offset: offset, mask: $0) } }
  }

  /// Returns the changes of every byte with one mask, which differs from byte to byte; if `areExhaustive`, with all 255
  /// masks. Under a sanitizer, only every 17th byte is changed, because a sanitizer checks the code and not its
  /// refusals.
  static func all(of bytes: [UInt8]) -> [ByteChange] {
    if areExhaustive { return all(of: bytes, values: 1...255) }
    return stride(from: 0, to: bytes.count, by: Sanitizer.isOn ? 17 : 1)
      .map { ByteChange(offset: $0, mask: 1 << UInt8($0 % 8)) }
  }

  /// Returns the changes of every single bit; if `areExhaustive`, of every byte with all 255 masks.
  static func everyBit(of bytes: [UInt8]) -> [ByteChange] {
    areExhaustive ? all(of: bytes, values: 1...255) : all(of: bytes, values: (0..<8).map { 1 << $0 })
  }

  /// Whether the variable `SALLYPORT_EVERY_VALUE` is set: the tests then try every value of every byte, for hours.
  static let areExhaustive = ProcessInfo.processInfo.environment["SALLYPORT_EVERY_VALUE"] != nil
}
