public import ByteCoding
internal import Foundation
internal import HTTPClientTransport
public import MFADomain
public import OIDCClient

/// Verifies the ID tokens of one identity provider, for the client ids of the app.
public struct ProviderTokens: IdentityTokenVerifier {
  /// The time for one document of a provider.
  public static let exchangeTime = Duration.seconds(10)
  /// The usual difference between the clocks of a provider and of the backend that is allowed.
  public static let usualClockSkew = Duration.seconds(300)

  private let issuer: String
  private let audiences: [String]
  private let trustedAudiences: [String]
  private let clockSkew: Duration
  private let keys: @Sendable (IDToken) async throws -> ProviderKeys
  private let changedKeys: @Sendable () async -> ProviderKeys?

  /// Creates the verifier.
  ///
  /// - Parameters:
  ///   - issuer: the issuer, exactly as in its tokens.
  ///   - audiences: the client ids of the app. A token must be for one of them. Its authorized party, if it names one, is
  ///     one of them, too: on phones, Google issues tokens for the server's client id to the app's.
  ///   - trustedAudiences: further audiences that a token may have in addition, such as a project or a sibling client.
  ///   - clockSkew: the difference between the clocks of the provider and of the backend that is allowed.
  ///   - keys: returns the keys that `token` may be verified with.
  ///   - changedKeys: fetches the keys again, because a signature without a key identifier fits none of them; `nil` if
  ///     that was done a short time ago.
  public init(
    issuer: String, audiences: [String], trustedAudiences: [String] = [], clockSkew: Duration = Self.usualClockSkew,
    keys: @escaping @Sendable (_ token: IDToken) async throws -> ProviderKeys,
    changedKeys: @escaping @Sendable () async -> ProviderKeys? = { nil }
  ) {
    self.issuer = issuer
    self.audiences = audiences
    self.trustedAudiences = trustedAudiences
    self.clockSkew = clockSkew
    self.keys = keys
    self.changedKeys = changedKeys
  }

  /// Creates the verifier of the provider at `issuer`. It fetches the provider's keys when a token needs them, so a
  /// provider that is down does not prevent the start.
  ///
  /// - Parameters:
  ///   - authorityFile: a PEM file with the roots to trust instead of the system's roots.
  ///   - exchangeTime: the time for one document of the provider, up to its last byte. All requests that wait for the
  ///     document then fail, and the next one fetches it again.
  public init(
    issuer: String, audiences: [String], trustedAudiences: [String] = [], clockSkew: Duration = Self.usualClockSkew,
    authorityFile: String?, exchangeTime: Duration = Self.exchangeTime
  ) {
    let transport = HTTPClientTransport(
      .init(authorityFile: authorityFile, connectTime: .seconds(5), exchangeTime: exchangeTime))
    let directory = ProviderDirectory(issuer: issuer, transport: transport)
    self.init(
      issuer: issuer, audiences: audiences, trustedAudiences: trustedAudiences, clockSkew: clockSkew,
      keys: { try await directory.keys(for: $0) }, changedKeys: { await directory.changedKeys() })
  }

  /// Fetches the metadata of the provider at `issuer`.
  ///
  /// - Returns: `nil`, or the reason why it cannot be used.
  public static func fault(of issuer: String, authorityFile: String?) async -> String? {
    let transport = HTTPClientTransport(
      .init(authorityFile: authorityFile, connectTime: .seconds(5), exchangeTime: exchangeTime))
    do throws(OIDCError) {
      let metadata = try await ProviderDirectory(issuer: issuer, transport: transport).metadata()
      _ = try metadata.requiredKeysURL()
      guard metadata.offersUsableSignatures else {
        let names = (metadata.signatureAlgorithms ?? []).prefix(8).map { $0.prefix(32) }.joined(separator: ", ")
        return "the provider signs ID tokens with \(names), which the backend does not verify"
      }
      return nil
    } catch {
      return "\(error)"
    }
  }

  public func subject(of token: String, nonce: String, at now: Timestamp) async throws -> ProviderSubject {
    let token = try Self.read(token)
    let keys: ProviderKeys
    do {
      keys = try await self.keys(token)
    } catch {
      throw MFAStoreError(reason: "keys of the identity provider not available: \(error)")
    }
    let expected = IDTokenExpectation(
      issuer: issuer, clientID: audiences.first ?? "", otherClientIDs: Set(audiences.dropFirst()),
      trustedAudiences: Set(trustedAudiences), nonce: nonce,
      time: Date(timeIntervalSince1970: Double(now.milliseconds) / 1000),
      leeway: TimeInterval(clockSkew.components.seconds),
      longestAge: TimeInterval(FederationChallenge.lifetime.components.seconds))
    do throws(IDTokenRejection) {
      try await IDTokenVerifier(keys: keys).verify(token, as: expected)
    } catch {
      // Without a key identifier, only the signature shows that the provider has changed its keys.
      guard error == .signature, token.keyID == nil, let changed = await changedKeys() else {
        throw FederationRejection(error)
      }
      do throws(IDTokenRejection) { try await IDTokenVerifier(keys: changed).verify(token, as: expected) } catch {
        throw FederationRejection(error)
      }
    }
    guard let subject = token.claims.subject else { throw FederationRejection.subject }
    return try ProviderSubject(issuer: issuer, claimed: subject)
  }

  private static func read(_ text: String) throws(FederationRejection) -> IDToken {
    do throws(IDTokenRejection) { return try IDToken(text) } catch { throw FederationRejection(error) }
  }
}

extension FederationRejection {
  init(_ rejection: IDTokenRejection) {
    self =
      switch rejection {
      case .malformed: .malformed
      case .type: .type
      case .issuer: .issuer
      case .audience: .audience
      case .authorizedParty: .authorizedParty
      case .algorithm: .algorithm
      case .unknownKey: .unknownKey
      case .ambiguousKey: .ambiguousKey
      case .signature: .signature
      case .expired: .expired
      case .issuedAt: .issuedAt
      case .notYetValid: .notYetValid
      case .nonce: .nonce
      case .accessTokenHash: .accessTokenHash
      case .subject: .subject
      }
  }
}
