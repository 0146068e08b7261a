internal import AppAttest
public import AttestGate
internal import ByteCoding
internal import JSONLog
public import Logging
public import Transport

/// The gate as the engine sees it: one decision for each request.
public struct GateResponder: RequestResponder {
  private let gate: Gate
  private let registrar: Registrar
  private let challenges: Challenges
  private let identities: IdentityIssuer
  private let routes: RouteTable
  private let limits: SessionLimits
  private let sessions: LiveSessions
  private let hygiene: HeaderHygiene
  private let logger: Logger
  private let clock: WallClock
  let metrics: GateMetrics

  /// - Parameters:
  ///   - challenges: the same that the gate's rules and `registrar` check nonces with.
  ///   - identities: signs what upstreams are told.
  ///   - limits: of every session.
  ///   - sessions: where the sessions that are let in are listed, to be found when they have to be closed.
  ///   - stripHeaders: names of further header fields that upstreams do not get to see.
  ///   - metrics: counts what is decided.
  ///   - logger: gets one line for each refusal, each opened and each closed session. It must not block.
  public init(
    gate: Gate, registrar: Registrar, challenges: Challenges, identities: IdentityIssuer, routes: RouteTable,
    limits: SessionLimits = .init(), sessions: LiveSessions = LiveSessions(), stripHeaders: Set<String> = [],
    logger: Logger, metrics: GateMetrics = GateMetrics(), clock: WallClock = .system
  ) {
    self.gate = gate
    self.registrar = registrar
    self.challenges = challenges
    self.identities = identities
    self.routes = routes
    self.limits = limits
    self.sessions = sessions
    hygiene = HeaderHygiene(stripHeaders: stripHeaders)
    self.logger = logger
    self.metrics = metrics
    self.clock = clock
  }

