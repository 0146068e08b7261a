internal import ByteCoding
public import Foundation
public import Wire

/// What a client of a provider needs from outside.
public struct SignInDependencies: Sendable {
  /// How requests are sent. It verifies certificates and follows no redirects.
  public let transport: any HTTPTransport
  /// The clock.
  public let now: @Sendable () -> Date
  /// Random bytes, as many as are asked for.
  public let random: @Sendable (Int) -> [UInt8]
  /// Waits.
  public let sleep: @Sendable (Duration) async -> Void
  /// What attests this client; `nil` for a client that authenticates in another way.
  public let attester: (any ClientAttester)?

  /// Creates a value; by default with the system's clock and random numbers.
  public init(
    transport: any HTTPTransport, now: @escaping @Sendable () -> Date = { Date() },
    random: @escaping @Sendable (Int) -> [UInt8] = SignInDependencies.systemRandom,
    sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) },
    attester: (any ClientAttester)? = nil
  ) {
    self.transport = transport
    self.now = now
    self.random = random
    self.sleep = sleep
    self.attester = attester
  }

  /// The system's random numbers.
  public static let systemRandom: @Sendable (Int) -> [UInt8] = { count in
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }

  /// 43 characters from 32 random bytes: a state, a nonce, an identifier.
  func randomText() -> String { Base64URL.encode(random(32)) }
}

/// The token endpoint of a provider (RFC 6749, section 3.2).
struct TokenEndpoint: Sendable {
  /// The provider, with its endpoints known.
  let provider: IdentityProvider
  let dependencies: SignInDependencies

  private var exchange: DocumentExchange { DocumentExchange(transport: dependencies.transport) }

  /// What a request needs that is fetched before it is sent. An error at this point is not one of the grant, which was
  /// not sent.
  struct Preparation: Sendable {
    /// The attestation of this client; `nil` if it authenticates in another way.
    fileprivate var client: AttestedClient?
    fileprivate var demands: ProviderDemands
  }

  /// Fetches the attestation, and the challenge of a provider that has an endpoint for it.
  ///
  /// - Parameter key: The key that the tokens are bound to.
  /// - Throws: `.attestation`, and the errors of the challenge endpoint.
  func prepare(boundTo key: DPoPKey?) async throws(OIDCError) -> Preparation {
    // A program may take a minute to print the attestation, and a challenge does not last that long.
    let client = try await attestedClient(isRenewed: false, boundTo: key)
    return Preparation(client: client, demands: try await firstDemands())
  }

  /// Exchanges a grant for tokens. The request is sent once, and once more for each thing that the provider first demands,
  /// which it does before it looks at the grant.
  ///
  /// - Parameters:
  ///   - key: The key that the tokens are to be bound to.
  ///   - preparation: What `prepare` returned; `nil` to prepare the request now.
  func redeem(
    _ grant: TokenRequest.Grant, boundTo key: DPoPKey? = nil, prepared preparation: Preparation? = nil
  ) async throws(OIDCError) -> TokenResponse {
    var fields = [("grant_type", grant.description)] + grant.fields
    // The other grants begin with a request of their own, which has the parameters.
    let own = Set(fields.map(\.0))
    fields += provider.variations.parametersOfTokenRequest(thatBegins: grant.beginsSignIn).filter { name, _ in
      !own.contains(name)
    }
    let answer = try await post(
      fields, to: provider.tokenEndpoint, key: key, prepared: preparation, withholding: grant.secrets)
    // GitHub, for one, names its errors with status 200.
    guard answer.response.status == 200, answer.response.refusal == nil else {
      throw answer.error(of: "the token endpoint")
    }
    return try TokenResponse(json: answer.response.body)
  }

  /// Sends a form with the client's authentication to an endpoint of the provider, and again with what it demands.
  ///
  /// - Parameters:
  ///   - key: The key of the DPoP proof, if there is to be one.
  ///   - secrets: The secrets among the fields, which no message may repeat.
  func post(
    _ fields: [(String, String)], to url: URL, called name: String = "the token endpoint", key: DPoPKey? = nil,
    prepared preparation: Preparation? = nil, withholding secrets: [String]
  ) async throws(OIDCError) -> EndpointAnswer {
    var state: Preparation
    if let preparation { state = preparation } else { state = try await prepare(boundTo: key) }
    while true {
      let proofKey = usesCombinedProof ? state.client?.key : key
      var answer = try await send(fields, to: url, called: name, state, proofKey)
      answer.secrets += secrets
      let isRepeated = state.demands.note(answer.response, hasDPoP: proofKey != nil, isAttested: state.client != nil)
      guard isRepeated else {
        answer.unmetDemand = state.demands.unmet
        return answer
      }
      if state.demands.takeRenewal() { state.client = try await attestedClient(isRenewed: true, boundTo: key) }
    }
  }

  private func send(
    _ fields: [(String, String)], to url: URL, called name: String, _ state: Preparation, _ key: DPoPKey?
  ) async throws(OIDCError) -> EndpointAnswer {
    var headers = DocumentExchange.fields + [HTTPField("Content-Type", "application/x-www-form-urlencoded")]
    let authentication = try authenticate(state.client, challenge: state.demands.challenge)
    headers += authentication.headers
    var secrets = authentication.secrets + [state.demands.nonce, state.demands.challenge].compactMap(\.self)
    if let key {
      let proof = try key.proof(
        method: "POST", url: url, nonce: state.demands.nonce, jti: dependencies.randomText(), now: dependencies.now())
      headers.append(HTTPField("DPoP", proof))
      secrets += EndpointAnswer.parts(of: proof)
    }
    let body = FormEncoding.encode(fields + authentication.fields)
    let response = try await exchange.send(
      HTTPRequest(method: .post, url: url, headers: headers, body: Array(body.utf8)), called: name)
    return EndpointAnswer(response: response, secrets: secrets)
  }

