internal import AttestGate
internal import JSONLog
internal import Logging
internal import Transport

/// The answers of `/attest/verify`, by which another proxy asks whether to let a request through.
///
/// They overwrite every field that the gate speaks by: what the proxy copies from the answer leaves nothing of what the
/// client said under the same name.
enum ForwardAuth {
  /// The request that the proxy asks about may pass, as `identity`'s.
  ///
  /// - Parameters:
  ///   - status: 204, unless the proxy takes no other than 200 for a yes.
  ///   - closes: whether the connection ends behind the answer.
  static func allowed(_ identity: UpstreamIdentity, status: Int = 204, id: String, closes: Bool = false) -> Response {
    var fields = HeaderFields()
    UpstreamIdentity.appendAll(of: identity, to: &fields)
    fields.append("X-Attest-Error", "")
    fields.append("Cache-Control", "no-store")
    fields.append("X-Request-Id", id)
    return Response(status: status, headers: fields, closes: closes)
  }

  /// The request may not pass. `refusal` is what a client of the gate's own would be told.
  ///
  /// Proxies pass 401 and 403 on and take other statuses for a fault of the gate's, so what the client did wrong
  /// becomes one of these two; what the gate cannot do now stays a fault.
  static func denied(_ refusal: Response) -> Response {
    var fields = refusal.headers
    UpstreamIdentity.appendAll(of: nil, to: &fields)
    let status = (400..<500).contains(refusal.status) && refusal.status != 403 ? 401 : refusal.status
    if refusal.status != 401 {
      for field in PublicAnswer.challenge(for: status) { fields.append(field.name, field.value) }
    }
    return Response(status: status, headers: fields, body: refusal.body, closes: refusal.closes)
  }
}

extension GateResponder {
  /// Admits the request that another proxy asks about, by its assertion headers alone.
  ///
  /// Like every admission it spends the nonce and moves the counter: to ask twice about one request refuses it. What
  /// the proxy says about the request (`X-Original-*`, `X-Forwarded-*`) means nothing here, since an assertion is
  /// bound to none of it. The certificate of the connection, if it has one, is the proxy's and not the client's.
  ///
  /// Anybody may ask. So the address has its turns as for upgrades, and a proof that does not hold ends the
  /// connection as a refused upgrade does; only a trusted proxy, which asks for many, is spared both.
  func verify(_ request: Request, from peer: Peer, in context: RequestContext) async -> Response {
    let claim = AdmissionClaim(request, certificate: nil)
    do throws(RequestRefusal) {
      try spendUpgrade(of: peer)
      let (admission, identity) = try await admitted(claim, request, from: peer, to: nil, in: context)
      count(admission)
      context.logger.log(
        level: .info, "let through for another proxy",
        context.fields(app: admission.principal.appID, key: admission.principal.keyHash))
      // Envoy puts the path that it asks about behind ours, and takes 200 alone for a yes.
      return ForwardAuth.allowed(
        identity, status: request.path == "/attest/verify" ? 204 : 200, id: context.id,
        closes: !isTrustedProxy(peer) && admission.overruled?.followsVerification == true)
    } catch {
      metrics.refusedAdmission(error.answer.code)
      return ForwardAuth.denied(
        context.refuse(
          error, key: claim.assertion.claimedKey, closes: !isTrustedProxy(peer) && error.followsVerification))
    }
  }
}
