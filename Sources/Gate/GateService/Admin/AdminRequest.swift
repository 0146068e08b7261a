internal import ByteCoding
public import Transport

/// A request to the admin server, with a path and parameters that the operation accepts.
public struct AdminRequest: Sendable {
  /// The request id, as in `X-Request-Id` and the log.
  public let id: String
  /// The process of the client; `nil` over TCP, and for a request without a connection.
  public let process: PeerProcess?
  /// The person at a console over TLS, as the client names them; `nil` without one.
  public let person: String?
  public let headers: HeaderFields
  /// The body, at most as long as the engine's limit. Empty for methods other than POST and PUT.
  public let body: [UInt8]
  private let values: [String: String]
  private let parameters: [String: [String]]

  init(
    _ request: Request, from process: PeerProcess?, values: [String: String], to operation: AdminOperation
  ) throws(AdminError) {
    id = request.id
    self.process = process
    headers = request.headers
    let people = request.headers.values(named: ConsolePersonField.name)
    person = try people.first.map { value throws(AdminError) in
      guard people.count == 1, let person = ConsolePersonField.decode(value) else {
        throw .malformedParameter(
          ConsolePersonField.name, rule: "must be one name of at most 384 bytes, percent-encoded UTF-8")
      }
      return person
    }
    body = request.body
    self.values = values
    parameters = try Self.parameters(in: request.target, of: operation)
  }

  /// Returns the path segment that matches `{name}`; empty if the operation's path has no such segment.
  public func value(_ name: String) -> String { values[name] ?? "" }

  /// Returns the value of the parameter `name`; `nil` if it is absent.
  public func parameter(_ name: String) -> String? { parameters[name]?.first }

  /// Returns the values of the parameter `name`, which the query may repeat, in their order.
  public func repeated(_ name: String) -> [String] { parameters[name] ?? [] }

  /// Returns `true` if the parameter `name` is set, as `?name` or `?name=true`.
  ///
  /// - Throws: `.malformedParameter` for a value other than `true` and `false`.
  public func flag(_ name: String) throws(AdminError) -> Bool {
    guard let text = parameter(name) else { return false }
    if text.isEmpty || text.hasSameBytes(as: "true") { return true }
    guard text.hasSameBytes(as: "false") else {
      throw .malformedParameter(name, rule: "must be true, false or without a value")
    }
    return false
  }

  /// Returns the maximum number of elements of a page: the parameter `limit`, or 100 if it is absent.
  ///
  /// - Throws: `.malformedParameter` unless `limit` is a number from 1 to 1000.
  public func limit() throws(AdminError) -> Int {
    guard let text = parameter("limit") else { return 100 }
    guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let limit = Int(text),
      (1...1000).contains(limit)
    else { throw .malformedParameter("limit", rule: "must be a number from 1 to 1000") }
    return limit
  }

  /// Whether the client prefers JSON to text.
  public var wantsJSON: Bool { Accept.namesJSON(in: headers) }

  private static func parameters(
    in target: String, of operation: AdminOperation
  ) throws(AdminError) -> [String: [String]] {
    guard let mark = target.firstIndex(of: "?") else { return [:] }
    let known = operation.parameters
    var parameters: [String: [String]] = [:]
    for part in target[target.index(after: mark)...].split(separator: "&") {
      let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let text = halves.first.flatMap(PercentEncoding.decode),
        let parameter = known.first(where: { $0.name.hasSameBytes(as: text) })
      else {
        throw .unknownParameter(known: known.map(\.name))
      }
      let name = parameter.name
      guard let value = PercentEncoding.decode(halves.count == 2 ? halves[1] : "") else {
        throw .malformedParameter(name, rule: "must be percent-encoded UTF-8")
      }
      guard parameters[name] == nil || parameter.isRepeatable else {
        throw .malformedParameter(name, rule: "must not be repeated")
      }
      parameters[name, default: []].append(value)
    }
    return parameters
  }
}

/// The percent-encoding of queries (RFC 3986 section 2.1).
enum PercentEncoding {
  /// Returns the decoded `text`; `nil` for a malformed escape or if the result is not UTF-8.
  static func decode(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else { return nil }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    Character(Unicode.Scalar(character)).hexDigitValue.map(UInt8.init)
  }
}
