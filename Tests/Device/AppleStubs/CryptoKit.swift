// Declarations for type checks, not an implementation.
public import Foundation

public struct SHA256Digest: Sendable, Sequence {
  public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
}

public struct SHA256: Sendable {
  public static func hash<D: DataProtocol>(data: D) -> SHA256Digest { fatalError() }
}

public enum SecureEnclave {
  public static var isAvailable: Bool { fatalError() }
}
