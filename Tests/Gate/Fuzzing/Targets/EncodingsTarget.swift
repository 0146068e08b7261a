import AppAttest
import ByteCoding
import Foundation

extension FuzzTarget {
  static let encodings = FuzzTarget(
    name: "encodings", longest: 512, words: ["==", "2026-01-01T00:00:00Z", "+00:00", ".000"],
    seeds: { EncodingsInvariants.seeds.map { Array($0.utf8) } }, accepts: EncodingsInvariants.check)
}

/// Texts for bytes, instants and names: base64, base64url, hex, RFC 3339, app and key identifiers.
enum EncodingsInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    try require(Base64.decode(Base64.encode(input)) == input, "base64 decodes to the encoded bytes")
    try require(Base64URL.decode(Base64URL.encode(input)) == input, "base64url decodes to the encoded bytes")
    try require(Hex.decode(Hex.encode(input)) == input, "hex decodes to the encoded bytes")
    try require(Base64.encode(input) == Data(input).base64EncodedString(), "base64 is encoded like Foundation's")
    let text = String(decoding: input, as: UTF8.self)
    guard text.utf8.elementsEqual(input) else { return false }
    let isBytes = try checkBytes(text)
    let isReceived = try checkReceived(text)
    let isName = try checkNames(text)
    return isBytes || isReceived || isName
  }

  private static func checkBytes(_ text: String) throws(InvariantViolation) -> Bool {
    let (base64, url, hex) = (Base64.decode(text), Base64URL.decode(text), Hex.decode(text))
    if let base64 {
      try require(Base64.encode(base64) == text, "base64 has one form")
      try require(Data(base64Encoded: text).map(Array.init) == base64, "base64 is decoded like Foundation's")
    }
    if let url { try require(Base64URL.encode(url) == text, "base64url has one form") }
    if let hex { try require(Hex.encode(hex) == text.lowercased(), "hex has one form in each case") }
    try require(
      Hex.decode(lowercase: text) == hex.flatMap { Hex.encode($0) == text ? $0 : nil }, "hex has a lowercase form")
    return base64 != nil || url != nil || hex != nil
  }

  /// What peers send is read as the bytes of one standard text, and each form of a text is read as the same bytes.
  private static func checkReceived(_ text: String) throws(InvariantViolation) -> Bool {
    let received = Base64.decode(anyForm: text)
    for form in [Base64.decode(text), Base64URL.decode(text)] where form != nil {
      try require(received == form, "base64 and base64url are forms of base64")
    }
    try require(
      KeyID(received: text)?.bytes == received.flatMap { $0.count == KeyID.size ? $0 : nil },
      "a received key identifier is 32 bytes in any form of base64")
    guard let received else { return false }
    let digits = text.utf8.filter { ![0x0A, 0x0D, UInt8(ascii: "=")].contains($0) }
    let isStandard = digits.contains { "+/".utf8.contains($0) }
    let isURLSafe = digits.contains { "-_".utf8.contains($0) }
    try require(!(isStandard && isURLSafe), "two alphabets in one text have no meaning")
    let (standard, url) = (Base64.encode(received), Base64URL.encode(received))
    try require(
      String(decoding: digits, as: UTF8.self) == (isURLSafe ? url : String(standard.prefix { $0 != "=" })),
      "the digits are those of the bytes")
    let lines = standard.map { "\($0)\r\n" }.joined()
    for form in [standard, url, url + standard.drop { $0 != "=" }, lines] {
      try require(Base64.decode(anyForm: form) == received, "each form has the same bytes", form)
    }
    return true
  }

  private static func checkNames(_ text: String) throws(InvariantViolation) -> Bool {
    let (instant, appID, keyID) = (Timestamp(rfc3339: text), AppID(text), KeyID(base64: text))
    if let instant {
      try require(Timestamp(rfc3339: instant.description) == instant, "a written instant is read as the same instant")
    }
    if let appID { try require(appID.text == text, "an app identifier has one form") }
    if let keyID { try require(keyID.base64 == text, "a key identifier has one form") }
    return instant != nil || appID != nil || keyID != nil
  }

  static let seeds = [
    "", "AAAA", "AAA=", "AA==", "AB==", "AA", "+/+/", "-_-_", "+_+/", "A\r\nA\n==\n", "00ffFF", "0f0",
    "2026-02-28T23:59:60Z",
    "2026-02-28t23:59:59.5+01:30", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z",
    "AAABBBCCC1.com.example.app", "AAAA AAAA",
    "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
  ]
}
