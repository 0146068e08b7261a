internal import ByteCoding
internal import Foundation
internal import Wire

/// The request that hands one SMS to a provider, with placeholders for its values.
public struct HTTPTextTemplate: Sendable, Hashable {
  /// How values become part of the body.
  public enum Escape: String, Sendable, Hashable, CaseIterable {
    /// The content of a JSON string (RFC 8259, section 7).
    case json
    /// A value of a form: percent-encoded (`application/x-www-form-urlencoded`).
    case form

    var mediaType: String { self == .json ? "application/json" : "application/x-www-form-urlencoded" }
  }

  /// The parts of a request as an operator writes them.
  public struct Source: Sendable, Hashable {
    /// `GET` or `POST`.
    public var method: String
    public var url: String
    /// Lines `Name: value`.
    public var headers: [String]
    public var body: String?
    /// How values become part of the body; required with a body.
    public var escape: Escape?
    /// Whether a file with a token is named.
    public var hasToken: Bool
    /// Whether there is a sender for `{{from}}`.
    public var hasSender: Bool

    /// Creates the parts.
    public init(
      method: String = "POST", url: String, headers: [String] = [], body: String? = nil, escape: Escape? = nil,
      hasToken: Bool = false, hasSender: Bool = false
    ) {
      self.method = method
      self.url = url
      self.headers = headers
      self.body = body
      self.escape = escape
      self.hasToken = hasToken
      self.hasSender = hasSender
    }
  }

  /// The part of a template that cannot be used, and why.
  public struct Fault: Error, Sendable, Hashable {
    /// The part, by the name of its setting.
    public enum Part: String, Sendable, Hashable { case method, url, headers, body, escape, token }

    /// The part that cannot be used.
    public let part: Part
    /// A sentence without a full stop.
    public let reason: String
  }

  /// A name that stands for a value of the message or of the configuration.
  enum Placeholder: String, CaseIterable {
    /// The number of the recipient, `+` and digits (E.164).
    case to
    /// The same number without `+`.
    case toDigits = "to_digits"
    case text
    case from
    /// The first line of the file with the token.
    case token
    /// The same line in base64, for basic authentication: `USER:PASSWORD`.
    case basic

    static let ofMessage: [Placeholder] = [.from, .text, .to, .toDigits]
    var isSecret: Bool { self == .token || self == .basic }
  }

  enum Piece: Sendable, Hashable {
    case text(String)
    case value(Placeholder)
  }

  private struct Field: Sendable, Hashable {
    let name: String
    let value: [Piece]
  }

  /// The header fields that follow from the request.
  private static let ownFields: Set<String> = [
    "host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect",
  ]

  private let method: HTTPRequest.Method
  private let url: [Piece]
  private let fields: [Field]
  private let body: [Piece]?
  private let escape: Escape

  /// Reads a template, and tries it with sample values.
  ///
  /// - Throws: the first fault.
  public init(_ source: Source) throws(Fault) {
    guard let method = HTTPRequest.Method(rawValue: source.method), method != .delete else {
      throw Fault(part: .method, reason: "must be GET or POST")
    }
    self.method = method
    if source.body != nil {
      guard method == .post else { throw Fault(part: .body, reason: "cannot be set for the method GET") }
      guard source.escape != nil else {
        throw Fault(part: .escape, reason: "missing: choose json or form, by which values become part of the body")
      }
    } else if source.escape != nil {
      throw Fault(part: .escape, reason: "has no effect without a body")
    }
    escape = source.escape ?? .form
    url = try Self.pieces(of: source.url, in: .url, Placeholder.ofMessage)
    body = try source.body.map { text throws(Fault) in
      try Self.pieces(of: text, in: .body, Placeholder.allCases)
    }
    fields = try Self.fields(source.headers, escape: body == nil ? nil : escape)
    try checkUse(source)
    try checkForm()
  }

  private func checkUse(_ source: Source) throws(Fault) {
    let used = Set(
      (url + fields.flatMap(\.value) + (body ?? [])).compactMap { piece in
        if case .value(let placeholder) = piece { placeholder } else { nil }
      })
    let part: Fault.Part = body == nil ? .url : .body
    guard used.contains(.to) || used.contains(.toDigits) else {
      throw Fault(part: part, reason: "has no {{to}} or {{to_digits}}: no provider could know the recipient")
    }
    guard used.contains(.text) else {
      throw Fault(part: part, reason: "has no {{text}}: the message would be without its text")
    }
    guard !used.contains(.from) || source.hasSender else {
      throw Fault(part: part, reason: "has {{from}}, but sms.from is not set")
    }
    let usesToken = used.contains(where: \.isSecret)
    guard !usesToken || source.hasToken else {
      throw Fault(part: .token, reason: "missing: {{token}} and {{basic}} stand for the first line of this file")
    }
    guard usesToken || !source.hasToken else {
      throw Fault(part: .token, reason: "has no effect: no header field and no body has {{token}} or {{basic}}")
    }
  }

