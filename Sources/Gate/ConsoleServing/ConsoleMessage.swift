internal import ByteCoding

/// A request to a console, as any HTTP server of this project can make one.
public struct ConsoleRequest: Sendable {
  public let method: String
  /// The path in its normal form.
  public let path: String
  /// The part after the question mark; `nil` if there is none.
  public let query: String?
  public let fields: [(name: String, value: String)]
  /// At most a few KiB, which the server limits.
  public let body: [UInt8]
  /// The client certificate of the connection; `nil` without one.
  public let certificate: ConsoleCertificate?
  /// The address of the client, for the log; `nil` on the loopback.
  public let address: String?

  public init(
    method: String, path: String, query: String?, fields: [(name: String, value: String)], body: [UInt8],
    certificate: ConsoleCertificate? = nil, address: String? = nil
  ) {
    (self.method, self.path, self.query, self.fields, self.body) = (method, path, query, fields, body)
    (self.certificate, self.address) = (certificate, address)
  }

  /// Returns the value of the header field `name` if it occurs once; `nil` if it is absent or repeated.
  func field(_ name: String) -> String? {
    let values = values(of: name)
    return values.count == 1 ? values[0] : nil
  }

  /// Returns the values of the header field `name`.
  func values(of name: String) -> [String] {
    fields.filter { $0.name.lowercased().hasSameBytes(as: name.lowercased()) }.map(\.value)
  }

  /// Returns the values of the cookies called `name`.
  ///
  /// Reads bytes, because strangers send this field: to compare characters takes time with the square of the number of
  /// combining marks in a row.
  func cookies(_ name: String) -> [String] {
    let prefix = name + "="
    return values(of: "Cookie").flatMap { $0.utf8.split(separator: UInt8(ascii: ";")) }.compactMap { part -> String? in
      let pair = part.drop { $0 == UInt8(ascii: " ") }
      return pair.starts(with: prefix.utf8) ? String(Substring(pair.dropFirst(prefix.utf8.count))) : nil
    }
  }
}

/// The answer of a console.
public struct ConsoleResponse: Sendable {
  public var status: Int
  public var fields: [(name: String, value: String)]
  public var body: [UInt8]

  /// Creates an answer with the fields that every answer of a console has.
  init(_ status: Int, _ type: String, _ body: String, _ further: [(name: String, value: String)] = []) {
    self.status = status
    self.body = Array(body.utf8)
    fields = [("Content-Type", type)] + Self.protection + further
  }

  /// Only the console's own style sheet, script and requests; no frames around it, no markup made by scripts other than
  /// its own fragments, and nothing in a cache.
  ///
  /// `Referrer-Policy` is not `no-referrer`: browsers would send `Origin: null` with forms then.
  private static let protection: [(name: String, value: String)] = [
    ("Cache-Control", "no-store"),
    (
      "Content-Security-Policy",
      "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
        + "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types console"
    ),
    ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"),
  ]

  static func text(
    _ status: Int, _ text: String, _ further: [(name: String, value: String)] = []
  ) -> ConsoleResponse {
    ConsoleResponse(status, "text/plain; charset=utf-8", text + "\n", further)
  }
}
