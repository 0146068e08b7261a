internal import AppAttest
public import AttestGate
public import ByteCoding
internal import Wire
internal import Locking
internal import Logging
internal import Observability
public import Transport

/// The answers of `POST /attest/token`: an admission buys an access token for a service that the gate does not relay
/// to, or a client attestation for an authorization server.
///
/// A token is issued to a device alone. A client certificate gets none: all debug builds share it, so the token would
/// name no device and could not be revoked.
public struct TokenEndpoint: Sendable {
  static let path = "/attest/token"

  private let gate: Gate
  private let issuer: TokenIssuer
  private let attester: ClientAttester
  private let challenges: Challenges
  private let limiter: RequestLimiter
  private let trustedProxies: [AddressRange]
  private let uri: NormalizedURI?
  private let executor: any TaskExecutor
  private let clock: WallClock

  /// - Parameters:
  ///   - attester: Signs attestations for the clients of authorization servers.
  ///   - challenges: Issues the nonces that answers tell to clients whose proof lacks a valid one.
  ///   - url: The URL that proofs must name; `nil` for `https`, the `Host` of the request and the path of the endpoint.
  ///   - limiter: Counts requests like upgrades.
  ///   - trustedProxies: Proxies that send the requests of many clients: no address limit applies to them.
  ///   - executor: Verifies requests. As for registrations, it must have threads of its own. `nil` for one.
  /// - Returns: `nil` if `url` is not an absolute `https` URL.
  public init?(
    gate: Gate, issuer: TokenIssuer, attester: ClientAttester, challenges: Challenges, url: String? = nil,
    limiter: RequestLimiter = RequestLimiter(),
    trustedProxies: [AddressRange] = [], executor: (any TaskExecutor)? = nil,
    clock: WallClock = .system
  ) {
    self.executor = executor ?? WorkerExecutor(threads: 1)
    uri = url.flatMap(NormalizedURI.init)
    guard url == nil || uri != nil else { return nil }
    self.gate = gate
    self.issuer = issuer
    self.attester = attester
    self.challenges = challenges
    self.limiter = limiter
    self.trustedProxies = trustedProxies
    self.clock = clock
  }

  /// - Parameter closesRefused: Whether a connection on which a proof failed may be closed.
  func answer(
    _ request: Request, from peer: Peer, closesRefused: Bool, in context: RequestContext
  ) async -> Response {
    guard request.method == "POST" else { return refuse(.methodNotAllowed(allowed: "POST"), in: context) }
    // Two verifications, a signature and a new public key take too long for an event loop.
    return await withTaskExecutorPreference(executor) {
      await decide(request, from: peer, closesRefused: closesRefused, in: context)
    }
  }

  private func decide(
    _ request: Request, from peer: Peer, closesRefused: Bool, in context: RequestContext
  ) async -> Response {
    let claim = AdmissionClaim(AssertionClaim(request), certificate: nil)
    var hasVerified = false
    do throws(RequestRefusal) {
      try limiter.spend(.upgradesPerAddress, of: peer, except: trustedProxies)
      let purpose = try purpose(of: request)
      let key = try boundKey(of: request, claim.assertion)
      hasVerified = true
      let (device, method) = try await admit(claim, in: context)
      switch purpose {
      case .token(let audience):
        return try answer(issue(for: device, method, audience, key), for: device, audience, in: context)
      case .attestation(let client): return try attest(client, device, key, in: context)
      }
    } catch {
      let (refusal, nonce) = await withNonce(error, for: request)
      context.metrics.refusedToken(refusal.code.rawValue)
      // A client that can repeat a valid proof with an invalid assertion would cost one verification each time.
      let closes = refusal.report.followsVerification || hasVerified && refusal.code.definition.status < 500
      return refuse(
        refusal, key: claim.assertion.claimedKey, closes: closesRefused && closes, nonce: nonce, in: context)
    }
  }

  /// Returns `refusal`, with a new nonce if that is what the client needs. Waits for the store only if no challenge keys
  /// are loaded yet, as after a reload; if it fails, that is the refusal.
  private func withNonce(
    _ refusal: RequestRefusal, for request: Request
  ) async -> (refusal: RequestRefusal, nonce: String?) {
    guard OAuthRefusal.asksForNonce(refusal.report, beginsWithProof: Self.beginsWithProof(request)) else {
      return (refusal, nil)
    }
    do throws(StoreError) {
      try await challenges.prepare()
    } catch {
      return (.denied(.storeUnavailable(error)), nil)
    }
    return (refusal, challenges.issue(at: clock.now())?.nonce.text)
  }

  /// Whether neither proof nor assertion has a nonce: a client begins so, before it has one (RFC 9449 section 8).
  private static func beginsWithProof(_ request: Request) -> Bool {
    guard !request.headers.contains("X-App-Assert-Nonce"), case .once(let text) = request.headers.only("DPoP") else {
      return false
    }
    do throws(DPoPRejection) {
      _ = try DPoPProof(text)
      return false
    } catch {
      return error == .missingClaim("nonce")
    }
  }

  /// Refuses in the form of OAuth.
  ///
  /// - Parameter nonce: A new challenge, if that is what the client needs.
  private func refuse(
    _ refusal: RequestRefusal, key: KeyHash? = nil, closes: Bool = false, nonce: String? = nil,
    in context: RequestContext
  ) -> Response {
    OAuthRefusal.answer(
      context.refuse(refusal, key: key, closes: closes), refusal.report, nonce: nonce, requestID: context.id)
  }

  /// What a request asks for, if the configuration allows it.
  private enum Purpose {
    case token(audience: String)
    case attestation(ClientAttester.Client)
  }

  private func purpose(of request: Request) throws(RequestRefusal) -> Purpose {
    guard gate.enforcement != .off else { throw .tokenRefused(.verifiesNothing) }
    let form: TokenRequest
    do throws(TokenRequest.ParseError) {
      form = try TokenRequest(request)
    } catch {
      throw .tokenRefused(.malformedForm(error))
    }
    switch form.purpose {
    case .token(let audience):
      guard issuer.serves(audience) else { throw .tokenRefused(.unknownAudience(audience)) }
      return .token(audience: audience)
    case .attestation(let id):
      guard let client = attester.client(id) else { throw .tokenRefused(.unknownClient(id)) }
      return .attestation(client)
    }
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
      context.keep(admission)
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

  /// An attestation tells a third party about the app, so it is for devices of the client's apps alone.
  private func attest(
    _ client: ClientAttester.Client, _ device: DevicePrincipal, _ key: DPoPKey, in context: RequestContext
  ) throws(RequestRefusal) -> Response {
    guard client.apps.contains(where: { $0.hasSameBytes(as: device.app.text) }) else {
      throw .tokenRefused(.foreignApp(clientID: client.id))
    }
    let attestation: (text: String, life: Int64)
    do throws(StoreError) {
      attestation = try attester.attestation(for: client, of: key, at: clock.now())
    } catch {
      throw .denied(.storeUnavailable(error))
    }
    var fields = context.fields(app: device.app, key: device.keyHash)
    fields.append("client_id", client.id)
    context.logger.log(level: .info, "client attestation issued", fields)
    context.metrics.issuedToken()
    return context.ok(
      json: #"{"client_attestation":"\#(attestation.text)","expires_in":\#(attestation.life)}"#)
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
