/// A request whose head obeyed the grammar and whose body is complete.
public struct Request: Sendable {
  /// The name that this request has in logs and in `X-Request-Id`: 32 hex digits, unique, made by the engine.
  public let id: String
  /// The method as sent, case kept (RFC 9110 section 9.1).
  public let method: String
  /// The request target as sent: origin form, path and query.
  public let target: String
  /// The path in its one normal form, to be matched with routes: percent-encoded unreserved characters decoded, other
  /// escapes in capitals, no dot segments, no empty segments.
  public let path: String
  /// What the client sent behind the method line, in order.
  public let headers: HeaderFields
  /// At most the engine's limit for bodies.
  public let body: [UInt8]
  /// Present if the request is a well-formed opening handshake (RFC 6455 section 4.1).
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

/// What a WebSocket opening handshake asks for.
public struct UpgradeIntent: Sendable, Hashable {
  /// `Sec-WebSocket-Key`: the base64 of 16 bytes.
  public let key: String
  /// The offered subprotocols, in the client's order.
  public let subprotocols: [String]

  public init(key: String, subprotocols: [String] = []) {
    self.key = key
    self.subprotocols = subprotocols
  }
}

/// Header fields in the order in which they came. Names compare without case.
public struct HeaderFields: Sendable, Hashable {
  public struct Field: Sendable, Hashable {
    public let name: String
    /// Of a value that is not UTF-8, what can be read of it, with U+FFFD for the rest: equal to nothing that means
    /// anything to the gate.
    public let value: String
    /// The value as it came, where it is not UTF-8 (`obs-text`, RFC 9110 section 5.5): to be handed on in the place of
    /// `value`. Only an upstream's fields have it.
    public let octets: [UInt8]?

    public init(name: String, value: String) {
      self.name = name
      self.value = value
      octets = nil
    }

    /// A field whose value is not UTF-8.
    public init(name: String, octets: [UInt8]) {
      self.name = name
      value = String(decoding: octets, as: UTF8.self)
      self.octets = octets
    }
  }

  public private(set) var fields: [Field]

  public init(_ fields: [Field] = []) { self.fields = fields }

  public mutating func append(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

  /// Every value of the fields called `name`, in order.
  public func values(of name: String) -> [String] {
    var values: [String] = []
    var next = index(of: name, from: 0)
    while let index = next {
      values.append(fields[index].value)
      next = self.index(of: name, from: index + 1)
    }
    return values
  }

  /// The value of the first field called `name`.
  public func first(_ name: String) -> String? {
    index(of: name, from: 0).map { fields[$0].value }
  }

  /// The value of the only field called `name`; a field that came twice is `.repeated`, never a choice among them.
  public func only(_ name: String) -> Occurrence {
    guard let index = index(of: name, from: 0) else { return .absent }
    return self.index(of: name, from: index + 1) == nil ? .once(fields[index].value) : .repeated
  }

  /// Where the next field called `name` is. Every request is asked for a dozen of names, so this looks at the fields
  /// in place: to copy them out would count references for each.
  private func index(of name: String, from start: Int) -> Int? {
    let length = name.utf8.count
    return fields.withUnsafeBufferPointer { fields in
      fields.indices[start...].first { fields[$0].name.utf8.count == length && Self.isSame(fields[$0].name, name) }
    }
  }

  public enum Occurrence: Sendable, Hashable {
    case absent
    case once(String)
    case repeated
  }

  /// Whether two field names are the same: ASCII, without regard to case (RFC 9110 section 5.1).
  public static func isSame(_ first: String, _ second: String) -> Bool {
    guard first.utf8.count == second.utf8.count else { return false }
    let isSame = first.utf8.withContiguousStorageIfAvailable { first in
      second.utf8.withContiguousStorageIfAvailable { second in
        first.indices.allSatisfy { lowercase(first[$0]) == lowercase(second[$0]) }
      }
    }
    // Only a text that another language holds is not contiguous.
    return isSame.flatMap(\.self) ?? zip(first.utf8, second.utf8).allSatisfy { lowercase($0) == lowercase($1) }
  }

  private static func lowercase(_ character: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(character) ? character | 0x20 : character
  }
}
