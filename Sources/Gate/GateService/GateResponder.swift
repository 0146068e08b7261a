internal import AppAttest
public import AttestGate
public import ByteCoding
internal import Wire
internal import Locking
public import Logging
internal import Observability
public import Transport

/// Makes the gate's decision about each request of the engine.
public final class GateResponder: RequestResponder {
  private let gate: Gate
  private let challenges: Challenges
  private let identities: IdentityIssuer
  let tokens: TokenEndpoint?
  private let routes: RouteTable
  private let limits: GateSession.SharedLimits
  private let sessions: LiveSessions
  private let limiter: RequestLimiter
  private let trustedProxies: [AddressRange]
  private let forwardedClients: ForwardedClients?
  private let sanitizer: HeaderSanitizer
  private let logger: FieldLogger
  private let clock: WallClock
  private let tracer: Tracer?
  private let registration: RegistrationEndpoint
  let metrics: GateMetrics

  /// - Parameters:
  ///   - challenges: The instance with which the gate's rules and `registrar` check nonces.
  ///   - identities: Signs the identity assertions for upstreams.
  ///   - tokens: Answers `POST /attest/token`; `nil` for a gate without tokens, where nothing is at this path.
  ///   - limits: The limits of every session.
  ///   - sessions: The list of admitted sessions, from which they can be closed.
  ///   - limiter: Refuses requests above the rate limits, before any other check.
  ///   - trustedProxies: The addresses of proxies that may call the endpoints of the gate for other clients without an
  ///     address limit.
  ///   - forwardedClients: Finds the clients of requests that come through proxies which name them in
  ///     `X-Forwarded-For`. `nil`: the client of a request is the peer of its connection.
  ///   - stripHeaders: The names of further header fields to remove before a request reaches an upstream.
  ///   - keepHeaders: The names of header fields not to remove although other gateways set fields of such names.
  ///   - logger: Gets one line for each refusal, opened session and closed session. It must not block.
  ///   - metrics: Counts the decisions.
  ///   - tracer: Collects spans; `nil` for none.
  ///   - registrations: Parses and verifies registrations. Their senders are unknown, so it must have threads of its
  ///     own: on those of Swift's pool they would delay revocations, probes and operators' commands. `nil` for one
  ///     thread.
  ///   - announce: Hears of registrations.
  public init(
    gate: Gate, registrar: Registrar, challenges: Challenges, identities: IdentityIssuer,
    tokens: TokenEndpoint? = nil, routes: RouteTable,
    limits: SessionLimits = .init(), sessions: LiveSessions = LiveSessions(),
    limiter: RequestLimiter = RequestLimiter(), trustedProxies: [AddressRange] = [],
    forwardedClients: ForwardedClients? = nil, stripHeaders: Set<String> = [], keepHeaders: Set<String> = [],
    logger: Logger, metrics: GateMetrics = GateMetrics(), tracer: Tracer? = nil,
    registrations: (any TaskExecutor)? = nil, announce: EventAnnouncer = .silent, clock: WallClock = .system
  ) {
    registration = RegistrationEndpoint(
      registrar: registrar, limiter: limiter, trustedProxies: trustedProxies,
      executor: registrations ?? WorkerExecutor(threads: 1), announce: announce)
    self.gate = gate
    self.challenges = challenges
    self.identities = identities
    self.tokens = tokens
    self.routes = routes
    self.limits = GateSession.SharedLimits(limits)
    self.sessions = sessions
    self.limiter = limiter
    self.trustedProxies = trustedProxies
    self.forwardedClients = forwardedClients
    sanitizer = HeaderSanitizer(stripHeaders: stripHeaders, keepHeaders: keepHeaders)
    self.logger = FieldLogger(logger)
    self.metrics = metrics
    self.tracer = tracer
    self.clock = clock
  }

  /// Shows this responder's routes in the metrics and the status from now on.
  public func begin() { metrics.serve(routes.routes) }

  /// Decides about `request`. Challenges, and refusals that need no credentials, return without waiting. Other
  /// decisions wait for the store.
  public func respond(to request: Request, from connected: Peer) async -> Disposition {
    let peer = client(of: request.headers, from: connected)
    let closesRefused = !isTrustedProxy(connected)
    guard let trace = tracer?.trace(of: request, from: peer) else {
      return await decide(
        request, from: peer, closesRefused: closesRefused,
        in: RequestContext(request, from: peer, logger: logger, metrics: metrics))
    }
    let context = RequestContext(request, from: peer, logger: logger, metrics: metrics, trace: trace)
    let disposition = await RequestTrace.$current.withValue(trace) {
      await decide(request, from: peer, closesRefused: closesRefused, in: context)
    }
    trace.decided(disposition)
    return disposition
  }