  // MARK: Client attestations

  private var attestationProof: AttestationProof? {
    if case .attestation(let proof) = provider.authentication { proof } else { nil }
  }

  /// Whether the DPoP proof is by the key of the attestation.
  private var usesCombinedProof: Bool { attestationProof == .dpop }

  /// The attestation of this client; `nil` if it authenticates in another way.
  private func attestedClient(isRenewed: Bool, boundTo key: DPoPKey?) async throws(OIDCError) -> AttestedClient? {
    guard attestationProof != nil else { return nil }
    guard let attester = dependencies.attester else { throw .attestation("this client has no attester") }
    let client = try await attester.attestedClient(isRenewed: isRenewed)
    guard !usesCombinedProof || key == nil || key == client.key else {
      throw .attestedKeyChanged
    }
    return client
  }

  /// The challenge of a provider that has an endpoint for it; otherwise nothing, until it demands one.
  private func firstDemands() async throws(OIDCError) -> ProviderDemands {
    guard attestationProof != nil, let url = provider.endpoints.challenge else { return ProviderDemands() }
    let name = ProviderDemands.challengeEndpoint
    let answer = try await exchange.send(
      HTTPRequest(method: .post, url: url, headers: DocumentExchange.fields), called: name)
    guard answer.status == 200 else { throw answer.error(of: name, withholding: []) }
    return try ProviderDemands(challenges: answer)
  }

  // MARK: Authentication

  /// What proves which client this is.
  private struct Authentication {
    var headers: [HTTPField] = []
    var fields: [(String, String)] = []
    /// What no message may repeat.
    var secrets: [String] = []
  }

  private func authenticate(
    _ client: AttestedClient?, challenge: String?
  ) throws(OIDCError) -> Authentication {
    let identifier = [("client_id", provider.clientID)]
    switch provider.authentication {
    case .none: return Authentication(fields: identifier)
    case .basic:
      let secret = provider.clientSecret ?? ""
      // Both parts are encoded as in a form before they are joined (RFC 6749, section 2.3.1).
      let pair = [provider.clientID, secret].map(FormEncoding.encode).joined(separator: ":")
      let encoded = Base64.encode(Array(pair.utf8))
      return Authentication(
        headers: [HTTPField("Authorization", "Basic " + encoded)],
        secrets: [secret, FormEncoding.encode(secret), encoded])
    case .post:
      let secret = provider.clientSecret ?? ""
      return Authentication(
        fields: identifier + [("client_secret", secret)], secrets: [secret, FormEncoding.encode(secret)])
    case .privateKeyJWT(let pem, let keyID):
      let assertion = ClientAssertion(
        clientID: provider.clientID, audience: provider.audienceOfAssertions,
        jti: dependencies.randomText(), now: dependencies.now())
      let token = try assertion.token(pem: pem, keyID: keyID, algorithm: provider.variations.assertionAlgorithm)
      return Authentication(
        fields: identifier + [("client_assertion_type", ClientAssertion.type), ("client_assertion", token)],
        secrets: EndpointAnswer.parts(of: token))
    // The connection has the rest (RFC 8705, section 2).
    case .tlsClientAuth: return Authentication(fields: identifier)
    case .attestation(let proof):
      guard let client else { return Authentication(fields: identifier) }
      let headers = try client.fields(
        proof: proof, audience: provider.issuer, challenge: challenge, jti: dependencies.randomText(),
        now: dependencies.now())
      return Authentication(
        headers: headers, fields: identifier, secrets: headers.flatMap { EndpointAnswer.parts(of: $0.value) })
    }
  }
}

extension TokenRequest.Grant {
  /// Whether no other request comes before it.
  fileprivate var beginsSignIn: Bool {
    switch self {
    case .password, .clientCredentials: true
    case .authorizationCode, .refreshToken, .deviceCode, .tokenExchange: false
    }
  }

  /// What no message may repeat.
  fileprivate var secrets: [String] {
    switch self {
    case .authorizationCode(let code, _, let verifier): [code, verifier]
    case .refreshToken(let token): [token]
    case .password(let credentials, _): [credentials.password]
    case .deviceCode(let code): [code]
    case .clientCredentials: []
    case .tokenExchange(let exchange): [exchange.subject.text, exchange.actor?.text ?? ""]
    }
  }

  /// The fields of the form beyond `grant_type`.
  fileprivate var fields: [(String, String)] {
    switch self {
    case .authorizationCode(let code, let redirectURI, let verifier):
      [("code", code), ("redirect_uri", redirectURI), ("code_verifier", verifier)]
    case .refreshToken(let token): [("refresh_token", token)]
    case .password(let credentials, let scopes):
      [("username", credentials.username), ("password", credentials.password)] + Self.field(scopes)
    case .clientCredentials(let scopes): Self.field(scopes)
    case .deviceCode(let code): [("device_code", code)]
    case .tokenExchange(let exchange): exchange.fields
    }
  }

  private static func field(_ scopes: [String]) -> [(String, String)] {
    scopes.isEmpty ? [] : [("scope", scopes.joined(separator: " "))]
  }
}
