internal import ByteCoding
internal import Foundation
internal import Wire

extension ProviderClient {
  /// The claims of the userinfo endpoint (OpenID Connect Core 1.0, section 5.3).
  ///
  /// A signed answer is verified with the provider's keys. If an ID token names the person of the account, the claims
  /// must name the same one: an access token that was put in another's place would bring other claims.
  ///
  /// - Throws: `.notOffered`, `.status` (401 where the access token is not accepted), `.userinfo`, `.malformed`.
  public func userClaims(of account: StoredAccount) async throws(OIDCError) -> UserClaims {
    let name = "the userinfo endpoint"
    let provider = try await resolved()
    guard let endpoint = provider.endpoints.userinfo else {
      throw try await metadata()?.fault(of: "userinfo_endpoint") ?? .notOffered("claims about the user")
    }
    var answer = try await ask(endpoint, as: account, nonce: nil, called: name)
    if answer.status == 401, account.isBound, let nonce = answer.value(of: ProviderDemands.nonceField),
      !nonce.isEmpty
    {
      guard ProviderDemands.isUsable(nonce) else {
        throw .malformed("\(name): \(ProviderDemands.nonceField) is \(ProviderDemands.tooLong)")
      }
      answer = try await ask(endpoint, as: account, nonce: nonce, called: name)
    }
    guard answer.status == 200 else { throw .status(answer.status, of: name, retryAfter: answer.retryAfter) }
    let kind = (answer.value(of: "Content-Type") ?? "").prefix { $0 != ";" && $0 != " " }.lowercased()
    let claims: UserClaims
    if kind == "application/jwt" {
      claims = try await verifiedClaims(String(decoding: answer.body, as: UTF8.self))
    } else {
      claims = try UserClaims(json: answer.body)
    }
    if let user = account.user, !user.id.isIdentical(to: claims.subject) { throw .userinfo(.subject) }
    return claims
  }

  private func ask(
    _ endpoint: URL, as account: StoredAccount, nonce: String?, called name: String
  ) async throws(OIDCError) -> HTTPResponse {
    var headers = DocumentExchange.fields.map { field in
      field.name == "Accept" ? HTTPField("Accept", "application/json, application/jwt") : field
    }
    let token = account.tokens.accessToken
    if account.isBound, let key = account.dpopKey {
      let proof = try key.proof(
        method: "GET", url: endpoint, accessToken: token, nonce: nonce, jti: dependencies.randomText(),
        now: dependencies.now())
      headers += [HTTPField("Authorization", "DPoP \(token)"), HTTPField("DPoP", proof)]
    } else {
      headers.append(HTTPField("Authorization", "Bearer \(token)"))
    }
    return try await DocumentExchange(transport: dependencies.transport).send(
      HTTPRequest(url: endpoint, headers: headers), called: name)
  }

  /// The claims of a signed answer (section 5.3.2). `iss`, `aud`, `exp` and `nbf` are judged where they are.
  private func verifiedClaims(_ text: String) async throws(OIDCError) -> UserClaims {
    guard let directory, let issuer = provider.issuer else { throw .notOffered("keys for signed claims") }
    let expected = IDTokenExpectation(
      issuer: issuer, clientID: provider.clientID, trustedAudiences: Set(provider.variations.trustedAudiences),
      time: dependencies.now(), leeway: provider.variations.clockSkew)
    let token: IDToken
    do throws(IDTokenRejection) { token = try IDToken(text) } catch { throw .userinfo(error) }
    let keys = try await directory.keys(for: token)
    do throws(IDTokenRejection) {
      try await keys.verify(token)
      var rules: [any IDTokenRule] = [AlgorithmRule(), NotBeforeRule()]
      // glewlwyd has a type of its own, `token-userinfo+jwt`. Other types are those of other tokens.
      if token.type.map({ $0.lowercased().contains("userinfo") }) != true { rules.append(TypeRule()) }
      if token.claims.issuer != nil { rules.append(IssuerRule()) }
      if !token.claims.audiences.isEmpty { rules.append(AudienceRule()) }
      if token.claims.expiresAt != nil { rules.append(ExpiryRule()) }
      for rule in rules { try rule.check(token, expected) }
      for name in ["iss", "aud", "exp"] { try token.claims.judge(name) }
    } catch {
      throw .userinfo(error)
    }
    guard let claims = Base64URL.decode(text.split(atBytes: UInt8(ascii: "."))[1]) else {
      throw .malformed("the signed claims")
    }
    return try UserClaims(json: claims)
  }
}
