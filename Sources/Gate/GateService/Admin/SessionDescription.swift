internal import AttestGate
public import ByteCoding
internal import Transport

/// A session in a list.
public struct SessionDescription: Codable, Sendable, Hashable {
  /// The id of the request that opened the session, as in the log.
  public let id: String
  /// The `KeyHash`; absent if no key opened the session.
  public let key: String?
  public let app: String?
  public let route: String
  /// The method of admission: `app-attest`, `android-key`, `mtls` or `none`.
  public let method: String
  /// RFC 3339.
  public let openedAt: String
  public let ageSeconds: Int64
  /// The client's address with its port.
  public let address: String

  enum CodingKeys: String, CodingKey {
    case id, key, app, route, method, address
    case openedAt = "opened_at"
    case ageSeconds = "age_seconds"
  }

  public init(_ record: SessionRecord, at now: Timestamp) {
    id = record.id
    key = record.keyID.map { KeyHash(of: $0).text }
    app = if case .device(let device) = record.principal { device.app.text } else { nil }
    route = record.route
    method = record.principal.method
    openedAt = record.admittedAt.description
    ageSeconds = now.since(record.admittedAt).components.seconds
    address = record.address.description
  }
}

/// A page of sessions, the oldest first.
public struct SessionListing: Codable, Sendable, Hashable {
  public let sessions: [SessionDescription]
  /// The `after` parameter of the next page; absent on the last page.
  public let next: String?
}

/// A session that is being closed.
public struct SessionClosing: Codable, Sendable, Hashable {
  public let id: String
  public let closed: Bool
}
