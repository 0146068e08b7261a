/// A data item of CBOR (RFC 8949).
public indirect enum CBORValue: Sendable, Hashable {
  case unsigned(UInt64)
  /// The number -1 - `n`.
  case negative(UInt64)
  case bytes([UInt8])
  case text(String)
  case array([CBORValue])
  case map(CBORMap)
  case tagged(UInt64, CBORValue)
  case float(Double)
  case boolean(Bool)
  case null
  case undefined
}

/// A map: its pairs in the order in which they came.
public struct CBORMap: Sendable, Hashable {
  public struct Pair: Sendable, Hashable {
    public let key: CBORValue
    public let value: CBORValue

    public init(_ key: CBORValue, _ value: CBORValue) {
      self.key = key
      self.value = value
    }
  }

  public let pairs: [Pair]

  public init(_ pairs: [Pair]) { self.pairs = pairs }

  public var count: Int { pairs.count }

  /// The value of the text `key`.
  public subscript(key: String) -> CBORValue? {
    pairs.first { pair in
      guard case .text(let text) = pair.key else { return false }
      // Strings compare by canonical equivalence (the Kelvin sign equals "K"); keys are bytes.
      return text.utf8.elementsEqual(key.utf8)
    }?.value
  }
}

extension CBORMap: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (CBORValue, CBORValue)...) {
    pairs = elements.map { Pair($0, $1) }
  }
}

extension CBORValue: ExpressibleByStringLiteral {
  public init(stringLiteral text: String) { self = .text(text) }
}

extension CBORValue: ExpressibleByIntegerLiteral {
  public init(integerLiteral number: Int64) {
    self = number < 0 ? .negative(UInt64(-1 - number)) : .unsigned(UInt64(number))
  }
}
