internal import ByteCoding

/// The document with which an ACME server refuses a request (RFC 7807, RFC 8555 section 6.7).
public struct Problem: Sendable, Hashable, Codable {
  /// A problem of one name of an order (RFC 8555 section 6.7.1).
  public struct Subproblem: Sendable, Hashable, Codable {
    public var type: String?
    public var detail: String?
    public var identifier: Identifier?
  }

  public var type: String?
  public var detail: String?
  public var subproblems: [Subproblem]?

  public init(type: String? = nil, detail: String? = nil, subproblems: [Subproblem]? = nil) {
    (self.type, self.detail, self.subproblems) = (type, detail, subproblems)
  }

  /// The last word of the type, such as `rateLimited`; `unknown` if it is none of ACME's own. Labels of metrics have
  /// no text from outside.
  public var code: String { Self.code(of: type) }

  private static let prefix = "urn:ietf:params:acme:error:"
  static let unknown = "unknown"

  /// RFC 8555 section 6.7, and `alreadyReplaced` of RFC 9773 section 7.4.
  static let codes: Set = [
    "accountDoesNotExist", "alreadyReplaced", "alreadyRevoked", "badCSR", "badNonce", "badPublicKey",
    "badRevocationReason", "badSignatureAlgorithm", "caa", "compound", "connection", "dns", "externalAccountRequired",
    "incorrectResponse", "invalidContact", "malformed", "orderNotReady", "rateLimited", "rejectedIdentifier",
    "serverInternal", "tls", "unauthorized", "unsupportedContact", "unsupportedIdentifier", "userActionRequired",
  ]

  private static func code(of type: String?) -> String {
    guard let type, type.hasPrefix(prefix) else { return unknown }
    let word = String(type.dropFirst(prefix.count))
    return codes.contains(word) ? word : unknown
  }
}

extension Problem: CustomStringConvertible {
  /// The code and the server's words, with those about single names, on one line of at most 500 characters, without
  /// control characters.
  public var description: String {
    let parts =
      ["\(code)\(detail.map { ": \($0)" } ?? "")"]
      + (subproblems ?? []).map { part in
        "\(part.identifier?.value ?? "?"): \(Self.code(of: part.type))\(part.detail.map { ": \($0)" } ?? "")"
      }
    let text = parts.joined(separator: "; ").split(whereSeparator: \.isNewline).joined(separator: " ")
    return TerminalText.printable(text.count > 500 ? text.prefix(500) + "…" : text)
  }
}

/// The name that a certificate is for (RFC 8555 section 9.7.7).
public struct Identifier: Sendable, Hashable, Codable {
  public var type: String
  public var value: String

  /// Creates the identifier of a DNS name.
  public init(dns name: String) { (type, value) = ("dns", name) }
}
