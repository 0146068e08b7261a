/// A request with a well-formed head.
public struct Request: Sendable {
  /// The id of this request in logs and in `X-Request-Id`: 32 hex digits, unique, made by the engine.
  public let id: String
  /// The method as sent; upper and lower case are kept (RFC 9110 section 9.1).
  public let method: String
  /// The request target as sent, in origin form: path and query.
  public let target: String
  /// The path in its normal form, for matching with routes: percent-encoded unreserved characters are decoded, other
  /// escapes are in capitals, and there are no dot segments and no empty segments.
  public let path: String
  /// The header fields in the order in which they were sent.
  public let headers: HeaderFields
  /// The body, at most as long as the engine's limit. Empty if the responder streams it.
  public let body: [UInt8]
  /// The parsed opening handshake, if the request is a well-formed one (RFC 6455 section 4.1); otherwise `nil`.
  public let upgrade: UpgradeIntent?

  public init(
    id: String, method: String, target: String, path: String, headers: HeaderFields, body: [UInt8] = [],
    upgrade: UpgradeIntent? = nil
  ) {
    self.id = id
    self.method = method
    self.target = target
    self.path = path
    self.headers = headers
    self.body = body
    self.upgrade = upgrade
  }
}

/// The contents of a WebSocket opening handshake.
public struct UpgradeIntent: Sendable, Hashable {
  /// The value of `Sec-WebSocket-Key`: the base64 of 16 bytes.
  public let key: String
  /// The offered subprotocols, in the client's order.
  public let subprotocols: [String]

  public init(key: String, subprotocols: [String] = []) {
    self.key = key
    self.subprotocols = subprotocols
  }
}

/// Header fields in the order of arrival. Names are compared without regard to case.
public struct HeaderFields: Sendable, Hashable {
  /// A name and its value.
  public struct Field: Sendable, Hashable {
    public let name: String
    /// The value as text. In a value that is not UTF-8, U+FFFD replaces each invalid part, so it equals no value that
    /// the gate knows.
    public let value: String
    /// The original bytes of a value that is not UTF-8 (`obs-text`, RFC 9110 section 5.5), to be forwarded instead of
    /// `value`. Only fields of an upstream have them; otherwise `nil`.
    public let octets: [UInt8]?

    public init(name: String, value: String) {
      self.name = name
      self.value = value
      octets = nil
    }

    /// Creates a field whose value is not UTF-8.
    public init(name: String, octets: [UInt8]) {
      self.name = name
      value = String(decoding: octets, as: UTF8.self)
      self.octets = octets
    }
  }

  public private(set) var fields: [Field]

  public init(_ fields: [Field] = []) { self.fields = fields }

  public mutating func append(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

  /// Returns the values of all fields called `name`, in order.
  public func values(of name: String) -> [String] {
    var values: [String] = []
    var next = index(of: name, from: 0)
    while let index = next {
      values.append(fields[index].value)
      next = self.index(of: name, from: index + 1)
    }
    return values
  }

  /// Returns the value of the first field called `name`; `nil` if there is none.
  public func first(_ name: String) -> String? {
    index(of: name, from: 0).map { fields[$0].value }
  }

  /// Returns the value of the only field called `name`. A field that occurs twice is `.repeated`, so that no caller
  /// chooses between the values.
  public func only(_ name: String) -> Occurrence {
    guard let index = index(of: name, from: 0) else { return .absent }
    return self.index(of: name, from: index + 1) == nil ? .once(fields[index].value) : .repeated
  }

  /// Returns the index of the next field called `name`.
  ///
  /// Each request is searched for about a dozen names, so the search runs in place: copying the fields would retain
  /// each one.
  private func index(of name: String, from start: Int) -> Int? {
    let length = name.utf8.count
    return fields.withUnsafeBufferPointer { fields in
      fields.indices[start...].first { fields[$0].name.utf8.count == length && Self.isSame(fields[$0].name, name) }
    }
  }

  /// How often a field occurs, with its value if it occurs once.
  public enum Occurrence: Sendable, Hashable {
    case absent
    case once(String)
    case repeated
  }

  /// Returns `true` if two field names are equal: ASCII, without regard to case (RFC 9110 section 5.1).
  public static func isSame(_ first: String, _ second: String) -> Bool {
    guard first.utf8.count == second.utf8.count else { return false }
    let isSame = first.utf8.withContiguousStorageIfAvailable { first in
      second.utf8.withContiguousStorageIfAvailable { second in
        first.indices.allSatisfy { lowercase(first[$0]) == lowercase(second[$0]) }
      }
    }
    // Only a string bridged from another language has no contiguous storage.
    return isSame.flatMap(\.self) ?? zip(first.utf8, second.utf8).allSatisfy { lowercase($0) == lowercase($1) }
  }

  private static func lowercase(_ character: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(character) ? character | 0x20 : character
  }
}
