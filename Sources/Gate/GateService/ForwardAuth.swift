internal import AttestGate
internal import Wire
internal import Logging
internal import Observability
internal import Transport

/// The answers of `/attest/verify`, by which another proxy asks whether a request may pass.
///
/// Each answer contains every identity field of the gate, empty if it has no value. A proxy that copies them thus
/// overwrites all client fields with the same names.
enum ForwardAuth {
  /// The request may pass with `identity`.
  ///
  /// - Parameters:
  ///   - status: 204, or 200 for proxies that require it.
  ///   - closes: Whether the connection is closed after the answer.
  static func allowed(_ identity: UpstreamIdentity, status: Int = 204, id: String, closes: Bool = false) -> Response {
    var fields = HeaderFields()
    UpstreamIdentity.appendAll(of: identity, to: &fields)
    fields.append("X-Attest-Error", "")
    fields.append("Cache-Control", "no-store")
    fields.append("X-Request-Id", id)
    return Response(status: status, headers: fields, closes: closes)
  }

  /// The request may not pass. `refusal` is the answer that a direct client would get.
  ///
  /// Proxies pass on 401 and 403 and treat other statuses as a failure of the gate. So errors of the client become
  /// one of these two, and failures of the gate keep their status.
  static func denied(_ refusal: Response) -> Response {
    var fields = refusal.headers
    UpstreamIdentity.appendAll(of: nil, to: &fields)
    let status = (400..<500).contains(refusal.status) && refusal.status != 403 ? 401 : refusal.status
    if refusal.status != 401, status == 401 {
      fields.append(RequestRefusal.challenge.name, RequestRefusal.challenge.value)
    }
    return Response(status: status, headers: fields, body: refusal.body, closes: refusal.closes)
  }

  static let path = "/attest/verify"

  /// Whether `path` is the endpoint's, or one below it. Compares bytes: the path of a faulty request line may have any,
  /// and `String` would sort its combining marks.
  static func names(_ path: String) -> Bool {
    guard path.utf8.starts(with: Self.path.utf8) else { return false }
    let next = path.utf8.dropFirst(Self.path.utf8.count).first
    return next == nil || next == UInt8(ascii: "/")
  }
}

extension GateResponder {
  /// Decides about the request that another proxy asks about, by its assertion headers alone.
  ///
  /// Like every admission, this spends the nonce and advances the counter, so a second query about the same request
  /// is refused. The gate ignores the proxy's description of the request (`X-Original-*`, `X-Forwarded-*`), since an
  /// assertion is not bound to it. A client certificate on the connection belongs to the proxy, not to the client.
  ///
  /// Any client can send this request. So it counts against the upgrade limit of its address, and a failed proof
  /// closes the connection like a refused upgrade. A trusted proxy asks for many clients and is exempt from both.
  ///
  /// The gate refuses a request that asks for another upgrade than to WebSocket, also without enforcement: many proxies
  /// pass it on, and then no longer see the requests of the client, which could name any identity in them.
  func verify(
    _ request: Request, from peer: Peer, closesRefused: Bool, in context: RequestContext
  ) async -> Response {
    let claim = AdmissionClaim(AssertionClaim(request, emptyIsAbsent: true), certificate: nil)
    do throws(RequestRefusal) {
      try spend(.upgradesPerAddress, of: peer)
      if request.headers.asksForForeignUpgrade { throw .foreignUpgrade }
      let (admission, identity) = try await admitted(claim, request, from: peer, to: nil, in: context)
      count(admission, in: context)
      context.logger.log(
        level: .info, "forward-auth request admitted",
        context.fields(app: admission.principal.app, key: admission.principal.keyHash))
      // Envoy appends the path of the original request and accepts only 200 as permission.
      return ForwardAuth.allowed(
        identity, status: request.path == ForwardAuth.path ? 204 : 200, id: context.id,
        closes: closesRefused && admission.overruled?.report.followsVerification == true)
    } catch {
      metrics.refusedAdmission(error.code.rawValue)
      return ForwardAuth.denied(
        context.refuse(
          error, key: claim.assertion.claimedKey, closes: closesRefused && error.report.followsVerification))
    }
  }
}
