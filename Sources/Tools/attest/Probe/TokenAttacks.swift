internal import ByteCoding
internal import Commands
internal import Cryptography
internal import Foundation
internal import SimulatedDevice
internal import TransportEngine

extension Attack {
  /// Attempts to get a token of the gate without what it asks for, and to use one where the gate accepts none.
  static let tokens: [Attack] = requests + proofs + confusions

  private static let requests: [Attack] = [
    attack("a token request without a proof of a key", 400, "dpop_malformed") { prober throws(Failure) in
      try await prober.requestToken(prober.credentials(), proof: nil)
    },
    attack("a token request with two proofs", 400, "dpop_malformed") { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let proof = try prober.tokenProof(over: nonce).text()
      return try await prober.requestToken(prober.device.lines(over: nonce) + ["DPoP: \(proof)"], proof: proof)
    },
    attack("a token request without credentials of a device", 401, "no_credentials") { prober throws(Failure) in
      try await prober.requestToken([], proof: prober.tokenProof(over: prober.challenge()).text())
    },
    attack("a token request by a key that is not registered", 401, "key_refused") { prober throws(Failure) in
      let nonce = try await prober.challenge()
      return try await prober.requestToken(
        prober.stranger().lines(over: nonce), proof: prober.tokenProof(over: nonce).text())
    },
    // 400 asks for another nonce (RFC 9449 section 8); gates of earlier versions answer 401.
    Attack(.tokens, "a token request that was sent", [400, 401], code: "nonce_used", needsDevice: true) {
      prober throws(Failure) in
      let nonce = try await prober.challenge()
      let (lines, proof) = (try prober.device.lines(over: nonce), try prober.tokenProof(over: nonce).text())
      _ = try await prober.requestToken(lines, proof: proof)
      return try await prober.requestToken(lines, proof: proof)
    },
    attack("a token for an audience that the gate does not name", 403, "audience_refused") { prober throws(Failure) in
      let nonce = try await prober.challenge()
      return try await prober.requestToken(
        prober.device.lines(over: nonce), proof: prober.tokenProof(over: nonce).text(),
        audience: "https://mallory.example")
    },
    attack("a token for the servers behind the gate", 403, "audience_refused") { prober throws(Failure) in
      let nonce = try await prober.challenge()
      return try await prober.requestToken(
        prober.device.lines(over: nonce), proof: prober.tokenProof(over: nonce).text(),
        audience: "sallyport-upstream")
    },
  ]

  private static let proofs: [Attack] = [
    forged("signed by another key than it names") { draft throws(CryptographyError) in
      draft.signer = try P256PrivateKey()
    },
    forged("for another URL") { $0.url = "https://mallory.example/attest/token" },
    forged("for another path of the gate") { $0.url = $0.url.replacing("/attest/token", with: "/attest/verify") },
    forged("for another method") { $0.method = "GET" },
    forged("of an hour ago") { $0.issuedAt -= 3600 },
    forged("of the next hour") { $0.issuedAt += 3600 },
    forged("over another nonce") { $0.nonce = Hex.encode(SecureRandom.bytes(32)) },
    forged("whose claims were changed") { $0.changesClaims = true },
    forged("without a signature, with alg none", "dpop_malformed") { $0.algorithm = "none" },
    forged("with a symmetric algorithm", "dpop_malformed") { $0.algorithm = "HS256" },
    forged("of another type", "dpop_malformed") { $0.type = "JWT" },
    forged("that has its private key", "dpop_malformed") { $0.hasPrivatePart = true },
  ]

  /// A token, a proof and an identity assertion, each in place of another.
  private static let confusions: [Attack] = [
    attack("a token instead of credentials", 401, "no_credentials") { prober throws(Failure) in
      try await prober.upgrade(["Authorization: DPoP \(prober.token())"])
    },
    attack("a token instead of credentials, as the proxy's request", 401, "no_credentials") { prober throws(Failure) in
      try await prober.verify(["Authorization: DPoP \(prober.token())"])
    },
    attack("a token as an identity assertion", 401, "no_credentials") { prober throws(Failure) in
      try await prober.upgrade(["X-Attest-Assertion: \(prober.token())"])
    },
    Attack(.tokens, "a token as a device's proof", [400, 401], needsDevice: true) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      return try await prober.upgrade(prober.device.lines(Array(prober.token().utf8), nonce: nonce))
    },
    attack("a token as a proof of a key", 400, "dpop_malformed") { prober throws(Failure) in
      let token = try await prober.token()
      return try await prober.requestToken(prober.credentials(), proof: token)
    },
    attack("an identity assertion as a proof of a key", 400, "dpop_malformed") { prober throws(Failure) in
      let assertion = try await prober.identityAssertion()
      return try await prober.requestToken(prober.credentials(), proof: assertion)
    },
  ]

  private static func attack(
    _ name: String, _ status: Int, _ code: String,
    run: @escaping @Sendable (Prober) async throws(Failure) -> Reply
  ) -> Attack { Attack(.tokens, name, [status], code: code, needsDevice: true, run: run) }

  private static func forged(
    _ name: String, _ code: String = "dpop_refused",
    _ change: @escaping @Sendable (inout TokenProofDraft) throws(CryptographyError) -> Void
  ) -> Attack {
    attack("a token's proof \(name)", 400, code) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      var draft = try prober.tokenProof(over: nonce)
      do throws(CryptographyError) { try change(&draft) } catch { throw Failure(cryptography: error) }
      return try await prober.requestToken(prober.device.lines(over: nonce), proof: draft.text())
    }
  }
}