  /// Challenges, and what is refused without a look at credentials, need no waiting; the rest needs the store.
  public func respond(to request: Request, from peer: Peer) async -> Disposition {
    let context = RequestContext(request, from: peer, logger: logger, metrics: metrics)
    switch Endpoint(path: request.path, routes: routes) {
    case .challenge:
      guard request.method == "GET" else { return .respond(context.refuse(.methodNotAllowed(allowed: "GET"))) }
      return .respond(await challenge(in: context))
    case .registration:
      guard request.method == "POST" else { return .respond(context.refuse(.methodNotAllowed(allowed: "POST"))) }
      return .respond(await register(request, in: context))
    case .keySet:
      guard ["GET", "HEAD"].contains(request.method) else {
        return .respond(context.refuse(.methodNotAllowed(allowed: "GET, HEAD")))
      }
      return .respond(await keySet(in: context))
    case .verification: return .respond(await verify(request, from: peer, in: context))
    case .route(let route):
      guard request.upgrade != nil || route.forwarding == .all else {
        return .respond(context.refuse(.upgradeRequired))
      }
      // It asks for an echo of the request, and in that the gate's word for the upstream would come back.
      guard request.method != "TRACE" else {
        return .respond(context.refuse(.methodNotAllowed(allowed: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")))
      }
      guard !Origin.isForeign(in: request.headers) else { return .respond(context.refuse(.foreignOrigin)) }
      return await admit(request, from: peer, to: route, in: context)
    case .reserved, .nowhere: return .respond(context.refuse(.notFound))
    }
  }

  /// A body for an upstream is the upstream's to bound.
  public func streamsBody(of request: Request) -> Bool {
    guard case .route(let route) = Endpoint(path: request.path, routes: routes) else { return false }
    return route.forwarding == .all
  }

  public func response(to fault: RequestFault, id: String, from peer: Peer) -> Response {
    RequestContext(id: id, from: peer, logger: logger, metrics: metrics).refuse(.malformedRequest(fault))
  }

  /// Waits for the store only if the keys are in one that could not be had before.
  private func challenge(in context: RequestContext) async -> Response {
    if let challenge = challenges.issue(at: clock.now()) { return issued(challenge, in: context) }
    do throws(StoreError) {
      try await challenges.prepare()
    } catch {
      return context.refuse(.denied(.storeUnavailable(error)))
    }
    guard let challenge = challenges.issue(at: clock.now()) else {
      return context.refuse(.denied(.storeUnavailable(.unreachable(reason: "no challenge keys"))))
    }
    return issued(challenge, in: context)
  }

  private func issued(_ challenge: Challenge, in context: RequestContext) -> Response {
    metrics.issuedChallenge()
    return context.ok(challenge)
  }

  /// Waits for the store as `challenge` does.
  private func keySet(in context: RequestContext) async -> Response {
    do throws(StoreError) {
      try await identities.prepare()
    } catch {
      return context.refuse(.denied(.storeUnavailable(error)))
    }
    return context.ok(keySet: identities.keySet(at: clock.now()))
  }

  private func register(_ request: Request, in context: RequestContext) async -> Response {
    let claim: RegistrationClaim
    do throws(RegistrationBody.Fault) {
      claim = try RegistrationBody(json: request.body).claim
    } catch {
      return refuseRegistration(.malformedRegistration(error), in: context)
    }
    let key = KeyID(base64: claim.keyID).map(KeyHash.init)
    do throws(Denial) {
      // Chains of certificates take a millisecond, which no event loop has.
      let registered = try await withTaskExecutorPreference(globalConcurrentExecutor) {
        () async throws(Denial) in try await registrar.register(claim)
      }
      var fields = context.fields(app: registered.appID, key: key)
      fields.append("repeated", registered.isRepetition)
      logger.log(level: .info, "key registered", fields)
      metrics.registered(isRepetition: registered.isRepetition)
      return context.ok(json: JSONText.object(["status": "registered"]))
    } catch {
      return refuseRegistration(.denied(error), in: context, key: key)
    }
  }

  private func refuseRegistration(_ refusal: Refusal, in context: RequestContext, key: KeyHash? = nil) -> Response {
    metrics.refusedRegistration(refusal.answer.code)
    return context.refuse(refusal, key: key)
  }

  private func admit(
    _ request: Request, from peer: Peer, to route: Route, in context: RequestContext
  ) async -> Disposition {
    let claim = AdmissionClaim(request, certificate: peer.verifiedCertificate)
    // Taken before the registry is asked: a revocation that comes after its answer is not missed.
    let ticket = sessions.ticket()
    do throws(Denial) {
      let (admission, identity) = try await admitted(claim, request, from: peer)
      let session = sessions.add(
        SessionRecord(id: context.id, admission: admission, address: peer.address, route: route.path), since: ticket)
      let head = UpstreamHead(
        request: request, peer: peer, admission: admission, identity: identity, hygiene: hygiene)
      guard request.upgrade != nil else {
        return .forward(
          ForwardedRequest(admission, to: route, context: context, session: session), head: head.lines)
      }
      return .relay(
        GateSession(admission, to: route, context: context, limits: limits, session: session),
        upgradeHead: head.openingHandshake)
    } catch {
      metrics.refusedAdmission(error.code.rawValue)
      return .respond(context.refuse(.denied(error), key: claim.assertion.claimedKey))
    }
  }

  /// Lets the bearer of `claim` in, and says in the gate's words who that is.
  func admitted(
    _ claim: AdmissionClaim, _ request: Request, from peer: Peer
  ) async throws(Denial) -> (Admission, UpstreamIdentity) {
    // Before anything is spent: without keys nobody could be announced.
    if gate.enforcement != .off, !identities.isReady {
      do throws(StoreError) { try await identities.prepare() } catch { throw .storeUnavailable(error) }
    }
    let admission = try await gate.admit(claim)
    do throws(StoreError) {
      let subject = IdentitySubject(admission, session: request.id, from: peer)
      let assertion = try subject.map { subject throws(StoreError) in
        try identities.assertion(of: subject, at: clock.now())
      }
      metrics.admitted(by: admission.principal.method)
      return (admission, UpstreamIdentity(of: admission.principal, assertion: assertion))
    } catch {
      throw .storeUnavailable(error)
    }
  }
}

extension RequestContext {
  /// Each value is a string: the guide's client decodes the answer as a dictionary of strings.
  fileprivate func ok(_ challenge: Challenge) -> Response {
    ok(
      json: JSONText.object([
        "nonce": challenge.nonce.text, "expires": String(challenge.expiresAt.milliseconds),
      ]))
  }
}

extension AdmissionClaim {
  /// What `request` shows: assertion headers, and the certificate that the handshake verified.
  ///
  /// - Parameter certificate: the client's own, if there is one: not that of a proxy before it.
  init(_ request: Request, certificate: PeerCertificate?) {
    self.init(
      assertion: AssertionClaim { name in
        switch request.headers.only(name.rawValue) {
        case .absent: .absent
        case .once(let value): .once(value)
        case .repeated: .repeated
        }
      },
      certificate: certificate.map {
        VerifiedCertificate(fingerprint: $0.fingerprint, subject: $0.subject)
      })
  }
}

extension AssertionClaim {
  /// The key that is claimed, for the log; `nil` if none is, or several are.
  var claimedKey: KeyHash? {
    guard case .once(let text) = self[.keyID] else { return nil }
    return KeyID(base64: text).map(KeyHash.init)
  }
}
