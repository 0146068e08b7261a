internal import ByteCoding

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// What is known of a member of a JSON object, or of a header field.
struct TextMember: Sendable {
  /// How the value is read.
  enum Form: Sendable {
    case plain
    /// Seconds since 1970.
    case seconds
    /// Base64 of an attestation object.
    case attestation
    /// An array with base64 of certificates.
    case chain
    /// Base64 of an assertion, or of the proof of an Android device.
    case proof
    /// A JWT.
    case token
  }

  let meaning: String
  let form: Form

  init(_ meaning: String, _ form: Form = .plain) { (self.meaning, self.form) = (meaning, form) }
}

extension Inspector {
  /// The members of the JSON object in `range`; an error if it is none.
  ///
  /// - Parameter members: The known ones by name, those of an object in it by path: `cnf.jkt`.
  mutating func object(
    in bytes: [UInt8], _ range: Range<Int>, members: [String: TextMember], depth: Int
  ) -> [InspectedNode] {
    let text = Array(bytes[range])
    guard text.first(where: { !JSONScanner.isSpace($0) }) == UInt8(ascii: "{"),
      JSONGrammar.accepts(text, within: .init(members: 1000, values: Self.mostNodes))
    else {
      return [
        .broken(
          at: range.lowerBound,
          "not one JSON object in UTF-8 with each name once, at most 64 levels and \(Self.mostNodes) values")
      ]
    }
    var scanner = JSONScanner(bytes: bytes, range: range)
    scanner.skipSpace()
    return parts(&scanner, path: "", members: members, depth: depth)
  }

  /// The parts of the object or array at the scanner, whose text is valid JSON.
  private mutating func parts(
    _ scanner: inout JSONScanner, path: String, members: [String: TextMember], depth: Int
  ) -> [InspectedNode] {
    var nodes: [InspectedNode] = []
    let isObject = scanner.take() == UInt8(ascii: "{")
    scanner.skipSpace()
    while let byte = scanner.next, byte != UInt8(ascii: "}"), byte != UInt8(ascii: "]"), !isFull {
      var name = "[\(nodes.count)]"
      if isObject {
        name = scanner.string()
        scanner.skipSpace()
        scanner.take()
      }
      scanner.skipSpace()
      if let limit = limit(at: scanner.offset, depth: depth) { return nodes + [limit] }
      nodes.append(
        value(&scanner, named: name, path: isObject ? path + name : path, members: members, depth: depth))
      scanner.skipSpace()
      if scanner.next == UInt8(ascii: ",") { scanner.take() }
      scanner.skipSpace()
    }
    scanner.take()
    return isObject ? Self.withoutPrivateParts(nodes) : nodes
  }

  /// The members that only a private or secret key has (RFC 7518 section 6).
  private static let privateParts: Set = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

  /// Hides the private parts of a JSON Web Key.
  private static func withoutPrivateParts(_ members: [InspectedNode]) -> [InspectedNode] {
    guard members.contains(where: { $0.name == "kty" }) else { return members }
    return members.map { member in
      guard privateParts.contains(member.name) else { return member }
      var member = member
      (member.value, member.children, member.fault) = (InspectedNode.secret, [], nil)
      member.meaning = "a private key has no place here"
      return member
    }
  }

  private mutating func value(
    _ scanner: inout JSONScanner, named name: String, path: String, members: [String: TextMember], depth: Int
  ) -> InspectedNode {
    let member = members[path]
    var node = InspectedNode(
      offset: scanner.offset, length: 0, name: TerminalText.printable(name), meaning: member?.meaning)
    switch scanner.next {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      node.type = scanner.next == UInt8(ascii: "{") ? "object" : "array"
      node.children = parts(&scanner, path: path + ".", members: members, depth: depth + 1)
      if case .chain = member?.form { node.children = node.children.map { certificate($0, scanner, depth: depth + 1) } }
    case UInt8(ascii: "\""):
      node.type = "string"
      read(scanner.string(), into: &node, as: member?.form ?? .plain, depth: depth + 1)
    default:
      let word = scanner.word()
      node.type = Int64(word) != nil || Double(word) != nil ? "number" : "literal"
      node.value = ValueText.word(word)
      if case .seconds = member?.form, let seconds = Int64(word) { node.value = ValueText.seconds(seconds) }
    }
    node.length = scanner.offset - node.offset
    return node
  }

