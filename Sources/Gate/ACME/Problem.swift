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
  /// The status of the answer that carried the document; `nil` if it was part of a resource.
  public var status: Int?

  // The status is that of the answer, not a member of the document.
  private enum CodingKeys: CodingKey { case type, detail, subproblems }

  public init(
    type: String? = nil, detail: String? = nil, subproblems: [Subproblem]? = nil, status: Int? = nil
  ) {
    (self.type, self.detail, self.subproblems, self.status) = (type, detail, subproblems, status)
  }

  /// Whether the server says that it does not have what the request names.
  var saysUnknown: Bool { status == 404 || code == "malformed" || code == "accountDoesNotExist" }

  /// The last word of the type, such as `rateLimited`; `unknown` if it is none of ACME's own. Labels of metrics have
  /// no text from outside.
  public var code: String { Self.code(of: type) }

  private static let prefix = "urn:ietf:params:acme:error:"
  static let unknown = "unknown"

  /// RFC 8555 section 6.7, `alreadyReplaced` of RFC 9773 section 7.4, and `invalidProfile` of
  /// draft-ietf-acme-profiles.
  static let codes: Set = [
    "accountDoesNotExist", "alreadyReplaced", "alreadyRevoked", "badCSR", "badNonce", "badPublicKey",
    "badRevocationReason", "badSignatureAlgorithm", "caa", "compound", "connection", "dns", "externalAccountRequired",
    "incorrectResponse", "invalidContact", "invalidProfile", "malformed", "orderNotReady", "rateLimited",
    "rejectedIdentifier", "serverInternal", "tls", "unauthorized", "unsupportedContact", "unsupportedIdentifier",
    "userActionRequired",
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
    return ServerText.bounded(parts.joined(separator: "; "))
  }
}

/// Makes texts of the server safe to log, to show and to store.
enum ServerText {
  /// A plan or a log line has a few of these texts.
  static let longest = 500

  /// `text` on one line, without control characters, cut after `longest` Unicode scalars. Characters are no bound: one
  /// can have any number of scalars.
  static func bounded(_ text: String, to longest: Int = longest) -> String {
    let scalars = text.unicodeScalars
    let end = scalars.index(scalars.startIndex, offsetBy: longest, limitedBy: scalars.endIndex) ?? scalars.endIndex
    let line = String(scalars[..<end]).split(whereSeparator: \.isNewline).joined(separator: " ")
    return TerminalText.printable(end == scalars.endIndex ? line : line + "…")
  }
}
