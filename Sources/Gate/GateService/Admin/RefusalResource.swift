internal import ByteCoding
internal import Transport

/// A refusal in a list.
public struct RefusalDescription: Codable, Sendable, Hashable {
  /// RFC 3339.
  public let at: String
  /// The id of the refused request, as in the log.
  public let requestID: String
  public let code: String
  /// The violated rule, as a stable word.
  public let step: String
  /// The status of the answer; absent if monitor mode admitted the client.
  public let status: Int?
  /// Details of the violated rule, for operators.
  public let detail: String?
  /// The text for the client.
  public let text: String
  /// What the client can do next; absent if the server after the gate refused.
  public let advice: String?
  /// The hash of the key that the client claimed; it may not be registered.
  public let key: String?
  public let app: String?
  /// The client's address without its port.
  public let address: String
  public let endpoint: String?
  /// The path without the query.
  public let path: String?

  enum CodingKeys: String, CodingKey {
    case at, code, step, status, detail, text, advice, key, app, address, endpoint, path
    case requestID = "request_id"
  }

  public init(_ record: RefusalRecord) {
    at = record.at.description
    requestID = record.requestID
    (code, step, status, detail) = (record.code, record.step, record.status, record.detail)
    (text, advice) = (record.text, record.advice)
    (key, app) = (record.key, record.app)
    (address, endpoint, path) = (record.address, record.endpoint, record.path)
  }
}

/// A page of refusals, the newest first.
public struct RefusalListing: Codable, Sendable, Hashable {
  public let refusals: [RefusalDescription]
  /// The `after` parameter of the next page, with older refusals; absent on the last page.
  public let next: String?
  /// The `since` parameter with which a later request returns only refusals after this answer.
  public let newest: String
}

/// The refusals that a request asks for.
struct RefusalSelection {
  /// The maximum bytes of a parameter.
  static let mostBytes = 128

  private let key: String?
  private let app: String?
  /// In the form in which records have it.
  private let address: String?
  private let code: String?
  private let requestID: FoldedText?
  /// A text in any member.
  private let search: FoldedText?

  init(_ request: AdminRequest) throws(AdminError) {
    key = try Self.text("key", request)
    if let key, KeyName(key) == nil { throw .malformedKey }
    app = try Self.text("app", request)
    address = try Self.text("address", request).map(Self.canonicalAddress)
    code = try Self.text("code", request)
    requestID = try Self.text("request", request).map { FoldedText($0) }
    search = try Self.text("search", request).map { FoldedText($0) }
  }

  private static func text(_ name: String, _ request: AdminRequest) throws(AdminError) -> String? {
    guard let text = request.parameter(name), !text.isEmpty else { return nil }
    guard text.utf8.count <= mostBytes else {
      throw .malformedParameter(name, rule: "must have at most \(mostBytes) bytes")
    }
    return text
  }

  /// Returns an IP address as `SocketAddress` writes it, however the operator wrote it; other text unchanged.
  private static func canonicalAddress(_ text: String) -> String {
    let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
    switch SocketAddress(literal: isBracketed ? String(text.dropFirst().dropLast()) : text, port: 0) {
    case .ipv4(let bytes, _), .ipv6(let bytes, _): return SocketAddress.ip(bytes, port: 0).host
    case .unix, nil: return text
    }
  }

  func picks(_ record: RefusalRecord) -> Bool {
    if let key, record.key?.utf8.starts(with: key.utf8) != true { return false }
    if let app, record.app?.hasSameBytes(as: app) != true { return false }
    if let address, !record.address.hasSameBytes(as: address) { return false }
    if let code, !record.code.hasSameBytes(as: code) { return false }
    if let requestID, !requestID.begins(record.requestID) { return false }
    guard let search else { return true }
    let members = [
      record.requestID, record.code, record.step, record.detail, record.text, record.key, record.app, record.address,
      record.endpoint, record.path,
    ]
    return members.contains { $0.map { search.occurs(in: $0) } ?? false }
  }
}

/// `/v1/refusals`: the last refusals of this gate, from its memory. Works without the store.
public struct RefusalResource: AdminResource {
  private let log: RefusalLog

  public init(_ log: RefusalLog) { self.log = log }

  private static let text: JSONContent = [
    "type": "string", "minLength": 1, "maxLength": .number(RefusalSelection.mostBytes),
  ]

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/v1/refusals", "Lists the last refusals of this gate, the newest first, at most 1000.",
        parameters: [
          .after, .limit, AdminParameter("since"), .keyName("key"), AdminParameter("app", schema: Self.text),
          AdminParameter("address", schema: Self.text), AdminParameter("code", schema: Self.text),
          AdminParameter("request", schema: Self.text), AdminParameter("search", schema: Self.text),
        ],
        answers: AdminAnswers(200, schema: .refusalListing)
      ) { request throws(AdminError) in .json(try list(request)) }
    ]
  }

  private func list(_ request: AdminRequest) throws(AdminError) -> RefusalListing {
    let (before, since) = (try Self.number("after", request), try Self.number("since", request))
    let (limit, selection) = (try request.limit(), try RefusalSelection(request))
    // Read first: a refusal between the two reads is then in the next answer, too, and not in none.
    let newest = log.lastNumber
    let found = log.records.filter { record in
      record.number <= newest && record.number < before ?? .max && record.number > since ?? 0
        && selection.picks(record)
    }
    let page = found.prefix(limit)
    return RefusalListing(
      refusals: page.map(RefusalDescription.init),
      next: found.count > limit ? page.last.map { String($0.number) } : nil, newest: String(newest))
  }

  private static func number(_ name: String, _ request: AdminRequest) throws(AdminError) -> UInt64? {
    guard let text = request.parameter(name) else { return nil }
    guard let number = UInt64(text) else {
      throw .malformedParameter(name, rule: "must be a value of an earlier answer")
    }
    return number
  }
}
