internal import Foundation

/// The parameters of a link, of which those that are known are taken out one after another.
struct OTPAuthQuery {
  /// A parameter as it is written, and decoded.
  struct Value {
    let name: String
    let raw: [UInt8]
    let value: String

    func isNamed(_ word: String) -> Bool { OTPAuthText.isWord(name, word) }
  }

  private var values: [Value] = []

  init(_ query: Substring) {
    // By scalars: a mark that combines with a delimiter would make another character of it.
    for pair in query.unicodeScalars.split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(Substring.init)
      let name = OTPAuthText.decoded(parts[0].utf8)
      let raw = Array((parts.count > 1 ? parts[1] : "").utf8)
      var value = OTPAuthText.decoded(raw)
      // ente writes JSON into a form.
      if value.utf8.first == UInt8(ascii: "{"), OTPAuthText.isForm(raw) {
        value = OTPAuthText.decoded(raw.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
      }
      values.append(Value(name: name, raw: raw, value: value))
    }
  }

  /// What was not taken, in its order.
  var others: [OTPAuthURI.Parameter] { values.map { OTPAuthURI.Parameter(name: $0.name, value: $0.value) } }

  /// Takes the parameter `name`; `nil` if there is none.
  ///
  /// - Throws: `.repeatedParameter` if it has several values, which are compared as bytes.
  mutating func take(_ name: String) throws(OTPAuthError) -> Value? {
    let found = values.filter { $0.isNamed(name) }
    guard let first = found.first else { return nil }
    guard found.allSatisfy({ $0.value.utf8.elementsEqual(first.value.utf8) }) else { throw .repeatedParameter(name) }
    values.removeAll { $0.isNamed(name) }
    return first
  }

  /// Takes the parameter `name`; `nil` also if it is empty or `null`.
  mutating func takeGiven(_ name: String) throws(OTPAuthError) -> String? {
    try take(name).flatMap { $0.value.isEmpty || OTPAuthText.isWord($0.value, "null") ? nil : $0.value }
  }
}

/// The label of a link: issuer and account, or the account alone.
struct OTPAuthLabel {
  private let bytes: [UInt8]
  /// Where an issuer may end: at each `:`, without one at each `%3A`.
  private let ends: [Range<Int>]
  /// The ends at which the issuer of the parameter is looked for.
  private static let mostEnds = 16

  init(_ label: Substring) {
    let bytes = Array(label.utf8)
    self.bytes = bytes
    let colons = bytes.indices.filter { bytes[$0] == UInt8(ascii: ":") }.map { $0..<$0 + 1 }
    let escapes = bytes.indices.dropLast(2).filter { index in
      bytes[index] == UInt8(ascii: "%") && bytes[index + 1] == UInt8(ascii: "3")
        && bytes[index + 2] | 0x20 == UInt8(ascii: "a")
    }
    ends = colons.isEmpty ? escapes.map { $0..<$0 + 3 } : colons
  }

  /// The name that the parameter `issuer` has, of which a `+` may be a space.
  func issuer(of raw: [UInt8]) -> String {
    let literal = OTPAuthText.decoded(raw)
    guard OTPAuthText.isForm(raw) else { return literal }
    // A label that is no form has the name with the sign.
    let isSign = !OTPAuthText.isForm(bytes) || bytes.contains(UInt8(ascii: "@"))
    if isSign, OTPAuthText.equal(first.issuer, literal) { return literal }
    return OTPAuthText.formDecoded(raw)
  }

  /// Issuer and account.
  ///
  /// - Parameter issuer: The issuer of the parameter; `nil` without one.
  func names(issuer: String?) -> (issuer: String, account: String) {
    guard let issuer else { return first }
    for end in ends.prefix(Self.mostEnds) {
      let name = bytes[..<end.lowerBound]
      let account = bytes[end.upperBound...]
      if OTPAuthText.equal(OTPAuthText.decoded(name), issuer) { return (issuer, OTPAuthText.trimmed(account)) }
      if OTPAuthText.isForm(name), OTPAuthText.equal(OTPAuthText.formDecoded(name), issuer) {
        // A `+` in an address is none of a form.
        let isAddress = OTPAuthText.decoded(account).utf8.contains(UInt8(ascii: "@"))
        return (issuer, isAddress ? OTPAuthText.trimmed(account) : OTPAuthText.formDecoded(account))
      }
    }
    let isIssuer = OTPAuthText.isForm(bytes) && OTPAuthText.equal(OTPAuthText.formDecoded(bytes), issuer)
    return (issuer, isIssuer ? issuer : first.account)
  }

