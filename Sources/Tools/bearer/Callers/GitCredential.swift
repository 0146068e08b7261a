internal import ByteCoding
internal import OIDCClient

/// A request of Git to a credential helper (gitcredentials(7), git-credential(1)): lines `name=value`, up to an empty
/// one.
struct GitCredential: Sendable, Hashable {
  /// The largest request, in bytes.
  static let largest = 1 << 16
  /// The most lines.
  private static let mostLines = 256

  let scheme: String
  /// With the port, unless that is the usual one.
  let host: String
  let username: String?
  let password: String?

  /// Reads a request.
  ///
  /// A name that occurs twice is refused, except the lists that end in `[]`: an address with a line break in it could
  /// otherwise name another host than the one that Git asks.
  ///
  /// - Returns: `nil` if it is malformed, or names no host.
  init?(_ bytes: [UInt8]) {
    guard bytes.count <= Self.largest, let text = String(validating: bytes, as: UTF8.self), !text.contains("\0") else {
      return nil
    }
    var fields: [String: String] = [:]
    var count = 0
    for line in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      if line.isEmpty { break }
      count += 1
      guard count <= Self.mostLines, let sign = line.firstIndex(of: UInt8(ascii: "=")) else { return nil }
      let name = line[..<sign]
      guard !name.isEmpty, name.count <= 64, name.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
      let key = String(decoding: name, as: UTF8.self)
      if key.hasSuffix("[]") { continue }
      let value = String(decoding: line[line.index(after: sign)...], as: UTF8.self)
      guard !value.utf8.contains(UInt8(ascii: "\r")), fields.updateValue(value, forKey: key) == nil else { return nil }
    }
    guard let scheme = fields["protocol"], let host = fields["host"], !host.isEmpty else { return nil }
    self.scheme = scheme
    // The letters of ASCII alone: those of Unicode have among them one whose small letter is k (U+212A).
    self.host = String(decoding: host.utf8.map(\.lowercasedASCII), as: UTF8.self)
    username = fields["username"]
    password = fields["password"]
  }

  /// Whether a token may go there: encrypted, or to this machine.
  var isConfidential: Bool {
    if scheme == "https" { return true }
    let name = host.hasPrefix("[") ? String(host.prefix { $0 != "]" }) + "]" : String(host.prefix { $0 != ":" })
    return scheme == "http" && LoopbackHost.contains(name)
  }

  /// The answer to `get`. A later Git than 2.40 asks again when the token has expired.
  static func answer(username: String, token: String, expiry: Int?) -> String {
    var lines = ["username=\(username)", "password=\(token)"]
    if let expiry { lines.append("password_expiry_utc=\(expiry)") }
    return lines.map { $0 + "\n" }.joined()
  }
}
