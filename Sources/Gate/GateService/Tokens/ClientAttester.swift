public import AttestGate
internal import ByteCoding
internal import Cryptography

/// Signs client attestations (draft-ietf-oauth-attestation-based-client-auth): they tell an authorization server that a
/// key is held by a genuine instance of an app, which is a client there.
public struct ClientAttester: Sendable {
  /// The longest validity of an attestation.
  public static let longestLife = Duration.seconds(86_400)

  /// A client of an authorization server.
  public struct Client: Sendable, Hashable {
    /// Its identifier there.
    public let id: String
    /// The apps whose devices may have attestations for it.
    public let apps: Set<String>
    /// The validity of an attestation, at most `longestLife`.
    public let life: Duration
    /// Further claims with texts, none of those that the gate sets.
    public let claims: [String: String]

    public init(id: String, apps: Set<String>, life: Duration, claims: [String: String] = [:]) {
      (self.id, self.apps, self.claims) = (id, apps, claims)
      self.life = min(life, ClientAttester.longestLife)
    }
  }

  private let clients: [Client]
  private let keys: IdentityKeys
  /// The claims that are the same in every attestation, from the opening brace.
  private let prefix: [UInt8]

  /// - Parameters:
  ///   - issuer: The `iss` claim, the name of the gate.
  ///   - keys: The identity signing keys. Each must be published for as long as the longest life of a client after its
  ///     last use.
  public init(issuer: String, clients: [Client], keys: IdentityKeys) {
    self.clients = clients
    self.keys = keys
    prefix = Array("{\"iss\":\(JSONText.quote(issuer))".utf8)
  }

  /// Returns the client with this identifier, compared as bytes; `nil` for another.
  func client(_ id: String) -> Client? { clients.first { $0.id.hasSameBytes(as: id) } }

  /// Returns an attestation that `key` belongs to an instance of `client`, and the seconds for which it is valid.
  ///
  /// - Throws: `.failed` if no keys are loaded or if OpenSSL cannot sign.
  func attestation(
    for client: Client, of key: DPoPKey, at now: Timestamp
  ) throws(StoreError) -> (text: String, life: Int64) {
    guard let signingKey = keys.signing(at: now) else { throw .failed(reason: "no identity keys") }
    var end = now.advanced(by: client.life)
    // The date was set with the overlap of that time. A reload may have made overlap and life longer since, but servers
    // no longer find the key then.
    if let retirement = signingKey.retiresAt, retirement > now { end = min(end, retirement) }
    var claims = ClaimWriter(prefix: prefix)
    claims.text("sub", client.id)
    claims.number("iat", now.seconds)
    claims.number("exp", end.seconds)
    claims.confirmation(key.key)
    for (name, value) in client.claims.sorted(by: { $0.key < $1.key }) { claims.text(named: name, value) }
    let text = try signingKey.token(ofType: "oauth-client-attestation+jwt", claims.ended())
    return (text, end.seconds - now.seconds)
  }
}