  /// Both parts by the label alone.
  private var first: (issuer: String, account: String) {
    let slashes = Array("//".utf8)
    let end = ends.first { $0.count == 3 || !bytes[$0.upperBound...].starts(with: slashes) }
    guard let end else { return ("", OTPAuthText.trimmed(bytes[...])) }
    return (OTPAuthText.trimmed(bytes[..<end.lowerBound]), OTPAuthText.trimmed(bytes[end.upperBound...]))
  }
}

/// Text of links. Texts are compared as bytes.
enum OTPAuthText {
  /// `bytes` without escapes. A `%` that is no escape stays, and so do all of them where they are not UTF-8.
  static func decoded(_ bytes: some Collection<UInt8>) -> String {
    let bytes = Array(bytes)
    let sign = UInt8(ascii: "%")
    guard bytes.contains(sign) else { return String(decoding: bytes, as: UTF8.self) }
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      if bytes[index] == sign, index + 2 < bytes.count, let high = digit(bytes[index + 1]),
        let low = digit(bytes[index + 2])
      {
        result.append(high << 4 | low)
        index += 3
      } else {
        result.append(bytes[index])
        index += 1
      }
    }
    // Not Foundation's decoder, which drops a byte order mark.
    let text = String(decoding: result, as: UTF8.self)
    return text.utf8.elementsEqual(result) ? text : String(decoding: bytes, as: UTF8.self)
  }

  static func trimmed(_ bytes: ArraySlice<UInt8>) -> String { decoded(bytes).trimmingCharacters(in: .whitespaces) }

  /// Whether a text has `+` and no other form of a space.
  static func isForm(_ bytes: some Collection<UInt8>) -> Bool {
    bytes.contains(UInt8(ascii: "+")) && !bytes.contains(UInt8(ascii: " ")) && !Array(bytes).contains(escape: "20")
  }

  /// `bytes` without escapes, where a `+` between two other characters is a space. One at an end, or next to another
  /// one, is part of the name: `Disney+`, `C++`.
  static func formDecoded(_ bytes: some Collection<UInt8>) -> String {
    let bytes = Array(bytes)
    let plus = UInt8(ascii: "+")
    let spaced = bytes.indices.map { index in
      let isInside = index > 0 && index + 1 < bytes.count && bytes[index - 1] != plus && bytes[index + 1] != plus
      return bytes[index] == plus && isInside ? UInt8(ascii: " ") : bytes[index]
    }
    return trimmed(spaced[...])
  }

  static func equal(_ first: String, _ second: String) -> Bool {
    first.trimmingCharacters(in: .whitespaces).utf8.elementsEqual(second.trimmingCharacters(in: .whitespaces).utf8)
  }

  /// Whether `text` is `word` in either case.
  ///
  /// Bytes are compared: Swift's comparison puts combining marks in order, which takes time with the square of their
  /// number, and a link may have thousands.
  ///
  /// - Parameter word: small letters of ASCII.
  static func isWord(_ text: String, _ word: String) -> Bool { isWord(text.utf8, word) }

  /// Whether `bytes` are `word` in either case.
  static func isWord(_ bytes: some Sequence<UInt8>, _ word: String) -> Bool {
    bytes.elementsEqual(word.utf8) { byte, letter in
      byte == letter || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) && byte | 0x20 == letter
    }
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

extension [UInt8] {
  /// Whether the escape of these two digits occurs.
  fileprivate func contains(escape digits: String) -> Bool {
    let wanted = Array("%\(digits)".utf8)
    return indices.contains { self[$0] == wanted[0] && self[$0...].starts(with: wanted) }
  }
}
