internal import ByteCoding
internal import Crypto
internal import Foundation

/// A token in the compact serialization, signed with ES256 (RFC 7515, section 7.1; RFC 7518, section 3.4), taken apart
/// and not verified yet.
struct ES256Token {
  /// The longest token that is read.
  static let longest = 4096
  /// The longest header, decoded: several times that of a gate.
  static let longestHeader = 512

  /// The encoded header, which is the same in all tokens of a key.
  let header: Substring
  private let payload: [UInt8]
  private let signature: [UInt8]
  private let signed: Substring

  /// Takes `text` apart; `nil` unless it has three parts in base64url, each the canonical encoding of its bytes. So one
  /// token has one valid text: the signature does not cover the encoding.
  init?(_ text: String) {
    guard text.utf8.count <= Self.longest else { return nil }
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let payload = Base64URL.decode(Substring(parts[1])), !payload.isEmpty,
      let signature = Base64URL.decode(Substring(parts[2])), !signature.isEmpty, !parts[0].isEmpty
    else { return nil }
    header = Substring(parts[0])
    self.payload = payload
    self.signature = signature
    signed = text[..<parts[1].endIndex]
  }

  /// The name of the key that the header names; `nil` unless it is the canonical encoding of a header for ES256 and
  /// `type`, which is lowercase. A token of one kind is never accepted as another (RFC 8725, section 3.11), even if one
  /// key signs both, as that of the gate does.
  func keyID(ofType type: String) -> String? {
    // It is not verified yet: a longer one may have any number of names.
    guard let bytes = Base64URL.decode(header), bytes.count <= Self.longestHeader, var reader = ClaimReader(bytes)
    else { return nil }
    var (algorithm, keyID, found): (String?, String?, String?)
    do {
      while let name = try reader.next() {
        switch name {
        case "alg": algorithm = try reader.text()
        case "kid": keyID = try reader.text()
        case "typ": found = try reader.text()
        // RFC 7515, section 4.1.11: a reader that does not know the named extensions refuses the token.
        case "crit": return nil
        default: try reader.skip()
        }
      }
    } catch {
      return nil
    }
    return algorithm == "ES256" && found?.lowercased() == type ? keyID : nil
  }

  /// The claims if `key` signed them; otherwise `nil`.
  func claims(signedBy key: P256.Signing.PublicKey) -> [UInt8]? {
    var signed = signed
    guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: Data(signature)) else { return nil }
    let isValid = signed.withUTF8 { key.isValidSignature(signature, for: SHA256.hash(bufferPointer: $0)) }
    return isValid ? payload : nil
  }
}

extension SHA256 {
  fileprivate static func hash(bufferPointer: UnsafeBufferPointer<UInt8>) -> SHA256Digest {
    var function = SHA256()
    function.update(bufferPointer: UnsafeRawBufferPointer(bufferPointer))
    return function.finalize()
  }
}

/// Reads the members of one JSON object, in their order, without decoding what is not asked for.
///
/// It reads what `JSONText` writes, and refuses an object that has a name twice. Its input are verified claims, whose
/// issuers are trusted, and short headers, which are not verified.
struct ClaimReader {
  struct Malformed: Error {}

  private let bytes: [UInt8]
  private var index = 0
  private var names: [String] = []

  /// Returns `nil` unless `bytes` begin an object.
  init?(_ bytes: [UInt8]) {
    self.bytes = bytes
    skipSpace()
    guard take(UInt8(ascii: "{")) else { return nil }
  }

  /// The name of the next member, whose value must be read or skipped before the next call; `nil` at the end.
  mutating func next() throws(Malformed) -> String? {
    skipSpace()
    if take(UInt8(ascii: "}")) {
      skipSpace()
      guard index == bytes.count else { throw Malformed() }
      return nil
    }
    if !names.isEmpty {
      guard take(UInt8(ascii: ",")) else { throw Malformed() }
      skipSpace()
    }
    let name = try text()
    guard !names.contains(name) else { throw Malformed() }
    names.append(name)
    skipSpace()
    guard take(UInt8(ascii: ":")) else { throw Malformed() }
    skipSpace()
    return name
  }

  /// The text that is the current value.
  mutating func text() throws(Malformed) -> String {
    guard take(UInt8(ascii: "\"")) else { throw Malformed() }
    let start = index
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\""):
        let part = bytes[start..<index]
        index += 1
        let text = String(decoding: part, as: UTF8.self)
        // Decoding replaces malformed UTF-8 and so changes the text.
        guard text.utf8.count == part.count, text.utf8.elementsEqual(part) else { throw Malformed() }
        return text
      case UInt8(ascii: "\\"):
        var rest = bytes[(start - 1)...]
        guard let text = JSONText.takeString(from: &rest) else { throw Malformed() }
        index = rest.startIndex
        return text
      case 0..<0x20: throw Malformed()
      default: index += 1
      }
    }
    throw Malformed()
  }

  /// The number that is the current value.
  mutating func number() throws(Malformed) -> Double {
    let start = index
    while index < bytes.count, bytes[index].isPartOfNumber { index += 1 }
    let part = bytes[start..<index]
    if part.count < 16, part.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), !part.isEmpty {
      return Double(part.reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) })
    }
    guard let number = Double(String(decoding: part, as: UTF8.self)), number.isFinite else { throw Malformed() }
    return number
  }

  /// The text that is the current value, or the only element of an array.
  mutating func onlyText() throws(Malformed) -> String {
    guard take(UInt8(ascii: "[")) else { return try text() }
    skipSpace()
    let value = try text()
    skipSpace()
    guard take(UInt8(ascii: "]")) else { throw Malformed() }
    return value
  }

  /// Reads the current value, an object, by a reader of its own.
  mutating func object() throws(Malformed) -> ClaimReader {
    let start = index
    try skip()
    guard let reader = ClaimReader(Array(bytes[start..<index])) else { throw Malformed() }
    return reader
  }

  /// Skips the current value.
  mutating func skip() throws(Malformed) {
    var depth = 0
    repeat {
      skipSpace()
      guard index < bytes.count else { throw Malformed() }
      switch bytes[index] {
      case UInt8(ascii: "\""): _ = try text()
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        index += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        index += 1
        guard depth >= 0 else { throw Malformed() }
      case UInt8(ascii: ","), UInt8(ascii: ":"):
        guard depth > 0 else { throw Malformed() }
        index += 1
      default:
        let start = index
        while index < bytes.count, bytes[index].isPartOfNumber || bytes[index].isLowercaseLetter { index += 1 }
        guard index > start else { throw Malformed() }
      }
    } while depth > 0
  }

  private mutating func skipSpace() {
    while index < bytes.count, bytes[index].isSpace { index += 1 }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard index < bytes.count, bytes[index] == byte else { return false }
    index += 1
    return true
  }
}

extension UInt8 {
  fileprivate var isPartOfNumber: Bool {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
      UInt8(ascii: "e"), UInt8(ascii: "E"):
      true
    default: false
    }
  }

  fileprivate var isSpace: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }

  fileprivate var isLowercaseLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }
}
