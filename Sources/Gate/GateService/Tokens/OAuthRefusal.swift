internal import AttestGate
internal import ByteCoding
internal import Wire
internal import Transport

/// A refusal at the token endpoint in the form of OAuth (RFC 6749 section 5.2), beside the gate's own code in
/// `X-Attest-Error`.
enum OAuthRefusal {
  /// The field that carries a nonce for the next proof (RFC 9449 section 8).
  static let nonceField = "DPoP-Nonce"

  /// Returns `refusal` with a body of JSON: `error`, `error_description`, and the members of the gate's own refusals.
  ///
  /// - Parameters:
  ///   - report: What `refusal` says.
  ///   - nonce: A new challenge, for a client whose proof has none, or one that does not count. The answer then has
  ///     status 400 and the error `use_dpop_nonce`.
  static func answer(_ refusal: Response, _ report: RefusalReport, nonce: String?, requestID: String) -> Response {
    let error = nonce == nil ? word(for: report.code) : "use_dpop_nonce"
    var headers = HeaderFields()
    for field in refusal.headers.fields {
      let isType = field.name.lowercased() == "content-type"
      headers.append(field.name, isType ? "application/json" : field.value)
    }
    if let nonce { headers.append(nonceField, nonce) }
    let body = JSONText.object([
      "error": error, "error_description": report.text, "code": report.code.rawValue, "request_id": requestID,
    ])
    return Response(
      status: nonce == nil ? refusal.status : 400, headers: headers, body: Array(body.utf8), closes: refusal.closes)
  }

  /// Whether the proof would be accepted with a new nonce: it has none, or the gate did not issue it, or it is spent.
  ///
  /// - Parameter beginsWithProof: Whether neither proof nor assertion has a nonce.
  static func asksForNonce(_ report: RefusalReport, beginsWithProof: Bool) -> Bool {
    switch report.code {
    case .nonceInvalid, .nonceExpired, .nonceUsed: true
    case .noCredentials, .malformedHeader: beginsWithProof
    case .dpopMalformed: report.step == "dpop_claim" && report.detail == "nonce"
    case .dpopRefused: report.step == "dpop_nonce"
    default: false
    }
  }

  /// The registered error (RFC 6749 section 5.2, RFC 8693 section 2.2.2, RFC 9449 section 12.2) that is closest.
  private static func word(for code: GateRefusalCode) -> String {
    switch code {
    case .dpopMalformed, .dpopRefused: "invalid_dpop_proof"
    case .audienceRefused: "invalid_target"
    case .malformedForm, .malformedHeader, .malformedValue, .malformedHead, .malformedBody, .malformedUpgrade,
      .bodyTooLarge, .headTooLarge, .webSocketVersion, .requestTimeout, .methodNotAllowed:
      "invalid_request"
    case .rateLimited, .riskUnknown, .storeUnavailable, .overloaded, .tokensUnavailable, .notConfigured,
      .statusListUnavailable,
      .clockWrong:
      "temporarily_unavailable"
    default: "invalid_client"
    }
  }
}

extension GateResponder {
  /// Returns `refusal` in the form of OAuth if the token endpoint is at `path`, otherwise as it is: for requests that
  /// do not reach the endpoint. The path of a faulty request line may have any bytes.
  func formed(_ refusal: Response, of reason: RequestRefusal, at path: String, id: String) -> Response {
    guard tokens != nil, path.hasSameBytes(as: TokenEndpoint.path) else { return refusal }
    return OAuthRefusal.answer(refusal, reason.report, nonce: nil, requestID: id)
  }
}