  /// Decides without waiting about requests to routes if enforcement is off, and about requests that are refused
  /// whatever their credentials. Traced requests are decided by `respond`, which lends their trace to the steps.
  public func respondAtOnce(to request: Request, from connected: Peer) -> Disposition? {
    guard tracer == nil else { return nil }
    let peer = client(of: request.headers, from: connected)
    let endpoint = Endpoint(path: request.path, routes: routes)
    if let refusal = Self.refusal(of: request, at: endpoint) {
      return .respond(RequestContext(request, from: peer, logger: logger, metrics: metrics).refuse(refusal))
    }
    guard case .route(let route) = endpoint, let admission = gate.admitAtOnce() else { return nil }
    let revocationEpoch = sessions.revocationEpoch()
    let context = RequestContext(request, from: peer, logger: logger, metrics: metrics)
    let asserted = AssertedRequest(request, carriers: route.carriers)
    do throws(RequestRefusal) {
      try checkLimits(of: peer)
      let identity = UpstreamIdentity(of: admission.principal, assertion: nil)
      return try pass(asserted, from: peer, to: route, admission, identity, since: revocationEpoch, in: context)
    } catch {
      return refuseAdmission(error, to: asserted, closes: !isTrustedProxy(connected), in: context)
    }
  }

  /// - Parameter closesRefused: Whether a connection on which a proof failed may be closed. One of a trusted proxy is not:
  ///   others use it too.
  private func decide(
    _ request: Request, from peer: Peer, closesRefused: Bool, in context: RequestContext
  ) async -> Disposition {
    let endpoint = Endpoint(path: request.path, routes: routes)
    context.trace?.matched(endpoint.pattern)
    if let refusal = Self.refusal(of: request, at: endpoint) { return .respond(context.refuse(refusal)) }
    switch endpoint {
    case .challenge: return .respond(await challenge(from: peer, in: context))
    case .registration:
      return .respond(
        await registration.answer(request, from: peer, closesRefused: closesRefused, in: context))
    case .keySet: return .respond(await keySet(in: context))
    case .verification:
      return .respond(await verify(request, from: peer, closesRefused: closesRefused, in: context))
    case .token:
      guard let tokens else { return .respond(context.refuse(.notFound)) }
      return .respond(await tokens.answer(request, from: peer, closesRefused: closesRefused, in: context))
    case .route(let route):
      return await admit(request, from: peer, to: route, closesRefused: closesRefused, in: context)
    case .reserved, .nowhere: return .respond(context.refuse(.notFound))
    }
  }

  /// Returns the reason to refuse `request` whatever its credentials; `nil` if there is none.
  private static func refusal(of request: Request, at endpoint: Endpoint) -> RequestRefusal? {
    switch endpoint {
    case .challenge: return request.method == "GET" ? nil : .methodNotAllowed(allowed: "GET")
    case .registration: return request.method == "POST" ? nil : .methodNotAllowed(allowed: "POST")
    case .keySet:
      return ["GET", "HEAD"].contains(request.method) ? nil : .methodNotAllowed(allowed: "GET, HEAD")
    case .verification, .token: return nil
    case .route(let route):
      if let limit = route.maxHead, request.target.utf8.count + request.headers.byteCount > limit {
        return .malformedRequest(.headTooLarge(rule: "at most \(limit) bytes at this path"))
      }
      guard request.upgrade != nil || route.forwarding == .all else { return .upgradeRequired }
      // TRACE asks for an echo of the request, which would return the gate's identity fields to the client. CONNECT
      // asks for a tunnel, in which the next request on the connection would be lost. Methods are case-sensitive (RFC
      // 9110 section 9.1), and not every server knows it.
      if ["TRACE", "CONNECT"].contains(request.method.uppercased()) {
        return .methodNotAllowed(allowed: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
      }
      return CrossSiteRule.verdict(on: request.headers, route.origins) == .foreign ? .foreignOrigin : nil
    case .reserved, .nowhere: return .notFound
    }
  }

  /// Streams bodies to upstreams, which limit them themselves.
  public func streamsBody(of request: Request) -> Bool {
    guard case .route(let route) = Endpoint(path: request.path, routes: routes) else { return false }
    return route.forwarding == .all
  }

  public func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    let peer = headers.map { client(of: $0, from: peer) } ?? peer
    let wantsJSON = headers.map { Accept.namesJSON(in: $0) } ?? false
    return RequestContext(id: id, from: peer, wantsJSON: wantsJSON, logger: logger, metrics: metrics)
      .refuse(.malformedRequest(fault))
  }

