import ByteCoding
import Cryptography
import Foundation

@testable import OIDCClient

extension FuzzTarget {
  /// The first byte selects the document.
  static let provider = FuzzTarget(
    name: "provider", longest: 4096,
    words: [
      "\"issuer\":", "\"jwks_uri\":", "\"token_endpoint\":", "\"access_token\":", "\"expires_in\":", "\"id_token\":",
      "\"device_code\":", "\"user_code\":", "\"interval\":", "\"error\":", "\"keys\":", "\"kty\":\"RSA\"", "\"n\":",
      "\"e\":\"AQAB\"", "\"crv\":\"Ed25519\"", "\"use\":\"sig\"", "https://", "http://localhost", "1e308", "-0",
      "\\u0000",
    ],
    seeds: { try ProviderInvariants.seeds() }, accepts: ProviderInvariants.check)

  /// A token from a provider or a browser.
  static let idToken = FuzzTarget(
    name: "id-token", longest: 4096,
    words: ["eyJ", ".", "\"alg\":\"ES256\"", "\"kid\":", "\"crit\":", "\"aud\":", "\"nonce\":", "\"exp\":", "1e308"],
    seeds: { try IDTokenInvariants.seeds() }, accepts: IDTokenInvariants.check)
}

/// What a provider answers: its discovery document, its keys, tokens, and codes for a device.
enum ProviderInvariants {
  private static let issuer = "https://login.example"

  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let selector = input.first else { return false }
    let json = Array(input.dropFirst())
    switch selector % 4 {
    case 0: return try checkMetadata(json)
    case 1: return try checkKeys(json)
    case 2: return try checkTokens(json)
    default: return try checkDevice(json)
    }
  }

  private static func checkMetadata(_ json: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let metadata = try? ProviderMetadata(json: json, issuer: issuer) else { return false }
    try require(metadata.issuer == issuer, "a document is of the issuer that was asked")
    let endpoints = [
      metadata.authorizationEndpoint, metadata.tokenEndpoint, metadata.jwksURI, metadata.userinfoEndpoint,
      metadata.revocationEndpoint, metadata.endSessionEndpoint, metadata.deviceAuthorizationEndpoint,
    ]
    for url in endpoints.compactMap(\.self) {
      let host = url.host(percentEncoded: false)?.lowercased() ?? ""
      let isLoopback =
        ["localhost", "::1", "[::1]"].contains(host) || host.wholeMatch(of: /127(\.[0-9]{1,3}){3}/) != nil
      let scheme = url.scheme?.lowercased()
      try require(scheme == "https" || scheme == "http" && isLoopback, "nothing is sent in the clear", "\(url)")
      try require(url.user(percentEncoded: false) == nil && url.fragment == nil, "no user and no fragment", "\(url)")
    }
    return true
  }

  /// A key of any form is used to verify a genuine token.
  private static func checkKeys(_ json: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let keys = try? ProviderKeys(json: json) else { return false }
    try require(keys.count <= json.count / 9, "each key has a kty")
    for token in IDTokenInvariants.tokens { _ = IDTokenInvariants.isSigned(token, by: keys) }
    return true
  }

  private static func checkTokens(_ json: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let tokens = (try? TokenResponse(json: json))?.tokens else { return false }
    try require(!tokens.accessToken.isEmpty && tokens.refreshToken != "" && tokens.idToken != "", "no token is empty")
    for token in [tokens.accessToken, tokens.refreshToken, tokens.idToken].compactMap(\.self) {
      try require(token.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "a token is a word of ASCII")
      try require(!"\(tokens)".contains(token) || token.utf8.count < 9, "a description has no token")
    }
    try require((0...366 * 86_400).contains(tokens.expiresIn), "a lifetime is at most a year")
    return true
  }

  private static func checkDevice(_ json: [UInt8]) throws(InvariantViolation) -> Bool {
    let now = Date(timeIntervalSince1970: TimeInterval(Fixtures.instant.seconds))
    guard let grant = try? DeviceAuthorization(json: json, at: now) else { return false }
    try require((1...60).contains(grant.interval), "an interval is at most a minute")
    try require((0...3600).contains(grant.expiresAt.timeIntervalSince(now)), "a code lives for at most an hour")
    for text in [grant.userCode, grant.verificationURI, grant.completeURI ?? ""] {
      let hasControls = text.unicodeScalars.contains { $0.properties.generalCategory == .control }
      try require(!hasControls, "no control character gets to a terminal", text)
    }
    return true
  }

  static func seeds() throws -> [[UInt8]] {
    let endpoint = "https://login.example/e"
    let documents = [
      (0, #"{"issuer":"\#(issuer)","token_endpoint":"\#(endpoint)","jwks_uri":"\#(endpoint)"}"#),
      (0, #"{"issuer":"\#(issuer)","authorization_endpoint":"http://localhost:1/a"}"#),
      (0, #"{"issuer":"https://other.example"}"#),
      (1, IDTokenInvariants.keysText), (1, #"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"OKP","x":""},0]}"#),
      (2, #"{"access_token":"a","token_type":"Bearer","expires_in":"3600","id_token":"b","refresh_token":""}"#),
      (2, #"{"access_token":"a b","token_type":"DPoP","expires_in":1e308}"#),
      (
        3,
        #"{"device_code":"d","user_code":"A-B","verification_uri":"\#(endpoint)","expires_in":900,"interval":5}"#
      ),
    ]
    return documents.map { [UInt8($0)] + $1.utf8 }
  }
}

/// An ID token, from its form to its signature.
enum IDTokenInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let text = String(decoding: input, as: UTF8.self)
    guard let token = try? IDToken(text) else { return false }
    try require(text.utf8.count <= IDToken.longest && text.utf8.allSatisfy { $0 < 0x80 }, "a token is short ASCII")
    try require((try? IDToken(token.text))?.claims == token.claims, "a token is read again as the same")
    guard let keys, isValid(token, by: keys, nonce: nonce) else { return true }
    // ECDSA signatures are malleable, so only the signed part identifies a token.
    let signed = text.prefix(upTo: text.lastIndex(of: ".") ?? text.startIndex)
    try require(signedTexts.contains(String(signed)), "only what the key has signed is valid", text)
    try require(!isValid(token, by: keys, nonce: nonce + "0"), "a token is for one nonce")
    return true
  }

  private static let nonce = "n-0S6_WzA2Mj"
  private static let texts = (try? mint()) ?? []
  private static let signedTexts = Set(texts.map { String($0.prefix(upTo: $0.lastIndex(of: ".") ?? $0.startIndex)) })
  private static let keys = try? ProviderKeys(json: Array(keysText.utf8))

  /// Genuine tokens: one that is valid, and one that has expired.
  static let tokens = texts.compactMap { try? IDToken($0) }

  /// The key of the fixtures, as a provider publishes it.
  static let keysText: String = {
    let point = Fixtures.shared.key.publicKey.x963
    let (x, y) = (Base64URL.encode(Array(point[1...32])), Base64URL.encode(Array(point[33...64])))
    return #"{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"k","x":"\#(x)","y":"\#(y)"}]}"#
  }()

  static func isSigned(_ token: IDToken, by keys: ProviderKeys) -> Bool {
    waiting { (try? await keys.verify(token)) != nil }
  }

  private static func isValid(_ token: IDToken, by keys: ProviderKeys, nonce: String) -> Bool {
    let expected = IDTokenExpectation(
      issuer: "https://login.example", clientID: "app", nonce: nonce,
      time: Date(timeIntervalSince1970: TimeInterval(Fixtures.instant.seconds)))
    return waiting { (try? await IDTokenVerifier(keys: keys).verify(token, as: expected)) != nil }
  }

  /// Returns the result of an asynchronous function, which runs on another thread.
  private static func waiting(_ body: @escaping @Sendable () async -> Bool) -> Bool {
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var result = false
    // The semaphore orders the write before the read.
    Task.detached {
      result = await body()
      done.signal()
    }
    done.wait()
    return result
  }

  private static func mint() throws -> [String] {
    try [0, -1000].map { age in
      let issuedAt = Fixtures.instant.seconds + Int64(age)
      let header = #"{"alg":"ES256","kid":"k","typ":"JWT"}"#
      let claims =
        #"{"iss":"https://login.example","sub":"ada","aud":"app","iat":\#(issuedAt),"exp":\#(issuedAt + 600),"#
        + #""nonce":"\#(nonce)"}"#
      let text = [header, claims].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
      return text + "." + Base64URL.encode(try Fixtures.shared.key.es256Signature(for: Array(text.utf8)))
    }
  }

  static func seeds() throws -> [[UInt8]] {
    let form = [#"{"alg":"none","crit":["b64"]}"#, #"{"aud":["a","b"],"exp":1e400}"#]
    let unsigned = (form.map { Base64URL.encode(Array($0.utf8)) } + [""]).joined(separator: ".")
    return (texts + [unsigned]).map { Array($0.utf8) }
  }
}