  /// A certificate in an array of base64.
  private mutating func certificate(
    _ node: InspectedNode, _ scanner: JSONScanner, depth: Int
  ) -> InspectedNode {
    var (node, place) = (node, scanner)
    guard node.type == "string" else { return node }
    place.offset = node.offset
    decoded(place.string(), into: &node) { inspector, bytes in
      inspector.parts(of: .der(.certificate), in: bytes, bytes.indices, depth: depth + 1)
    }
    return node
  }

  /// Puts a text into `node`, and what it contains below it.
  mutating func read(_ text: String, into node: inout InspectedNode, as form: TextMember.Form, depth: Int) {
    switch form {
    case .plain, .seconds, .chain: node.value = ValueText.quoted(text)
    case .attestation:
      decoded(text, into: &node) { inspector, bytes in
        inspector.items(in: bytes, bytes.indices, as: .attestation, depth: depth)
      }
    case .proof:
      decoded(text, into: &node) { inspector, bytes in
        bytes.first == 0x30
          ? inspector.parts(of: .der(.signature), in: bytes, bytes.indices, depth: depth)
          : inspector.items(in: bytes, bytes.indices, as: .assertion, depth: depth)
      }
    case .token: node.children = token(in: Array(text.utf8), depth: depth)
    }
    if !node.children.isEmpty {
      node.meaning = (node.meaning.map { $0 + "; " } ?? "") + "offsets below count from its first byte"
    }
  }

  /// Decodes base64 and puts its parts below `node`.
  private mutating func decoded(
    _ text: String, into node: inout InspectedNode, _ parts: (inout Inspector, [UInt8]) -> [InspectedNode]
  ) {
    guard let bytes = Base64.decode(anyForm: text) else {
      node.value = ValueText.quoted(text)
      node.fault = "not base64"
      return
    }
    node.type += ", base64 of \(bytes.count) bytes"
    node.children = parts(&self, bytes)
  }
}

/// Reads JSON that `JSONGrammar` has accepted.
struct JSONScanner {
  let bytes: [UInt8]
  var offset: Int
  private let end: Int

  init(bytes: [UInt8], range: Range<Int>) {
    self.bytes = bytes
    (offset, end) = (range.lowerBound, range.upperBound)
  }

  static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

  var next: UInt8? { offset < end ? bytes[offset] : nil }

  mutating func skipSpace() {
    while let byte = next, Self.isSpace(byte) { offset += 1 }
  }

  @discardableResult
  mutating func take() -> UInt8? {
    guard let byte = next else { return nil }
    offset += 1
    return byte
  }

  /// The string here, with its escapes decoded.
  mutating func string() -> String {
    let start = offset
    take()
    var hasEscapes = false
    while let byte = take(), byte != UInt8(ascii: "\"") {
      guard byte == UInt8(ascii: "\\") else { continue }
      hasEscapes = true
      take()
    }
    let content = bytes[start..<offset].dropFirst().dropLast()
    guard hasEscapes else { return String(decoding: content, as: UTF8.self) }
    return (try? JSONDecoder().decode(String.self, from: Data(bytes[start..<offset]))) ?? ValueText.hex(content)
  }

  /// A number or a literal.
  mutating func word() -> String {
    let start = offset
    while let byte = next, !Self.isSpace(byte), ![0x2C, 0x5D, 0x7D].contains(byte) { offset += 1 }
    return String(decoding: bytes[start..<offset], as: UTF8.self)
  }
}