  /// Proxies that ask `/attest/verify` treat other refusals than 401 and 403 as a failure of the gate, so that a fault of
  /// the client's request gets 401 there. Bytes that are not a request at all, or whose end is uncertain, remain 400.
  public func response(
    to fault: RequestError, at path: String?, of headers: HeaderFields?, id: String, from peer: Peer
  ) -> Response {
    let refusal = response(to: fault, of: headers, id: id, from: peer)
    guard let path else { return refusal }
    guard ForwardAuth.names(path) else { return formed(refusal, of: .malformedRequest(fault), at: path, id: id) }
    return switch fault {
    case .malformedHead, .malformedBody: refusal
    case .unacceptableField, .headTooLarge, .bodyTooLarge, .malformedUpgrade, .unsupportedWebSocketVersion, .tooSlow:
      ForwardAuth.denied(refusal)
    }
  }

  public func responseWithoutDecision(on request: Request, from peer: Peer) -> Response {
    let peer = client(of: request.headers, from: peer)
    let refusal = RequestContext(request, from: peer, logger: logger, metrics: metrics).refuse(.undecided)
    if ForwardAuth.names(request.path) { return ForwardAuth.denied(refusal) }
    return formed(refusal, of: .undecided, at: request.path, id: request.id)
  }

  /// The path that Envoy appends is that of the request it asks about.
  public var unreadPaths: StaticString? { "/attest/verify/" }

  /// The credentials of a request, and the names under which upstreams learn about a client.
  public var ownFields: FieldNameSet { Self.readFields }
  private static let readFields = FieldNameSet(names: [], prefixes: ["X-App-", "X-Attest-"])

  /// The client of a request with these fields: `peer`, or the one that a trusted proxy names.
  private func client(of headers: HeaderFields, from peer: Peer) -> Peer {
    forwardedClients.map { $0.client(of: headers, from: peer) } ?? peer
  }

