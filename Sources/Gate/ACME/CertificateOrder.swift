internal import ByteCoding
internal import Cryptography
internal import FoundationEssentials
internal import Transport

/// Obtains one certificate from an ACME server: order, challenges, finalization, download (RFC 8555 section 7.4).
struct CertificateOrder {
  let client: ACMEClient
  let key: AccountKey
  /// The URL of the account.
  let account: String
  let settings: CertificateOrderSettings
  let clock: WallClock
  let sleep: @Sendable (Duration) async throws(CancellationError) -> Void
  /// Answers these challenges, and returns when the server can be asked to validate them.
  let publish: @Sendable (ChallengeAnswers) async throws(ACMEError) -> Void
  /// Stores the order until it is finished; `nil` removes it.
  let store: @Sendable (PendingOrder?) async throws(ACMEError) -> Void
  /// No request is sent after this instant, whatever the server answers.
  let deadline: Timestamp

  /// How long the server may take to validate the names, and again to issue the certificate.
  private static let patience = Duration.seconds(150)
  /// The time for a whole attempt. A hundred names take about three hundred requests.
  static let longestAttempt = Duration.seconds(600)

  /// The state of an order at the server, with the key of its certificate.
  private struct Begun {
    let place: String
    let key: ECPrivateKey
    var order: Order
  }

  /// - Parameters:
  ///   - pending: The order of an earlier attempt, to be continued.
  ///   - replaced: The certificate that the new one replaces, for servers that ask (RFC 9773 section 5).
  func run(
    continuing pending: PendingOrder?, replacing replaced: IssuedCertificate?
  ) async throws(ACMEError) -> IssuedCertificate {
    var begun: Begun
    if let pending, let earlier = try await state(of: pending) {
      begun = earlier
    } else {
      begun = try await begin(replacing: replaced)
    }
    if begun.order.status == .pending {
      try await validate(begun)
      begun.order = try await poll(begun.place, step: .authorization) { $0.status != .pending }
    }
    if begun.order.status == .ready {
      try await finalize(begun)
    }
    begun.order = try await poll(begun.place, step: .finalization) { $0.status == .valid || $0.status == .invalid }
    guard begun.order.status == .valid, let url = begun.order.certificate else {
      throw .refused(step: .order, begun.order.error ?? Problem())
    }
    return try await certificate(at: url, for: begun.key)
  }

  private var identifiers: [Identifier] { settings.names.map { Identifier($0) } }

  private func post(
    _ url: String, _ payload: String?, step: ACMEError.Step, accept: String = "application/json"
  ) async throws(ACMEError) -> ACMEClient.Answer {
    guard clock.now() < deadline else { throw .unfinished(step: step) }
    return try await client.post(url, payload, key: key, account: account, step: step, accept: accept)
  }

  // MARK: Beginning

  /// Returns `nil` if the order cannot become a certificate any more.
  private func state(of pending: PendingOrder) async throws(ACMEError) -> Begun? {
    guard pending.account == account, HTTPSPlace(pending.url) != nil,
      let key = try? ECPrivateKey(pkcs8PEM: pending.key)
    else { return nil }
    do throws(ACMEError) {
      let order: Order = try await post(pending.url, nil, step: .order).decoded()
      return order.status == .invalid ? nil : Begun(place: pending.url, key: key, order: order)
    } catch {
      // Any other refusal may be over at the next attempt, and a second order counts against the limits.
      if case .refused(_, let problem) = error, problem.saysUnknown { return nil }
      throw error
    }
  }

  private func begin(replacing replaced: IssuedCertificate?) async throws(ACMEError) -> Begun {
    let key: ECPrivateKey
    let keyPEM: String
    do throws(CryptographyError) {
      key = try ECPrivateKey(.p256)
      keyPEM = try key.pkcs8PEM
    } catch {
      throw .storage(reason: "no key for the certificate: \(error)")
    }
    let services = try await client.services()
    let answer = try await newOrder(services, replacing: services.renewalInfo == nil ? nil : replaced?.renewalID)
    guard let place = answer.location, HTTPSPlace(place) != nil else {
      throw .malformed(url: services.newOrder, reason: "no Location with a URL")
    }
    let order: Order = try answer.decoded()
    try await store(PendingOrder(url: place, account: account, key: keyPEM, begunAt: clock.now().description))
    return Begun(place: place, key: key, order: order)
  }

