internal import Cryptography

/// Builds trees within limits. One inspector makes the whole tree of an input.
struct Inspector {
  /// More than anything that devices send has; an output of as many lines is still readable by programs.
  static let mostNodes = 10_000
  /// Nesting of all encodings together.
  static let deepest = 64

  private var left = Inspector.mostNodes
  /// Set when a limit is reached: the rest is not shown.
  private(set) var isFull = false
  /// Set when the items that are being read cannot be read on.
  var isBroken = false

  /// Counts a part at `offset`. Returns the part that says that the limit is reached, once, and afterwards `nil` with
  /// `isFull` set.
  mutating func limit(at offset: Int, depth: Int) -> InspectedNode? {
    guard !isFull else { return nil }
    left -= 1
    if left < 0 {
      isFull = true
      return .broken(at: offset, "more than \(Self.mostNodes) parts: the rest is not shown")
    }
    if depth >= Self.deepest {
      isFull = true
      return .broken(at: offset, "nested deeper than \(Self.deepest) levels: the rest is not shown")
    }
    return nil
  }
}

/// A structure inside of a byte string.
enum EmbeddedContent: Sendable {
  case der(DERShape)
  /// Signed data, whose frame may be BER.
  case receipt
  case authenticatorData(ofAttestation: Bool)
}

extension Inspector {
  /// The parts of the structure that `range` of `bytes` contains.
  mutating func parts(
    of content: EmbeddedContent, in bytes: [UInt8], _ range: Range<Int>, depth: Int
  ) -> [InspectedNode] {
    switch content {
    case .der(let shape): elements(in: bytes, range, rules: .der, as: [shape], depth: depth)
    case .receipt: elements(in: bytes, range, rules: .ber, as: [.receipt], depth: depth)
    case .authenticatorData(let ofAttestation):
      authenticatorData(in: bytes, range, ofAttestation: ofAttestation, depth: depth)
    }
  }
}