  /// Issues a challenge. Waits for the store only if no challenge keys are loaded yet.
  private func challenge(from peer: Peer, in context: RequestContext) async -> Response {
    do throws(RequestRefusal) { try spend(.challengesPerAddress, of: peer) } catch {
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

  /// Waits for the store only if no identity signing keys are loaded yet.
  private func keySet(in context: RequestContext) async -> Response {
    do throws(StoreError) {
      try await identities.prepare()
    } catch {
      return context.refuse(.denied(.storeUnavailable(error)))
    }
    return context.ok(keySet: identities.keySet(at: clock.now()))
  }

  private func admit(
    _ request: Request, from peer: Peer, to route: Route, closesRefused: Bool, in context: RequestContext
  ) async -> Disposition {
    let asserted = AssertedRequest(request, carriers: route.carriers)
    let claim = AdmissionClaim(asserted.assertion, certificate: peer.verifiedCertificate)
    // Must precede the query of the registry: a revocation after its answer is then detected.
    let revocationEpoch = sessions.revocationEpoch()
    do throws(RequestRefusal) {
      try checkLimits(of: peer)
      let (admission, identity) = try await admitted(
        claim, asserted.request, from: peer, to: route, in: context)
      return try pass(asserted, from: peer, to: route, admission, identity, since: revocationEpoch, in: context)
    } catch {
      return refuseAdmission(error, to: asserted, closes: closesRefused, in: context)
    }
  }

  /// Counts a request to a route, before a nonce is spent.
  ///
  /// - Throws: `.rateLimited`, or `.tooManySessions` if there are as many as allowed; `pass` enforces that limit.
  private func checkLimits(of peer: Peer) throws(RequestRefusal) {
    try limiter.spend(.upgradesPerAddress, of: peer)
    let limit = limiter.sessions
    guard sessions.count < limit else { throw .tooManySessions(limit: limit) }
  }

  /// Adds the session of an admitted client and returns the plan to pass `request` to the upstream.
  ///
  /// - Throws: `.tooManySessions` or `.tooManySessionsOfKey` if there are as many as allowed; `.foreignOrigin` if the
  ///   origin is accepted only with an assertion, and something else admitted the client.
  private func pass(
    _ asserted: AssertedRequest, from peer: Peer, to route: Route, _ admission: Admission,
    _ identity: UpstreamIdentity, since revocationEpoch: LiveSessions.RevocationEpoch, in context: RequestContext
  ) throws(RequestRefusal) -> Disposition {
    let request = asserted.request
    if route.origins.anyWithAssertion, !admission.principal.isDevice,
      CrossSiteRule.verdict(on: request.headers, route.origins) == .welcomeWithAssertion
    {
      throw .foreignOrigin
    }
    let record = SessionRecord(id: context.id, admission: admission, address: peer.address, route: route.path)
    let session = try sessions.add(
      record, since: revocationEpoch, atMost: limiter.sessions, ofKey: limiter.sessionsOfKey,
      isSocket: request.upgrade != nil)
    count(admission, in: context)
    let head = UpstreamHead(
      request: request, route: route, peer: peer, admission: admission, identity: identity, sanitizer: sanitizer,
      trace: context.trace)
    let target = metrics.upstreamHealth.target(on: route) {
      Array(admission.principal.keyHash?.text.utf8 ?? peer.address.host.utf8)
    }
    context.trace?.admitted(to: target.server.text)
    context.dropped { sanitizer.droppedNames(of: request.headers) }
    guard request.upgrade != nil else {
      return .forward(
        ForwardedRequest(admission, to: route, at: target, context: context, session: session), head: head.lines)
    }
    return .relay(
      GateSession(
        session, to: route, at: target, context: context, limits: limits, ownSubprotocols: asserted.ownSubprotocols),
      upgradeHead: head.openingHandshake)
  }

  private func refuseAdmission(
    _ refusal: RequestRefusal, to asserted: AssertedRequest, closes: Bool, in context: RequestContext
  ) -> Disposition {
    metrics.refusedAdmission(refusal.code.rawValue)
    return .respond(
      context.refuse(
        refusal, key: asserted.assertion.claimedKey, closes: closes && refusal.report.followsVerification))
  }

  /// Counts a request to an endpoint of the gate against a limit of its address, except for a trusted proxy.
  func spend(_ limit: RateLimit, of peer: Peer) throws(RequestRefusal) {
    try limiter.spend(limit, of: peer, except: trustedProxies)
  }

  /// Returns `true` if `peer` is one of the operator's proxies. After a PROXY header, `peer` is the client that the
  /// header names.
  func isTrustedProxy(_ peer: Peer) -> Bool { trustedProxies.contains { $0.contains(peer.address) } }

  /// Admits the sender of `claim` and makes its identity fields. A client that only monitor mode admits is logged and
  /// counted as refused, and its identity is anonymous.
  ///
  /// - Parameter route: The route whose upstream gets the identity; `nil` for an answer of `/attest/verify`.
  /// - Throws: `.denied` if a rule refuses the client; `.rateLimited` if its key exceeds its limit.
  func admitted(
    _ claim: AdmissionClaim, _ request: Request, from peer: Peer, to route: Route?, in context: RequestContext
  ) async throws(RequestRefusal) -> (Admission, UpstreamIdentity) {
    let (admission, identity): (Admission, UpstreamIdentity)
    do throws(Denial) {
      (admission, identity) = try await decided(claim, request, from: peer, to: route)
    } catch {
      throw .denied(error)
    }
    // Counts only a proved key. Otherwise a client could use up another client's limit by claiming its key.
    if case .device(let device) = admission.principal { try limiter.spend(.upgradesPerKey, of: device.keyID) }
    if let denial = admission.overruled { context.wouldRefuse(denial, key: claim.assertion.claimedKey) }
    return (admission, identity)
  }

  /// Counts and keeps an admission, unless only monitor mode allowed it.
  func count(_ admission: Admission, in context: RequestContext) {
    guard admission.overruled == nil else { return }
    metrics.admitted(by: admission.principal.method)
    context.keep(admission)
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
    // Precedes the admission, which spends the nonce: without keys no identity can be signed.
    if gate.enforcement != .off, !identities.isReady {
      do throws(StoreError) { try await identities.prepare() } catch { throw .storeUnavailable(error) }
    }
    let admission = try await gate.admit(claim)
    do throws(StoreError) {
      let subject = IdentitySubject(admission, of: request, from: peer, for: route)
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
  /// Every value is a string, since the iOS guide's client decodes the answer as a dictionary of strings.
  fileprivate func ok(_ challenge: IssuedChallenge) -> Response {
    ok(
      json: JSONText.object([
        "nonce": challenge.nonce.text, "expires": String(challenge.expiresAt.milliseconds),
      ]))
  }
}
