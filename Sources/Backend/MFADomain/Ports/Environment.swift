internal import ByteCoding
public import Foundation
internal import Glibc
internal import Locking

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
  public static let system = Entropy { RandomBuffer.shared.take($0) }

  private struct Generator: RandomNumberGenerator {
    let entropy: Entropy

    func next() -> UInt64 { entropy.bytes(8).reduce(0) { $0 << 8 | UInt64($1) } }
  }
}

/// Bytes of the system's generator, drawn some hundred at a time: one system call serves many small draws.
private final class RandomBuffer: Sendable {
  static let shared = RandomBuffer()

  /// `getentropy` gives at most 256 bytes.
  private static let size = 256
  private let rest = LockedValue<[UInt8]>([])

  func take(_ count: Int) -> [UInt8] {
    guard count <= Self.size else { return Self.draw(count) }
    return rest.withLock { rest in
      if rest.count < count { rest = Self.draw(Self.size) }
      defer { rest.removeLast(count) }
      return Array(rest.suffix(count))
    }
  }

  private static func draw(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    for start in stride(from: 0, to: count, by: size) {
      bytes[start..<min(start + size, count)].withUnsafeMutableBytes { part in
        // A kernel without `getrandom` gives them to Swift in another way.
        guard getentropy(part.baseAddress, part.count) != 0 else { return }
        for index in part.indices { part[index] = .random(in: .min ... .max) }
      }
    }
    return bytes
  }
}
