internal import ByteCoding
internal import ConfigurationEngine
internal import Cryptography
internal import FoundationEssentials
internal import Wire
internal import Transport

/// An OpenID provider at which people of a console sign in: authorization code with PKCE (RFC 7636), and an ID token that
/// is verified by the rules of `IDTokens`.
///
/// The keys of the provider are fetched for each sign-in, so that a withdrawn one is not used any more. Sign-ins are rare.
actor OpenIDProvider: ConsoleProvider {
  nonisolated let issuer: String
  private let settings: ConsoleSettings.Provider
  private let secret: String?
  private let exchange: ProviderExchange
  private let now: @Sendable () -> Date

  private struct Fetched {
    let result: Result<ProviderDocument, ConsoleFault>
    let at: ContinuousClock.Instant
    /// How long it is used. A failure is kept so briefly that many people at once ask only once.
    var lifetime: Duration { if case .success = result { .seconds(600) } else { .seconds(3) } }
  }
  private var fetched: Fetched?
  /// How the provider accepted the secret last.
  private var accepted: ProviderDocument.SecretMethod?

  init(
    _ settings: ConsoleSettings.Provider, secret: String?, _ exchange: ProviderExchange,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    issuer = settings.issuer
    (self.settings, self.secret, self.exchange, self.now) = (settings, secret, exchange, now)
  }

  /// The discovery document (OpenID Connect Discovery 1.0, section 4).
  private func document() async throws(ConsoleFault) -> ProviderDocument {
    if let fetched, ContinuousClock.now - fetched.at < fetched.lifetime { return try fetched.result.get() }
    let result: Result<ProviderDocument, ConsoleFault>
    do throws(ConsoleFault) { result = .success(try await fetchDocument()) } catch { result = .failure(error) }
    fetched = Fetched(result: result, at: .now)
    return try result.get()
  }

  private func fetchDocument() async throws(ConsoleFault) -> ProviderDocument {
    let base = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
    guard let place = ProviderPlace(base + "/.well-known/openid-configuration") else {
      throw Self.malformed("its issuer is no URL")
    }
    let answer = try await exchange.send("GET", place)
    guard answer.status == 200 else {
      throw ConsoleFault(502, "The provider answered its discovery document with status \(answer.status).")
    }
    return try ProviderDocument(json: answer.body, issuer: issuer)
  }

  private static func malformed(_ reason: String) -> ConsoleFault {
    ConsoleFault(502, "The provider's answer is malformed: \(reason).")
  }

  // MARK: A sign-in

  func address(of request: ConsoleSignInRequest) async throws(ConsoleFault) -> String {
    let document = try await document()
    let challenge = Base64URL.encode(SHA256.hash(Array(request.verifier.utf8)))
    let query = ConsoleForm.query([
      ("response_type", "code"), ("client_id", settings.clientID), ("redirect_uri", request.redirect),
      ("scope", settings.scopes.joined(separator: " ")), ("state", request.state), ("nonce", request.nonce),
      ("code_challenge", challenge), ("code_challenge_method", "S256"),
    ])
    let endpoint = document.authorization.text
    return endpoint + (endpoint.contains("?") ? "&" + query.dropFirst() : query)
  }

  func person(
    _ code: String, for request: ConsoleSignInRequest, from redirectIssuer: String?
  ) async throws(ConsoleFault) -> ConsolePerson {
    let document = try await document()
    // Before the code goes anywhere: a code of another provider is not for this one (RFC 9207).
    guard redirectIssuer.map({ issuer.hasSameBytes(as: $0) }) ?? !document.namesIssuerInRedirects else {
      throw ConsoleFault(403, "The answer comes from another provider.")
    }
    let tokens = try await redeem(code, for: request, at: document)
    let keys = try await keys(document)
    let token: IDToken
    do throws(IDTokenRejection) {
      token = try IDToken(tokens.idToken)
      let expected = IDTokenExpectation(
        issuer: issuer, clientID: settings.clientID, nonce: request.nonce, accessToken: tokens.accessToken, time: now())
      try await IDTokenVerifier(keys: keys, cryptography: OpenSSLCryptography()).verify(token, as: expected)
    } catch {
      throw ConsoleFault(403, "The ID token is refused: \(error).")
    }
    return try person(of: token)
  }

  private func person(of token: IDToken) throws(ConsoleFault) -> ConsolePerson {
    let groups: [String]
    do throws(IDTokenRejection) { groups = try token.texts(of: settings.groupsClaim) } catch {
      throw ConsoleFault(
        403, "The ID token is refused: \(error).",
        hint: "An administrator sets admin.console.oidc.groups_claim to a claim that is a list of texts.")
    }
    guard groups.count <= ConsolePerson.mostGroups else {
      throw ConsoleFault(
        403, "The ID token names \(groups.count) groups; at most \(ConsolePerson.mostGroups) are read.",
        hint: "An administrator lets the provider send only the groups of the console.")
    }
    let claims = token.claims
    guard
      let person = ConsolePerson(
        issuer: issuer, subject: claims.subject ?? "", name: claims.preferredUsername ?? claims.email ?? claims.name,
        groups: groups)
    else { throw ConsoleFault(403, "The ID token names no person.") }
    return person
  }

  /// The fault for an answer of the token endpoint, whose text is `error` (RFC 6749, section 5.2).
  private static func refusal(_ status: Int, _ error: String?) -> ConsoleFault {
    let reason = "status \(status)\(error.map { ": \($0)" } ?? "")"
    if status >= 500 { return ConsoleFault(502, "The provider failed with \(reason).", hint: "Try again later.") }
    if status == 401 || error == "invalid_client" || error == "unauthorized_client" {
      return ConsoleFault(
        502, "The provider does not accept this console: \(reason).",
        hint:
          "An administrator compares admin.console.oidc.client_id and client_secret_file with the provider's client.")
    }
    return ConsoleFault(403, "The provider refuses the sign-in with \(reason).", hint: "Sign in again.")
  }

  private func keys(_ document: ProviderDocument) async throws(ConsoleFault) -> ProviderKeys {
    let answer = try await exchange.send("GET", document.keys)
    guard answer.status == 200, let keys = ProviderKeys(document: answer.body) else {
      throw Self.malformed("its keys are no JWKS")
    }
    return keys
  }

  /// Exchanges the code for tokens (RFC 6749, section 4.1.3).
  ///
  /// A provider can offer two ways to send the secret and have registered this client for one of them. It says so by a
  /// refusal before it looks at the code, which the other way then redeems.
  private func redeem(
    _ code: String, for request: ConsoleSignInRequest, at document: ProviderDocument
  ) async throws(ConsoleFault) -> TokenAnswer {
    let methods = document.secretMethods
    var method = accepted.flatMap { methods.contains($0) ? $0 : nil } ?? methods[0]
    var answer = try await redeem(code, for: request, at: document, by: method)
    if secret != nil, Self.refusesClient(answer), let other = methods.first(where: { $0 != method }) {
      let second = try await redeem(code, for: request, at: document, by: other)
      // The refusal of the first way says more than a second one.
      if !Self.refusesClient(second) { (answer, method) = (second, other) }
    }
    guard answer.status == 200 else {
      throw Self.refusal(answer.status, TokenRefusal(answer.body).error)
    }
    accepted = method
    guard let tokens = TokenAnswer(answer.body) else { throw Self.malformed("it has no ID token") }
    return tokens
  }

  private static func refusesClient(_ answer: Response) -> Bool {
    answer.status == 401
      || answer.status != 200 && ["invalid_client", "unauthorized_client"].contains(TokenRefusal(answer.body).error)
  }

  private func redeem(
    _ code: String, for request: ConsoleSignInRequest, at document: ProviderDocument,
    by method: ProviderDocument.SecretMethod
  ) async throws(ConsoleFault) -> Response {
    var form: [(name: String, value: String?)] = [
      ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", request.redirect),
      ("code_verifier", request.verifier),
    ]
    var fields = [(name: "Content-Type", value: "application/x-www-form-urlencoded")]
    switch (secret, method) {
    case (nil, _): form.append(("client_id", settings.clientID))
    case (let secret?, .basic):
      // Both are encoded first (RFC 6749, section 2.3.1).
      let pair = ConsoleForm.encoded(settings.clientID) + ":" + ConsoleForm.encoded(secret)
      fields.append(("Authorization", "Basic " + Base64.encode(Array(pair.utf8))))
    case (let secret?, .post): form += [("client_id", settings.clientID), ("client_secret", secret)]
    }
    let body = Array(ConsoleForm.query(form).utf8.dropFirst())
    return try await exchange.send("POST", document.token, fields: fields, body: body)
  }
}

