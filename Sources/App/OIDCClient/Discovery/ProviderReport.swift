/// What a look at a provider found, for operators.
public struct ProviderReport: Sendable, Hashable, Encodable {
  /// What does not hold, with its code.
  public struct Problem: Sendable, Hashable, Encodable {
    /// The code, for scripts.
    public let code: String
    /// One sentence.
    public let text: String

    /// Creates a problem, for what a program knows beyond the provider.
    public init(code: String, text: String) {
      self.code = code
      self.text = text
    }
  }

  /// The name in the configuration.
  public let provider: String
  /// The issuer; `nil` with plain OAuth 2.0.
  public let issuer: String?
  /// The grants that this client can use there.
  public var grants: [String] = []
  /// Further features: revocation, logout, bound tokens, issuer in redirects.
  public var features: [String] = []
  /// The number of keys that can verify ID tokens; `nil` if there are none to fetch.
  public var keys: Int?
  /// The algorithms of ID tokens that the provider names and this client does not verify.
  public var refusedAlgorithms: [String] = []
  /// The SHA-256 hash of the client's certificate, in base64url; `nil` if it has none.
  public var clientCertificate: String?
  /// When that certificate expires, in seconds since 1970.
  public var clientCertificateExpiry: Int?
  /// How the provider is reached if a variable of the environment chooses a proxy; `nil` if there is none.
  public var proxy: String?
  /// What keys of the entry mean, a line for each that is not as usual; from the program that reads the entry.
  public var settings: [String] = []
  /// What does not hold.
  public var problems: [Problem] = []

  /// The most names of algorithms that are listed.
  static let mostAlgorithms = 32
}

extension ProviderClient {
  /// Fetches metadata and keys, and reports what they offer.
  public func report() async -> ProviderReport {
    var report = ProviderReport(provider: provider.id, issuer: provider.issuer)
    do throws(OIDCError) {
      let resolved = try await resolved()
      let metadata = try await metadata()
      if provider.isOfMachine {
        report.grants.append("client credentials")
      } else {
        if resolved.authorizationEndpoint != nil { report.grants.append("browser") }
        if resolved.endpoints.deviceAuthorization != nil { report.grants.append("device") }
        if provider.allowsPasswordGrant { report.grants.append("password") }
      }
      report.clientCertificate = provider.trust.clientCertificate?.thumbprint
      if metadata?.bindsTokensToCertificates == true { report.features.append("tokens for certificates") }
      if provider.authentication == .tlsClientAuth, let methods = metadata?.authenticationMethods,
        !methods.contains(where: {
          "tls_client_auth".isIdentical(to: $0) || "self_signed_tls_client_auth".isIdentical(to: $0)
        })
      {
        throw OIDCError.notOffered("authentication with a client certificate")
      }
      if case .attestation(let proof) = provider.authentication {
        if let methods = metadata?.authenticationMethods, !proof.isOffered(among: methods) {
          throw OIDCError.notOffered("authentication with a client attestation")
        }
        report.features.append("client attestations")
      }
      if resolved.endpoints.revocation != nil { report.features.append("revocation") }
      if resolved.endpoints.endSession != nil { report.features.append("logout page") }
      if metadata?.offersDPoP == true { report.features.append("DPoP") }
      if metadata?.requiresPushedRequests == true {
        report.features.append("pushed requests, demanded")
      } else if resolved.endpoints.pushedAuthorization != nil {
        report.features.append("pushed requests")
      }
      let pushes = provider.variations.pushing == .required || metadata?.requiresPushedRequests == true
      if pushes, resolved.endpoints.pushedAuthorization == nil {
        throw OIDCError.notOffered("pushed authorization requests")
      }
      if metadata?.namesIssuerInRedirects == true { report.features.append("issuer in redirects") }
      for fault in metadata?.allFaults ?? [] { report.problems.append(.init(code: fault.code, text: "\(fault)")) }
      if metadata?.fault(of: "code_challenge_methods_supported") == nil { try metadata?.requireS256() }
      if provider.dpop == .required, metadata?.offersDPoP == false { throw OIDCError.notOffered("DPoP with ES256") }
      if provider.type == .openIDConnect, !provider.isOfMachine {
        let names = metadata?.signatureAlgorithms ?? []
        report.refusedAlgorithms = Array(
          names.filter { $0.utf8.count <= 32 && SignatureAlgorithm(rawValue: $0) == nil }
            .prefix(ProviderReport.mostAlgorithms))
        if metadata?.offersUsableSignatures == false {
          throw OIDCError.notOffered("ID tokens with a signature that this client verifies")
        }
        report.keys = try await keyCount()
        if report.keys == 0 { throw OIDCError.malformed("the provider's keys have none for signatures") }
      }
    } catch {
      report.problems.append(.init(code: error.code, text: "\(error)"))
    }
    return report
  }
}
