internal import AppAttest
public import AttestGate
public import ByteCoding
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
  private let limiter: RequestLimiter
  private let trustedProxies: [AddressRange]
  private let sanitizer: HeaderSanitizer
  private let logger: Logger
  private let clock: WallClock
  let metrics: GateMetrics

  /// - Parameters:
  ///   - challenges: the same that the gate's rules and `registrar` check nonces with.
  ///   - identities: signs the identities for upstreams.
  ///   - limits: of every session.
  ///   - sessions: the list of admitted sessions, through which they are closed.
  ///   - limiter: refuses requests beyond a rate, before anything else is examined.
  ///   - trustedProxies: the proxies that may ask `/attest/verify` for others, uncounted by address. No peer is
  ///     believed about the address of a client.
  ///   - stripHeaders: names of further header fields that upstreams do not get.
  ///   - metrics: counts the decisions.
  ///   - logger: gets one line for each refusal, each opened and each closed session. It must not block.
  public init(
    gate: Gate, registrar: Registrar, challenges: Challenges, identities: IdentityIssuer, routes: RouteTable,
    limits: SessionLimits = .init(), sessions: LiveSessions = LiveSessions(),
    limiter: RequestLimiter = RequestLimiter(), trustedProxies: [AddressRange] = [], stripHeaders: Set<String> = [],
    logger: Logger, metrics: GateMetrics = GateMetrics(),
    clock: WallClock = .system
  ) {
    self.gate = gate
    self.registrar = registrar
    self.challenges = challenges
    self.identities = identities
    self.routes = routes
    self.limits = limits
    self.sessions = sessions
    self.limiter = limiter
    self.trustedProxies = trustedProxies
    sanitizer = HeaderSanitizer(stripHeaders: stripHeaders)
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
      return .respond(await challenge(from: peer, in: context))
    case .registration:
      guard request.method == "POST" else { return .respond(context.refuse(.methodNotAllowed(allowed: "POST"))) }
      return .respond(await register(request, from: peer, in: context))
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
      // TRACE asks for an echo of the request, and in that the gate's word for the upstream would come back; CONNECT
      // for a tunnel, in which the next request on that connection would disappear.
      guard !["TRACE", "CONNECT"].contains(request.method) else {
        return .respond(context.refuse(.methodNotAllowed(allowed: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")))
      }
      guard !CrossSiteRule.isForeign(in: request.headers) else { return .respond(context.refuse(.foreignOrigin)) }
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
  private func challenge(from peer: Peer, in context: RequestContext) async -> Response {
    do throws(RequestRefusal) { try limiter.spend(.challengesPerAddress, of: peer) } catch {
      return context.refuse(error)
    }
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

  private func issued(_ challenge: IssuedChallenge, in context: RequestContext) -> Response {
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

  private func register(_ request: Request, from peer: Peer, in context: RequestContext) async -> Response {
    do throws(RequestRefusal) {
      try limiter.spend(.registrationsPerAddress, of: peer)
    } catch {
      return refuseRegistration(error, in: context)
    }
    // JSON of 64 KiB and chains of certificates take a millisecond, which no event loop has.
    return await withTaskExecutorPreference(globalConcurrentExecutor) {
      await registered(request.body, in: context)
    }
  }

  private func registered(_ body: [UInt8], in context: RequestContext) async -> Response {
    let claim: RegistrationClaim
    do throws(RegistrationBody.Fault) {
      claim = try RegistrationBody(json: body).claim
    } catch {
      return refuseRegistration(.malformedRegistration(error), in: context)
    }
    let key = KeyID(base64: claim.keyID).map(KeyHash.init)
    do throws(Denial) {
      let registered = try await registrar.register(claim)
      var fields = context.fields(app: registered.appID, key: key)
      fields.append("repeated", registered.isRepetition)
      logger.log(level: .info, "key registered", fields)
      metrics.registered(isRepetition: registered.isRepetition)
      return context.ok(json: JSONText.object(["status": "registered"]))
    } catch {
      return refuseRegistration(.denied(error), in: context, key: key)
    }
  }

  private func refuseRegistration(_ refusal: RequestRefusal, in context: RequestContext, key: KeyHash? = nil)
    -> Response
  {
    metrics.refusedRegistration(refusal.answer.code)
    return context.refuse(refusal, key: key)
  }

  private func admit(
    _ request: Request, from peer: Peer, to route: Route, in context: RequestContext
  ) async -> Disposition {
    let claim = AdmissionClaim(request, certificate: peer.verifiedCertificate)
    // Taken before the registry is asked: a revocation that comes after its answer is not missed.
    let revocationEpoch = sessions.revocationEpoch()
    do throws(RequestRefusal) {
      try limiter.spend(.upgradesPerAddress, of: peer)
      let limit = limiter.sessions
      // A look before anything is spent; what counts is the place that is taken below.
      guard sessions.count < limit else { throw .tooManySessions(limit: limit) }
      let (admission, identity) = try await admitted(claim, request, from: peer, to: route, in: context)
      let record = SessionRecord(id: context.id, admission: admission, address: peer.address, route: route.path)
      guard let session = sessions.add(record, since: revocationEpoch, atMost: limit) else {
        throw .tooManySessions(limit: limit)
      }
      count(admission)
      let head = UpstreamHead(
        request: request, peer: peer, admission: admission, identity: identity, sanitizer: sanitizer)
      guard request.upgrade != nil else {
        return .forward(
          ForwardedRequest(admission, to: route, context: context, session: session), head: head.lines)
      }
      return .relay(
        GateSession(admission, to: route, context: context, limits: limits, session: session),
        upgradeHead: head.openingHandshake)
    } catch {
      metrics.refusedAdmission(error.answer.code)
      return .respond(
        context.refuse(error, key: claim.assertion.claimedKey, closes: error.followsVerification))
    }
  }

  /// Takes one turn of the address that asks, unless it is a trusted proxy, which asks for many clients.
  func spendUpgrade(of peer: Peer) throws(RequestRefusal) {
    if !isTrustedProxy(peer) { try limiter.spend(.upgradesPerAddress, of: peer) }
  }

  /// Whether `peer` is a proxy of the operator's own. With a PROXY header, `peer` is the client that the header
  /// names.
  func isTrustedProxy(_ peer: Peer) -> Bool { trustedProxies.contains { $0.contains(peer.address) } }

  /// Admits the bearer of `claim`, and states in the gate's words who it is. A client that is admitted only because
  /// of monitor mode is counted and logged as refused, and gets no identity.
  ///
  /// - Parameter route: the route whose upstream the identity is for; `nil` for an answer of `/attest/verify`.
  func admitted(
    _ claim: AdmissionClaim, _ request: Request, from peer: Peer, to route: Route?, in context: RequestContext
  ) async throws(RequestRefusal) -> (Admission, UpstreamIdentity) {
    let (admission, identity): (Admission, UpstreamIdentity)
    do throws(Denial) {
      (admission, identity) = try await decided(claim, request, from: peer, to: route)
    } catch {
      throw .denied(error)
    }
    // The proven key counts: with a key that is only claimed, any client could use up another's turns.
    if case .device(let device) = admission.principal { try limiter.spend(.upgradesPerKey, of: device.keyID) }
    if let denial = admission.overruled { context.wouldRefuse(denial, key: claim.assertion.claimedKey) }
    return (admission, identity)
  }

  /// Counts who was let in, and not only because the gate watches.
  func count(_ admission: Admission) {
    if admission.overruled == nil { metrics.admitted(by: admission.principal.method) }
  }

  private func decided(
    _ claim: AdmissionClaim, _ request: Request, from peer: Peer, to route: Route?
  ) async throws(Denial) -> (Admission, UpstreamIdentity) {
    do throws(Denial) {
      return try await enforced(claim, request, from: peer, to: route)
    } catch {
      let admission = try gate.overrule(error)
      return (admission, UpstreamIdentity(of: admission.principal, assertion: nil))
    }
  }

  private func enforced(
    _ claim: AdmissionClaim, _ request: Request, from peer: Peer, to route: Route?
  ) async throws(Denial) -> (Admission, UpstreamIdentity) {
    // Before anything is spent: without keys the gate cannot sign an identity.
    if gate.enforcement != .off, !identities.isReady {
      do throws(StoreError) { try await identities.prepare() } catch { throw .storeUnavailable(error) }
    }
    let admission = try await gate.admit(claim)
    do throws(StoreError) {
      let subject = IdentitySubject(admission, session: request.id, from: peer, for: route)
      let assertion = try subject.map { subject throws(StoreError) in
        try identities.assertion(of: subject, at: clock.now())
      }
      return (admission, UpstreamIdentity(of: admission.principal, assertion: assertion))
    } catch {
      throw .storeUnavailable(error)
    }
  }
}

extension RequestContext {
  /// Each value is a string: the guide's client decodes the answer as a dictionary of strings.
  fileprivate func ok(_ challenge: IssuedChallenge) -> Response {
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