/// What a console uses of a discovery document.
struct ProviderDocument: Sendable {
  /// How a client with a secret authenticates.
  enum SecretMethod: Sendable { case basic, post }

  let authorization: ProviderPlace
  let token: ProviderPlace
  let keys: ProviderPlace
  let namesIssuerInRedirects: Bool
  /// At least one; the preferred one first.
  let secretMethods: [SecretMethod]

  /// - Throws: `ConsoleFault` for the document of another issuer, and for one without a usable endpoint or without S256.
  init(json: [UInt8], issuer: String) throws(ConsoleFault) {
    func fault(_ reason: String) -> ConsoleFault {
      ConsoleFault(502, "The provider's discovery document cannot be used: \(reason).")
    }
    guard let members = ProviderObject(json)?.members else { throw fault("it is not a JSON object") }
    guard let found = members.text("issuer").value, found.hasSameBytes(as: issuer) else {
      throw fault("it is of another issuer than \(issuer)")
    }
    func place(_ name: String) throws(ConsoleFault) -> ProviderPlace {
      guard let place = members.text(name).value.flatMap({ ProviderPlace($0) }) else {
        throw fault("\(name) is missing, or is not an https URL")
      }
      return place
    }
    authorization = try place("authorization_endpoint")
    token = try place("token_endpoint")
    keys = try place("jwks_uri")
    namesIssuerInRedirects = members.truth("authorization_response_iss_parameter_supported").value ?? false
    // A provider that does not say is taken to offer it.
    let challenges = members.texts("code_challenge_methods_supported").value
    guard challenges?.contains(where: { $0.hasSameBytes(as: "S256") }) ?? true else {
      throw fault("it does not offer PKCE with S256")
    }
    let methods = members.texts("token_endpoint_auth_methods_supported").value
    func offers(_ method: String) -> Bool { methods?.contains { $0.hasSameBytes(as: method) } ?? false }
    // Without a list it is `client_secret_basic` (OpenID Connect Discovery 1.0, section 3).
    let hasBasic = offers("client_secret_basic") || !offers("client_secret_post")
    secretMethods = (hasBasic ? [.basic] : []) + (offers("client_secret_post") ? [.post] : [])
  }
}

