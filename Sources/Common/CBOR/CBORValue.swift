/// A data item of CBOR (RFC 8949).
public indirect enum CBORValue: Sendable, Hashable {
  /// A number from 0 to 2^64 - 1 (major type 0).
  case unsigned(UInt64)
  /// The number -1 - `n`.
  case negative(UInt64)
  /// A byte string (major type 2).
  case bytes([UInt8])
  /// A text string in UTF-8 (major type 3).
  case text(String)
  /// An array (major type 4).
  case array([CBORValue])
  /// A map (major type 5).
  case map(CBORMap)
  /// A tagged value (major type 6).
  case tagged(UInt64, CBORValue)
  /// A floating-point number of 16, 32 or 64 bits.
  case float(Double)
  /// `true` or `false`.
  case boolean(Bool)
  /// The simple value `null`.
  case null
  /// The simple value `undefined`.
  case undefined
}

/// A map with its pairs in the order of the encoding.
public struct CBORMap: Sendable, Hashable {
  /// A key and its value.
  public struct Pair: Sendable, Hashable {
    /// The key.
    public let key: CBORValue
    /// The value.
    public let value: CBORValue

    /// Creates a pair.
    public init(_ key: CBORValue, _ value: CBORValue) {
      self.key = key
      self.value = value
    }
  }

  /// The pairs in the order of the encoding.
  public let pairs: [Pair]

  /// Creates a map. Keys that occur twice are not refused here; the encoder writes both.
  public init(_ pairs: [Pair]) { self.pairs = pairs }

  /// The number of pairs.
  public var count: Int { pairs.count }

  /// The value of the text `key`.
  public subscript(key: String) -> CBORValue? {
    var key = key
    return key.withUTF8 { key in
      pairs.first { pair in
        guard case .text(var text) = pair.key else { return false }
        // Strings compare by canonical equivalence (the Kelvin sign equals "K"); keys are bytes.
        return text.withUTF8 { text in
          text.count == key.count && text.indices.allSatisfy { text[$0] == key[$0] }
        }
      }?.value
    }
  }
}

extension CBORMap: ExpressibleByDictionaryLiteral {
  /// Creates a map from a literal.
  public init(dictionaryLiteral elements: (CBORValue, CBORValue)...) {
    pairs = elements.map { Pair($0, $1) }
  }
}

extension CBORValue: ExpressibleByStringLiteral {
  /// Creates a text string.
  public init(stringLiteral text: String) { self = .text(text) }
}

extension CBORValue: ExpressibleByIntegerLiteral {
  /// Creates a number; negative ones have major type 1.
  public init(integerLiteral number: Int64) {
    self = number < 0 ? .negative(UInt64(-1 - number)) : .unsigned(UInt64(number))
  }
}