/// A DPoP proof (RFC 9449), of which an attack changes a part.
struct TokenProofDraft {
  let key: P256PrivateKey
  var signer: P256PrivateKey
  var type = "dpop+jwt"
  var algorithm = "ES256"
  var method = "POST"
  var url: String
  var nonce: String
  var issuedAt = Timestamp.now().seconds
  /// Whether the claims are changed after the signature was made.
  var changesClaims = false
  /// Whether the header has a private part, which does not matter to the signature.
  var hasPrivatePart = false

  init(url: String, nonce: String) throws(CryptographyError) {
    key = try P256PrivateKey()
    (signer, self.url, self.nonce) = (key, url, nonce)
  }

  func text() throws(Failure) -> String {
    let point = key.publicKey.x963
    var jwk = #"{"kty":"EC","crv":"P-256","x":"\#(Base64URL.encode(point[1..<33]))""#
    jwk += #","y":"\#(Base64URL.encode(point[33...]))""#
    if hasPrivatePart { jwk += #","d":"\#(Base64URL.encode(SecureRandom.bytes(32)))""# }
    let header = #"{"typ":"\#(type)","alg":"\#(algorithm)","jwk":\#(jwk)}}"#
    let signed = "\(Self.part(header)).\(Self.part(claims(method: method)))"
    guard algorithm != "none" else { return "\(signed)." }
    let signature: [UInt8]
    do throws(CryptographyError) {
      signature = try signer.es256Signature(for: Array(signed.utf8))
    } catch {
      throw Failure(cryptography: error)
    }
    // Another identifier, which no other rule than the signature's concerns.
    let sent = changesClaims ? "\(Self.part(header)).\(Self.part(claims(method: method)))" : signed
    return "\(sent).\(Base64URL.encode(signature))"
  }

  private func claims(method: String) -> String {
    let identifier = Base64URL.encode(SecureRandom.bytes(16))
    return #"{"jti":"\#(identifier)","htm":"\#(method)","htu":\#(JSONText.quote(url)),"nonce":"\#(nonce)","iat":"#
      + "\(issuedAt)}"
  }

  private static func part(_ text: String) -> String { Base64URL.encode(Array(text.utf8)) }
}

extension Prober {
  private static let tokenPath = "/attest/token"

  /// A valid proof for a token over `nonce`.
  func tokenProof(over nonce: String) throws(Failure) -> TokenProofDraft {
    do throws(CryptographyError) {
      return try TokenProofDraft(url: "https://\(address.hostField)\(Self.tokenPath)", nonce: nonce)
    } catch {
      throw Failure(cryptography: error)
    }
  }

  /// Requests a token with these lines of credentials.
  func requestToken(_ lines: [String], proof: String?, audience: String? = nil) async throws(Failure) -> Reply {
    Reply(try await exchange(tokenRequest(lines, proof: proof, audience: audience)))
  }

  private func tokenRequest(_ lines: [String], proof: String?, audience: String? = nil) -> [UInt8] {
    let name = audience ?? self.audience ?? ""
    let escaped = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    let body = "audience=\(escaped)"
    return Self.head(
      [
        "POST \(Self.tokenPath) HTTP/1.1", "Host: \(address.hostField)", "Connection: close",
        "Content-Type: application/x-www-form-urlencoded", "Content-Length: \(body.utf8.count)",
      ] + (proof.map { ["DPoP: \($0)"] } ?? []) + lines, body: body)
  }

  /// Gets a token as an honest client does.
  func token() async throws(Failure) -> String {
    let nonce = try await challenge()
    let answer = try await exchange(
      tokenRequest(device.lines(over: nonce), proof: tokenProof(over: nonce).text()))
    guard let token = Self.object(in: answer)?["access_token"] as? String else {
      let reply = Reply(answer)
      if reply.isBusy {
        throw Failure(.retryLater, "the gate is too busy to issue a token: \(reply.text)", hint: Self.patience)
      }
      throw Failure(
        .refused, "the gate does not issue an honest token: \(reply.text)",
        hint: "--audience has to be one of the gate's tokens.audiences, and tokens.url the URL that clients use")
    }
    return token
  }

  /// The identity assertion that the gate makes for another proxy.
  func identityAssertion() async throws(Failure) -> String {
    try Self.identityAssertion(
      in: await exchange(
        Self.head(["GET /attest/verify HTTP/1.1", "Host: \(address.hostField)", "Connection: close"] + credentials())))
  }

  static func identityAssertion(in answer: RawAnswer) throws(Failure) -> String {
    let lines = String(decoding: answer.bytes, as: UTF8.self).split(separator: "\r\n")
    let name = "x-attest-assertion: "
    // A refusal sets the field, too, without a value.
    guard let line = lines.first(where: { $0.lowercased().hasPrefix(name) && $0.count > name.count }) else {
      let reply = Reply(answer)
      if reply.isBusy {
        throw Failure(.retryLater, "the gate is too busy to name a device: \(reply.text)", hint: patience)
      }
      throw Failure(
        .refused, "the gate gives no identity assertion to an honest device: \(reply.text)",
        hint: "a proxy in between may remove X-Attest-Assertion; probe the gate itself")
    }
    return String(line.dropFirst(name.count))
  }
}
