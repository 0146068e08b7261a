internal import AppAttest
public import AttestGate
public import ByteCoding
internal import GateWire
internal import Locking
internal import Logging
internal import Observability
public import Transport

/// The answers of `POST /attest/token`: an admission buys an access token for a service that the gate does not relay
/// to.
///
/// A token is issued to a device alone. A client certificate gets none: all debug builds share it, so the token would
/// name no device and could not be revoked.
public struct TokenEndpoint: Sendable {
  static let path = "/attest/token"

  private let gate: Gate
  private let issuer: TokenIssuer
  private let limiter: RequestLimiter
  private let trustedProxies: [AddressRange]
  private let uri: NormalizedURI?
  private let executor: any TaskExecutor
  private let clock: WallClock

  /// - Parameters:
  ///   - url: The URL that proofs must name; `nil` for `https`, the `Host` of the request and the path of the endpoint.
  ///   - limiter: Counts requests like upgrades.
  ///   - trustedProxies: Proxies that send the requests of many clients: no address limit applies to them.
  ///   - executor: Verifies requests. As for registrations, it must have threads of its own. `nil` for one.
  /// - Returns: `nil` if `url` is not an absolute `https` URL.
  public init?(
    gate: Gate, issuer: TokenIssuer, url: String? = nil, limiter: RequestLimiter = RequestLimiter(),
    trustedProxies: [AddressRange] = [], executor: (any TaskExecutor)? = nil,
    clock: WallClock = .system
  ) {
    self.executor = executor ?? WorkerExecutor(threads: 1)
    uri = url.flatMap(NormalizedURI.init)
    guard url == nil || uri != nil else { return nil }
    self.gate = gate
    self.issuer = issuer
    self.limiter = limiter
    self.trustedProxies = trustedProxies
    self.clock = clock
  }

  func answer(_ request: Request, from peer: Peer, in context: RequestContext) async -> Response {
    guard request.method == "POST" else { return context.refuse(.methodNotAllowed(allowed: "POST")) }
    // Two verifications, a signature and a new public key take too long for an event loop.
    return await withTaskExecutorPreference(executor) {
      await decide(request, from: peer, in: context)
    }
  }

  private func decide(_ request: Request, from peer: Peer, in context: RequestContext) async -> Response {
    let claim = AdmissionClaim(AssertionClaim(request), certificate: nil)
    let isTrusted = trustedProxies.contains { $0.contains(peer.address) }
    var hasVerified = false
    do throws(RequestRefusal) {
      if !isTrusted { try limiter.spend(.upgradesPerAddress, of: peer) }
      let audience = try audience(of: request)
      let key = try boundKey(of: request, claim.assertion)
      hasVerified = true
      let (device, method) = try await admit(claim, in: context)
      return try answer(issue(for: device, method, audience, key), for: device, audience, in: context)
    } catch {
      context.metrics.refusedToken(error.code.rawValue)
      // A client that can repeat a valid proof with an invalid assertion would cost one verification each time.
      let closes = error.report.followsVerification || hasVerified && error.code.definition.status < 500
      return context.refuse(error, key: claim.assertion.claimedKey, closes: !isTrusted && closes)
    }
  }

  private func audience(of request: Request) throws(RequestRefusal) -> String {
    guard gate.enforcement != .off else { throw .tokenRefused(.verifiesNothing) }
    let form: TokenRequest
    do throws(TokenRequest.ParseError) {
      form = try TokenRequest(request)
    } catch {
      throw .tokenRefused(.malformedForm(error))
    }
    guard issuer.serves(form.audience) else { throw .tokenRefused(.unknownAudience(form.audience)) }
    return form.audience
  }

  /// Verifies the DPoP proof before the admission spends the nonce, so that a wrong proof spends nothing. The proof is
  /// over the same nonce, so that it is spent with it.
  private func boundKey(of request: Request, _ assertion: AssertionClaim) throws(RequestRefusal) -> DPoPKey {
    guard !assertion.isAbsent else { throw .denied(.noCredentials) }
    let nonce: String
    do throws(Denial) { nonce = try assertion.value(of: .nonce) } catch { throw .denied(error) }
    do throws(DPoPRejection) {
      let proof =
        switch request.headers.only("DPoP") {
        case .once(let text): try DPoPProof(text)
        case .absent: throw .missing
        case .repeated: throw .repeated
        }
      let host = request.headers.first("Host") ?? ""
      guard let uri = uri ?? NormalizedURI(hostField: host, path: Self.path) else { throw .uriMismatch }
      return try proof.verify(method: request.method, uri: uri, nonce: nonce, at: clock.now())
    } catch {
      throw .tokenRefused(.proof(error))
    }
  }

  /// Admits a device as for an upgrade. In monitor mode too, a client that the rules refuse gets no token.
  private func admit(
    _ claim: AdmissionClaim, in context: RequestContext
  ) async throws(RequestRefusal) -> (device: DevicePrincipal, method: String) {
    do throws(RequestRefusal) {
      let admission: Admission
      do throws(Denial) {
        // Precedes the admission, which spends the nonce: without keys no token can be signed.
        do throws(StoreError) { try await issuer.prepare() } catch { throw Denial.storeUnavailable(error) }
        admission = try await gate.admit(claim)
      } catch {
        throw .denied(error)
      }
      if let denial = admission.overruled { throw .denied(denial) }
      guard case .device(let device) = admission.principal else { throw .denied(.noCredentials) }
      // Counts only a proved key. Otherwise a client could use up another client's limit by claiming its key.
      try limiter.spend(.upgradesPerKey, of: device.keyID)
      context.metrics.admitted(by: admission.principal.method)
      return (device, admission.principal.method)
    } catch {
      context.metrics.refusedAdmission(error.code.rawValue)
      throw error
    }
  }

  private func issue(
    for device: DevicePrincipal, _ method: String, _ audience: String, _ key: DPoPKey
  ) throws(RequestRefusal) -> IssuedToken {
    do throws(StoreError) {
      return try issuer.token(for: device, method: method, audience: audience, boundTo: key, at: clock.now())
    } catch {
      throw .denied(.storeUnavailable(error))
    }
  }

  private func answer(
    _ token: IssuedToken, for device: DevicePrincipal, _ audience: String, in context: RequestContext
  ) -> Response {
    var fields = context.fields(app: device.app, key: device.keyHash)
    fields.append("audience", audience)
    fields.append("token_id", token.id)
    context.logger.log(level: .info, "token issued", fields)
    context.metrics.issuedToken()
    // The token is base64url with dots, which needs no escapes.
    return context.ok(
      json: #"{"access_token":"\#(token.text)","token_type":"DPoP","expires_in":\#(issuer.life.components.seconds)}"#)
  }
}
