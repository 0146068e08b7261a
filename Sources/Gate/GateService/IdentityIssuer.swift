internal import AndroidKeyAttestation
internal import AppAttest
public import AttestGate
internal import ByteCoding
internal import Cryptography
internal import Transport

/// Signs identity assertions about clients, so that an upstream need not trust the network between it and the gate.
public struct IdentityIssuer: Sendable {
  /// The validity of an assertion. An upstream checks it as soon as it reads the head.
  static let life = Duration.seconds(60)

  private let keys: IdentityKeys
  private let audience: String
  /// The claims that are the same in every assertion, from the opening brace.
  private let prefix: [UInt8]

  /// - Parameters:
  ///   - issuer: The `iss` claim, the name of the gate.
  ///   - audience: The `aud` claim for routes without an audience of their own, and for answers of `/attest/verify`.
  ///   - keys: The signing keys.
  public init(issuer: String, audience: String, keys: IdentityKeys) {
    self.keys = keys
    self.audience = audience
    prefix = Array("{\"iss\":\(JSONText.quote(issuer))".utf8)
  }

  /// Whether signing keys are loaded.
  var isReady: Bool { keys.isReady }

  /// Loads the signing keys if they are not loaded. Otherwise does no work.
  func prepare() async throws(StoreError) { try await keys.prepare() }

  /// Returns the public keys for verification as a JWK Set (RFC 7517 section 5).
  func keySet(at now: Timestamp) -> String {
    "{\"keys\":[" + keys.published(at: now).map { JSONWebKey($0.privateKey.publicKey).text }.joined(separator: ",")
      + "]}"
  }

  /// Returns the value of `X-Attest-Assertion` for `subject`: a JWT (RFC 7519), signed with ES256, valid for 60
  /// seconds.
  ///
  /// - Throws: `.failed` if no keys are loaded or if OpenSSL cannot sign.
  func assertion(of subject: IdentitySubject, at now: Timestamp) throws(StoreError) -> String {
    guard let key = keys.signing(at: now) else { throw .failed(reason: "no identity keys") }
    return try key.token(ofType: "JWT", claims(of: subject, at: now))
  }

  /// The maximum length of a certificate's subject in a claim, in bytes.
  private static let longestSubject = 1024

  /// The claims as JSON. Claims that do not apply are absent, never empty.
  private func claims(of subject: IdentitySubject, at now: Timestamp) -> [UInt8] {
    var claims = ClaimWriter(prefix: prefix)
    claims.text("aud", subject.route?.audience ?? audience)
    if let route = subject.route { claims.text("route", route.path) }
    if case .device(let device) = subject.proof { claims.text("sub", device.keyHash.text) }
    claims.text("jti", Base64URL.encode(SecureRandom.bytes(16)))
    claims.number("iat", now.seconds)
    claims.number("exp", now.seconds + Self.life.components.seconds)
    claims.text("method", subject.method)
    if let line = subject.requestLine {
      claims.text("htm", line.method)
      claims.text("target", Base64URL.encode(SHA256.hash(Array(line.target.utf8))))
    }
    switch subject.proof {
    case .device(let device): claims.describe(device)
    case .certificate(let certificate):
      // All debug builds share one certificate. `env` is set so that an upstream that checks only `env` does not
      // treat it as a device.
      claims.text("env", "debug")
      claims.object("cnf", "x5t#S256", Base64URL.encode(certificate.fingerprint))
      // Left out rather than cut off: two subjects would look like one.
      if certificate.subject.utf8.count <= Self.longestSubject { claims.text("subject", certificate.subject) }
    }
    claims.text("sid", subject.session)
    if let address = subject.address { claims.text("client_ip", address) }
    return claims.ended()
  }
}

/// The client that an assertion describes.
struct IdentitySubject: Sendable {
  enum Proof: Sendable {
    case device(DevicePrincipal)
    case certificate(VerifiedCertificate)
  }

  let proof: Proof
  /// See `Principal.method`.
  let method: String
  /// The id of the request, which also names the session in the log and in the list of sessions.
  let session: String
  /// The client's IP address; `nil` for a Unix socket.
  let address: String?
  /// The route whose upstream gets the assertion; `nil` for an answer of `/attest/verify`.
  let route: Route?
  /// The method and the target of the request that the upstream gets; `nil` for an answer of `/attest/verify`, since
  /// the gate does not read which request the other proxy asks about.
  let requestLine: (method: String, target: String)?

  /// Returns `nil` if the client proved no identity, since there is nothing to sign.
  ///
  /// - Parameter route: See the property. It has no default, so that no caller omits the route by mistake.
  init?(_ admission: Admission, of request: Request, from peer: Peer, for route: Route?) {
    switch admission.principal {
    case .device(let device): proof = .device(device)
    case .certificate(let certificate): proof = .certificate(certificate)
    case .anyone: return nil
    }
    method = admission.principal.method
    session = request.id
    self.route = route
    requestLine = route == nil ? nil : (request.method, request.target)
    address =
      switch peer.address {
      case .ipv4, .ipv6: peer.address.host
      case .unix: nil
      }
  }
}
