internal import ByteCoding
public import Foundation
public import HTTPExchange

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

  /// Exchanges a grant for tokens. The request is sent once, and once more for each thing that the provider first demands,
  /// which it does before it looks at the grant.
  ///
  /// - Parameter key: The key that the tokens are to be bound to.
  func redeem(_ grant: TokenRequest.Grant, boundTo key: DPoPKey? = nil) async throws(OIDCError) -> TokenResponse {
    var fields = [("grant_type", grant.description)] + grant.fields
    // The other grants begin with a request of their own, which has the parameters.
    let own = Set(fields.map(\.0))
    fields += provider.variations.parametersOfTokenRequest(thatBegins: grant.beginsSignIn).filter { name, _ in
      !own.contains(name)
    }
    let answer = try await post(fields, to: provider.tokenEndpoint, key: key)
    // GitHub, for one, names its errors with status 200.
    guard answer.status == 200, answer.refusal == nil else {
      throw answer.error(of: "the token endpoint", withholding: grant.secrets)
    }
    return try TokenResponse(json: answer.body)
  }

  /// Sends a form with the client's authentication to an endpoint of the provider, and again with what it demands.
  ///
  /// - Parameter key: The key of the DPoP proof, if there is to be one.
  func post(
    _ fields: [(String, String)], to url: URL, called name: String = "the token endpoint", key: DPoPKey? = nil
  ) async throws(OIDCError) -> HTTPResponse {
    var demands = try await firstDemands()
    while true {
      let client = try await attestedClient(isRenewed: demands.needsRenewal, boundTo: key)
      let key = usesCombinedProof ? client?.key : key
      let answer = try await send(fields, to: url, called: name, client, key, demands)
      guard demands.note(answer, hasDPoP: key != nil, isAttested: client != nil) else { return answer }
    }
  }

  private func send(
    _ fields: [(String, String)], to url: URL, called name: String, _ client: AttestedClient?, _ key: DPoPKey?,
    _ demands: ProviderDemands
  ) async throws(OIDCError) -> HTTPResponse {
    var headers = DocumentExchange.fields + [HTTPField("Content-Type", "application/x-www-form-urlencoded")]
    let authentication = try authenticate(client, challenge: demands.challenge)
    headers += authentication.headers
    if let key {
      let proof = try key.proof(
        method: "POST", url: url, nonce: demands.nonce, jti: dependencies.randomText(), now: dependencies.now())
      headers.append(HTTPField("DPoP", proof))
    }
    let body = FormEncoding.encode(fields + authentication.fields)
    return try await exchange.send(
      HTTPRequest(method: .post, url: url, headers: headers, body: Array(body.utf8)), called: name)
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
      throw .attestation("the tokens are bound to another key, so that a new sign-in is needed")
    }
    return client
  }

  /// The challenge of a provider that has an endpoint for it; otherwise nothing, until it demands one.
  private func firstDemands() async throws(OIDCError) -> ProviderDemands {
    guard attestationProof != nil, let url = provider.endpoints.challenge else { return ProviderDemands() }
    let name = "the challenge endpoint"
    let answer = try await exchange.send(
      HTTPRequest(method: .post, url: url, headers: DocumentExchange.fields), called: name)
    guard answer.status == 200 else { throw answer.error(of: name) }
    return ProviderDemands(
      challenge: try Challenge(json: answer.body, of: name).text, nonce: answer.value(of: "DPoP-Nonce"))
  }

  private struct Challenge {
    let text: String

    init(json: [UInt8], of name: String) throws(OIDCError) {
      struct Document: Decodable {
        let challenge: Member<String>

        init(from decoder: any Decoder) throws {
          challenge = try ProviderMembers(from: decoder).text("attestation_challenge", isSecret: true)
        }
      }
      guard let document = try? ProviderJSON.decode(Document.self, unambiguously: json) else {
        throw .malformed("\(name) answers with no JSON object")
      }
      text = try document.challenge.required(in: name)
    }
  }

  // MARK: Authentication

  /// What proves which client this is.
  private func authenticate(
    _ client: AttestedClient?, challenge: String?
  ) throws(OIDCError) -> (headers: [HTTPField], fields: [(String, String)]) {
    let identifier = [("client_id", provider.clientID)]
    switch provider.authentication {
    case .none: return ([], identifier)
    case .basic:
      // Both parts are encoded as in a form before they are joined (RFC 6749, section 2.3.1).
      let pair = [provider.clientID, provider.clientSecret ?? ""].map(FormEncoding.encode).joined(separator: ":")
      return ([HTTPField("Authorization", "Basic " + Base64.encode(Array(pair.utf8)))], [])
    case .post: return ([], identifier + [("client_secret", provider.clientSecret ?? "")])
    case .privateKeyJWT(let pem, let keyID):
      let assertion = ClientAssertion(
        clientID: provider.clientID, audience: provider.audienceOfAssertions,
        jti: dependencies.randomText(), now: dependencies.now())
      return (
        [],
        identifier + [
          ("client_assertion_type", ClientAssertion.type),
          (
            "client_assertion",
            try assertion.token(pem: pem, keyID: keyID, algorithm: provider.variations.assertionAlgorithm)
          ),
        ]
      )
    // The connection has the rest (RFC 8705, section 2).
    case .tlsClientAuth: return ([], identifier)
    case .attestation(let proof):
      let headers = try client?.fields(
        proof: proof, audience: provider.audienceOfAssertions, challenge: challenge, jti: dependencies.randomText(),
        now: dependencies.now())
      return (headers ?? [], identifier)
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

extension HTTPResponse {
  /// The error in the body (RFC 6749, section 5.2); `nil` if there is none.
  var refusal: ProviderRefusal? {
    struct Document: Decodable {
      let error: Member<String>
      let explanation: Member<String>

      init(from decoder: any Decoder) throws {
        let members = try ProviderMembers(from: decoder)
        error = members.text("error")
        explanation = members.text("error_description")
      }
    }
    guard let document = try? ProviderJSON.decode(Document.self, from: body), let error = document.error.value
    else { return nil }
    return ProviderRefusal(received: error, explanation: document.explanation.value, retryAfter: retryAfter)
  }

  /// The error that this answer is, without a text that repeats one of `secrets`. With a status of the server's own
  /// failure, or of its rate limit, an error in the body says nothing more. Only a device grant is slowed down by one.
  func error(of name: String, withholding secrets: [String] = []) -> OIDCError {
    if status == 200 || (400..<500).contains(status), let refusal, status != 429 || refusal.error == "slow_down" {
      return .refused(refusal.withholding(secrets))
    }
    return .status(status, of: name, retryAfter: retryAfter)
  }
}