  /// Tries the template with values that would break it if they were not escaped.
  private func checkForm() throws(Fault) {
    let sample = Values(to: "+15550100", from: "+15550199", text: "A \"text\"\n\\ & more", token: "user:pass")
    guard let place = URL(string: rendered(url, sample, .form)), place.host?.isEmpty == false else {
      throw Fault(part: .url, reason: "is no URL with its values: placeholders may stand in its path and query only")
    }
    let origin = url.first.flatMap { piece in if case .text(let text) = piece { text } else { nil } } ?? ""
    // Behind the scheme, a placeholder before the first slash would let a number choose the server.
    guard origin.dropFirst("https://".count).contains("/") else {
      throw Fault(part: .url, reason: "needs its host and a / before the first placeholder")
    }
    guard let body else { return }
    let text = rendered(body, sample, escape)
    switch escape {
    case .json:
      guard JSONGrammar.accepts(Array(text.utf8), within: .none) else {
        throw Fault(
          part: .body, reason: "is not JSON with its values: write each placeholder within a string, \"{{to}}\"")
      }
    case .form:
      guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
        throw Fault(
          part: .body, reason: "is not a form: write NAME={{to}}&NAME={{text}}, with other characters percent-encoded")
      }
    }
  }

  private static func fields(_ lines: [String], escape: Escape?) throws(Fault) -> [Field] {
    var fields: [Field] = []
    for line in lines {
      guard let colon = line.firstIndex(of: ":") else {
        throw Fault(part: .headers, reason: "must be lines of the form Name: value")
      }
      let name = String(line[..<colon])
      let isName = name.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "-")
      }
      guard !name.isEmpty, isName else {
        throw Fault(part: .headers, reason: "must have a name of letters, digits and hyphens before the colon")
      }
      guard !ownFields.contains(name.lowercased()) else {
        throw Fault(part: .headers, reason: "cannot have \(name): it follows from the request")
      }
      guard !fields.contains(where: { $0.name.lowercased() == name.lowercased() }) else {
        throw Fault(part: .headers, reason: "has \(name) twice")
      }
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      guard value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
        throw Fault(part: .headers, reason: "has a value of \(name) that is not printable ASCII")
      }
      fields.append(Field(name: name, value: try pieces(of: String(value), in: .headers, [.token, .basic])))
    }
    if let escape, !fields.contains(where: { $0.name.lowercased() == "content-type" }) {
      fields.append(Field(name: "Content-Type", value: [.text(escape.mediaType)]))
    }
    return fields
  }

  private static func pieces(
    of text: String, in part: Fault.Part, _ allowed: [Placeholder]
  ) throws(Fault) -> [Piece] {
    var pieces: [Piece] = []
    var rest = text[...]
    while let open = rest.firstRange(of: "{{") {
      if open.lowerBound > rest.startIndex { pieces.append(.text(String(rest[..<open.lowerBound]))) }
      rest = rest[open.upperBound...]
      guard let close = rest.firstRange(of: "}}") else { throw Fault(part: part, reason: "has {{ without }}") }
      let name = rest[..<close.lowerBound].filter { $0 != " " }
      rest = rest[close.upperBound...]
      if let known = Placeholder(rawValue: name), allowed.contains(known) {
        pieces.append(.value(known))
        continue
      }
      let names = allowed.map(\.rawValue).sorted()
      if part == .url, Placeholder(rawValue: name)?.isSecret == true {
        throw Fault(part: part, reason: "cannot have {{\(name)}}: servers and proxies log URLs; use a header field")
      }
      let near = Suggestions.nearest(to: name, in: names).map { " (did you mean {{\($0)}})" } ?? ""
      throw Fault(
        part: part,
        reason: "has {{\(String(name.prefix(40)))}}, which is unknown here: use "
          + names.map { "{{\($0)}}" }.joined(separator: ", ") + near)
    }
    if !rest.isEmpty { pieces.append(.text(String(rest))) }
    return pieces
  }

  // MARK: Requests

  /// The values of one message.
  struct Values {
    let to: String
    let from: String
    let text: String
    let token: String

    fileprivate subscript(placeholder: Placeholder) -> String {
      switch placeholder {
      case .to: to
      case .toDigits: String(to.drop { $0 == "+" })
      case .text: text
      case .from: from
      case .token: token
      case .basic: Base64.encode(Array(token.utf8))
      }
    }
  }

  /// The request for one message; `nil` if a value makes no valid request.
  func request(_ values: Values) -> HTTPRequest? {
    guard let url = URL(string: rendered(url, values, .form)) else { return nil }
    var headers: [HTTPField] = []
    for field in fields {
      let value = rendered(field.value, values, nil)
      // A line end in the token's file would begin another field.
      guard value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else { return nil }
      headers.append(HTTPField(field.name, value))
    }
    let body = body.map { Array(rendered($0, values, escape).utf8) } ?? []
    return HTTPRequest(method: method, url: url, headers: headers, body: body)
  }

  private func rendered(_ pieces: [Piece], _ values: Values, _ escape: Escape?) -> String {
    pieces.map { piece in
      switch piece {
      case .text(let text): return text
      case .value(let placeholder):
        let value = values[placeholder]
        switch escape {
        case .json: return String(JSONText.quote(value).dropFirst().dropLast())
        // Percent-encoding fails only for invalid text.
        case .form: return value.addingPercentEncoding(withAllowedCharacters: FormField.unreserved) ?? ""
        case nil: return value
        }
      }
    }.joined()
  }
}

/// The values of forms.
enum FormField {
  /// The characters that stand for themselves (RFC 3986, section 2.3).
  static let unreserved = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}
