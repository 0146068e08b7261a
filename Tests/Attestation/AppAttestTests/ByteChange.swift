import Foundation
import TestSupport

/// One byte of something, and what it is combined with (exclusive or) to become another.
struct ByteChange: CustomStringConvertible {
  let offset: Int
  let mask: UInt8

  var description: String { "byte \(offset) ^ 0x\(String(mask, radix: 16))" }

  func applied(to bytes: [UInt8]) -> [UInt8] {
    var changed = bytes
    changed[offset] ^= mask
    return changed
  }

  /// Every byte, with every mask.
  static func all(of bytes: [UInt8], values: some Sequence<UInt8>) -> [ByteChange] {
    bytes.indices.flatMap { offset in values.map { ByteChange(offset: offset, mask: $0) } }
  }

  /// Every byte, with one mask each that is another one from byte to byte; with all 255 of them if they are asked for.
  /// Under a sanitizer, which is there for what the code does and not for what it refuses, every 17th byte.
  static func all(of bytes: [UInt8]) -> [ByteChange] {
    if areExhaustive { return all(of: bytes, values: 1...255) }
    return stride(from: 0, to: bytes.count, by: Sanitizer.isOn ? 17 : 1)
      .map { ByteChange(offset: $0, mask: 1 << UInt8($0 % 8)) }
  }

  /// Every byte, with each of its bits changed alone; with all 255 masks if they are asked for.
  static func everyBit(of bytes: [UInt8]) -> [ByteChange] {
    areExhaustive ? all(of: bytes, values: 1...255) : all(of: bytes, values: (0..<8).map { 1 << $0 })
  }

  /// Whether `SALLYPORT_EVERY_VALUE` asks for every value of every byte, which takes hours.
  static let areExhaustive = ProcessInfo.processInfo.environment["SALLYPORT_EVERY_VALUE"] != nil
}
