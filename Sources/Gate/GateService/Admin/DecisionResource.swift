public import AttestGate
internal import ByteCoding
internal import Wire
internal import Transport

/// A decision about a key in a list. Timestamps are RFC 3339. Unknown values are absent.
public struct DecisionDescription: Codable, Sendable, Hashable {
  public enum Outcome: String, Codable, Sendable, Hashable, CaseIterable {
    case admitted, refused
    /// Monitor mode admitted the client although a rule refused it.
    case notEnforced = "not_enforced"
  }

  /// The time of the decision; of the last one of several.
  public let at: String
  public let outcome: Outcome
  /// Whether the device had proved its key by a fresh signature.
  public let verified: Bool
  /// The code of the refusal; absent for an admission.
  public let code: String?
  /// The violated rule, as a stable word; absent for an admission.
  public let step: String?
  /// The status of the answer to a refusal; absent if monitor mode admitted the client.
  public let status: Int?
  /// Details of the violated rule, for operators.
  public let detail: String?
  /// What the client can do next; absent for an admission, and if the server after the gate refused.
  public let advice: String?
  /// The app of the key.
  public let app: String
  /// The client's address without its port.
  public let address: String
  /// The id of the request, as in the log.
  public let requestID: String
  /// The number of equal refusals that did not prove the key; 1 for any other decision.
  public let count: Int64
  /// The time of the first of several.
  public let since: String?

  enum CodingKeys: String, CodingKey {
    case at, outcome, verified, code, step, status, detail, advice, app, address, count, since
    case requestID = "request_id"
  }

  public init(_ decision: KeyDecision, app: String) {
    at = decision.at.description
    outcome = decision.code == nil ? .admitted : decision.status == nil ? .notEnforced : .refused
    verified = decision.kind != .unverified
    (code, step, status, detail) = (decision.code, decision.step, decision.status, decision.detail)
    advice = decision.code.flatMap(GateRefusalCode.init(rawValue:))?.definition.advice.rawValue
    (self.app, address, requestID, count) = (app, decision.address, decision.requestID, decision.count)
    since = decision.count > 1 ? decision.since.description : nil
  }
}

/// A page of decisions about one key, the last stored first.
public struct DecisionListing: Codable, Sendable, Hashable {
  /// The whole hash of the key.
  public let key: String
  public let decisions: [DecisionDescription]
  /// The `after` parameter of the next page, with earlier decisions; absent on the last page.
  public let next: String?
}

/// `/v1/keys/{key}/decisions`: the decisions about a key that the store has, of all gates that share it.
public struct DecisionResource: AdminResource {
  private let store: any KeyCatalog & DecisionStorage

  public init(store: any KeyCatalog & DecisionStorage) { self.store = store }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/v1/keys/{key}/decisions", "Lists the stored decisions about a key, the newest first.",
        parameters: [.after, .limit],
        answers: AdminAnswers(200, schema: .decisionListing, refusals: [404, 409, 503])
      ) { request throws(AdminError) in .json(try await list(request)) }
    ]
  }

  private func list(_ request: AdminRequest) async throws(AdminError) -> DecisionListing {
    let limit = try request.limit()
    let position = try Self.position(request)
    let key = try await KeyLookup(catalog: store).record(named: request.value("key")).key
    let page: DecisionPage
    do throws(StoreError) {
      page = try await store.decisions(of: key.keyID, before: position, limit: limit)
    } catch {
      throw .storeUnavailable(error)
    }
    return DecisionListing(
      key: KeyHash(of: key.keyID).text,
      decisions: page.decisions.map { DecisionDescription($0, app: key.app.text) }, next: page.next.map(String.init))
  }

  private static func position(_ request: AdminRequest) throws(AdminError) -> Int64? {
    guard let text = request.parameter("after") else { return nil }
    guard let position = Int64(text) else {
      throw .malformedParameter("after", rule: "must be the next value of the previous page")
    }
    return position
  }
}
