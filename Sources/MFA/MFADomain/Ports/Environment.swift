internal import ByteCoding
public import Foundation

/// The source of random bytes.
public struct Entropy: Sendable {
  private let draw: @Sendable (Int) -> [UInt8]

  public init(_ draw: @escaping @Sendable (_ count: Int) -> [UInt8]) { self.draw = draw }

  /// `count` unpredictable bytes.
  public func bytes(_ count: Int) -> [UInt8] { draw(count) }

  /// A number below `bound`, each as likely as the others.
  public func number(below bound: UInt64) -> UInt64 {
    var generator = Generator(entropy: self)
    return .random(in: 0..<bound, using: &generator)
  }

  /// A version 4 UUID.
  public func uuid() -> UUID {
    let b = bytes(16)
    return UUID(
      uuid: (
        b[0], b[1], b[2], b[3], b[4], b[5], b[6] & 0x0F | 0x40, b[7], b[8] & 0x3F | 0x80, b[9], b[10], b[11], b[12],
        b[13], b[14], b[15]
      ))
  }

  /// The system's generator.
  public static let system = Entropy { count in
    var generator = SystemRandomNumberGenerator()
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count { withUnsafeBytes(of: generator.next()) { bytes += $0 } }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  private struct Generator: RandomNumberGenerator {
    let entropy: Entropy

    func next() -> UInt64 { entropy.bytes(8).reduce(0) { $0 << 8 | UInt64($1) } }
  }
}