  private func newOrder(
    _ services: Directory, replacing renewalID: String?
  ) async throws(ACMEError) -> ACMEClient.Answer {
    let identifiers = identifiers.map {
      #"{"type":\#(JSONText.quote($0.type)),"value":\#(JSONText.quote($0.value))}"#
    }
    let profile = settings.profile.map { #","profile":\#(JSONText.quote($0))"# } ?? ""
    let content = #""identifiers":[\#(identifiers.joined(separator: ","))]\#(profile)"#
    do throws(ACMEError) {
      let replaces = renewalID.map { #","replaces":\#(JSONText.quote($0))"# } ?? ""
      return try await post(services.newOrder, "{\(content)\(replaces)}", step: .order)
    } catch {
      // The certificate was replaced by an order of another client, or the server does not know it: order as if it
      // were the first (RFC 9773 section 5).
      guard renewalID != nil, case .refused = error else { throw error }
      return try await post(services.newOrder, "{\(content)}", step: .order)
    }
  }

  private func finalize(_ begun: Begun) async throws(ACMEError) {
    let request = try request(for: begun.key)
    do throws(ACMEError) {
      _ = try await post(begun.order.finalize, #"{"csr":"\#(Base64URL.encode(request))"}"#, step: .finalization)
    } catch {
      // The answer to an earlier request was lost, and the transport sent it again: the order is being processed. Its
      // state decides.
      guard case .refused(_, let problem) = error, problem.code == "orderNotReady" else { throw error }
    }
  }

  private func request(for key: ECPrivateKey) throws(ACMEError) -> [UInt8] {
    do throws(CryptographyError) {
      return try CertificateRequestTemplate(
        subject: subject, extensions: [.subjectAlternativeNames(identifiers)]
      ).signed(with: key)
    } catch {
      throw .storage(reason: "the certificate's key cannot sign: \(error)")
    }
  }

  private var subject: DistinguishedName {
    guard settings.usesCommonName, let name = identifiers.first(where: { $0.address == nil }) else {
      return DistinguishedName()
    }
    return DistinguishedName(.commonName(name.value))
  }

  // MARK: Validation

  /// Proves control of every name that is not proven yet.
  private func validate(_ begun: Begun) async throws(ACMEError) {
    let kind = settings.challenge
    var answers = ChallengeAnswers()
    var open: [(url: String, challenge: Challenge)] = []
    var unseen = Set(identifiers)
    let places = begun.order.authorizations
    guard places.count <= unseen.count else {
      throw await foreign(begun, "\(places.count) authorizations for \(unseen.count) names")
    }
    for url in places {
      let authorization: Authorization = try await post(url, nil, step: .authorization).decoded()
      let name = authorization.name
      guard let identifier = authorization.ordered, unseen.remove(identifier) != nil else {
        throw await foreign(begun, "an authorization is for \(name), which was not ordered, or was validated already")
      }
      switch authorization.status {
      case .valid: continue
      case .pending: break
      case .invalid, .deactivated, .expired, .revoked:
        throw .notValidated(name: name, by: kind, authorization.challenge(kind)?.error ?? Problem())
      }
      guard let challenge = authorization.challenge(kind), let token = challenge.usableToken else {
        throw .noChallenge(name: name, kind, offered: authorization.challenges.map(\.type))
      }
      answers.add(kind, of: identifier, token: token, keyAuthorization: key.keyAuthorization(for: token))
      open.append((url, challenge))
    }
    guard !open.isEmpty else { return }
    try await publish(answers)
    for (_, challenge) in open { _ = try await post(challenge.url, "{}", step: .challenge) }
    for (url, _) in open { try await awaitValidation(at: url) }
  }

  /// The order has other names than ours. It cannot be continued, so it is forgotten.
  private func foreign(_ begun: Begun, _ reason: String) async -> ACMEError {
    try? await store(nil)
    return .malformed(url: begun.place, reason: reason)
  }

  private func awaitValidation(at url: String) async throws(ACMEError) {
    let authorization: Authorization = try await poll(url, step: .authorization) { $0.status != .pending }
    guard authorization.status == .valid else {
      let problem = authorization.challenges.lazy.compactMap(\.error).first
      throw .notValidated(name: authorization.name, by: settings.challenge, problem ?? Problem())
    }
  }

  /// Reads the resource at `url` until `isSettled`, as often as the server wants.
  private func poll<Resource: Decodable>(
    _ url: String, step: ACMEError.Step, _ isSettled: (Resource) -> Bool
  ) async throws(ACMEError) -> Resource {
    let deadline = min(deadline, clock.now().advanced(by: Self.patience))
    var pause = Duration.milliseconds(250)
    while true {
      let answer = try await post(url, nil, step: step)
      let resource: Resource = try answer.decoded()
      if isSettled(resource) { return resource }
      let now = clock.now()
      guard now < deadline else { throw .unfinished(step: step) }
      let wanted = RetryAfter.instant(in: answer.response, at: now).map { min($0.since(now), .seconds(30)) }
      do throws(CancellationError) {
        try await sleep(max(pause, wanted ?? .zero))
      } catch {
        throw .unfinished(step: step)
      }
      pause = min(pause * 2, .seconds(5))
    }
  }

  // MARK: Download

  private func certificate(at url: String, for key: ECPrivateKey) async throws(ACMEError) -> IssuedCertificate {
    let answer = try await post(url, nil, step: .certificate, accept: "application/pem-certificate-chain")
    let issued: IssuedCertificate
    do {
      issued = try IssuedCertificate(
        chainPEM: String(decoding: answer.response.body, as: UTF8.self), keyPEM: key.pkcs8PEM)
    } catch {
      throw .unusable(reason: "\(error)")
    }
    let size = issued.file.utf8.count
    guard size <= CertificateDocument.longest else {
      throw .unusable(reason: "its chain is too long: \(size) bytes with its key, of \(CertificateDocument.longest)")
    }
    guard issued.covers(settings.names) else {
      throw .unusable(reason: "it is for \(issued.names.joined(separator: ", ")) only")
    }
    return issued
  }
}