/// The members of a JSON object of a provider; `nil` if it is none, or is not bounded.
private struct ProviderObject: Decodable {
  let members: ProviderMembers

  init(from decoder: any Decoder) throws { members = try ProviderMembers(from: decoder) }

  init?(_ json: [UInt8]) {
    guard let object = try? ProviderJSON.decode(ProviderObject.self, from: json) else { return nil }
    self = object
  }
}

/// The tokens of a token endpoint (OpenID Connect Core 1.0, section 3.1.3.3).
private struct TokenAnswer {
  let idToken: String
  let accessToken: String?

  init?(_ json: [UInt8]) {
    guard let members = ProviderObject(json)?.members, let idToken = members.text("id_token", isSecret: true).value
    else {
      return nil
    }
    (self.idToken, accessToken) = (idToken, members.text("access_token", isSecret: true).value)
  }
}

/// The error of a token endpoint (RFC 6749, section 5.2).
private struct TokenRefusal {
  /// At most 64 bytes of ASCII.
  let error: String?

  init(_ json: [UInt8]) {
    let found = ProviderObject(json)?.members.text("error").value
    error = found.flatMap { text in
      text.utf8.count <= 64 && text.utf8.allSatisfy { (0x21...0x7E).contains($0) } ? text : nil
    }
  }
}
