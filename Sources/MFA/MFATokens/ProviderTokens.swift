public import ByteCoding
internal import Foundation
internal import HTTPClientTransport
public import MFADomain
public import OIDCClient

/// Verifies the ID tokens of one identity provider, for the client ids of the app.
public struct ProviderTokens: IdentityTokenVerifier {
  private let issuer: String
  private let audiences: [String]
  private let keys: @Sendable (IDToken) async throws -> ProviderKeys

  /// Creates the verifier.
  ///
  /// - Parameters:
  ///   - issuer: the issuer, exactly as in its tokens.
  ///   - audiences: the client ids of the app. A token must be for one of them, and for no other client.
  ///   - keys: returns the keys that `token` may be verified with.
  public init(
    issuer: String, audiences: [String], keys: @escaping @Sendable (_ token: IDToken) async throws -> ProviderKeys
  ) {
    self.issuer = issuer
    self.audiences = audiences
    self.keys = keys
  }

  /// Creates the verifier of the provider at `issuer`. It fetches the provider's keys when a token needs them, so a
  /// provider that is down does not prevent the start.
  ///
  /// - Parameter authorityFile: a PEM file with the roots to trust instead of the system's roots.
  public init(issuer: String, audiences: [String], authorityFile: String?) {
    let transport = HTTPClientTransport(.init(authorityFile: authorityFile, connectTime: 5, exchangeTime: 10))
    let directory = ProviderDirectory(issuer: issuer, transport: transport)
    self.init(issuer: issuer, audiences: audiences) { try await directory.keys(for: $0) }
  }

  /// Fetches the metadata of the provider at `issuer`.
  ///
  /// - Returns: `nil`, or the reason why it cannot be used.
  public static func fault(of issuer: String, authorityFile: String?) async -> String? {
    let transport = HTTPClientTransport(.init(authorityFile: authorityFile, connectTime: 5, exchangeTime: 10))
    do throws(OIDCError) {
      _ = try await ProviderDirectory(issuer: issuer, transport: transport).metadata()
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
      issuer: issuer, clientID: client(of: token.claims), trustedAudiences: Set(audiences), nonce: nonce,
      time: Date(timeIntervalSince1970: Double(now.milliseconds) / 1000),
      longestAge: TimeInterval(FederationChallenge.lifetime.components.seconds))
    do throws(IDTokenRejection) {
      try await IDTokenVerifier(keys: keys).verify(token, as: expected)
    } catch {
      throw FederationRejection(error)
    }
    guard let subject = token.claims.subject else { throw FederationRejection.subject }
    return ProviderSubject(issuer: issuer, subject: subject)
  }

  private static func read(_ text: String) throws(FederationRejection) -> IDToken {
    do throws(IDTokenRejection) { return try IDToken(text) } catch { throw FederationRejection(error) }
  }

  /// The client id that the token is checked against: its authorized party or its audience, if it is one of ours.
  private func client(of claims: IDToken.Claims) -> String {
    let named = [claims.authorizedParty].compactMap(\.self) + claims.audiences
    return named.first(where: audiences.contains) ?? audiences.first ?? ""
  }
}

extension FederationRejection {
  init(_ rejection: IDTokenRejection) {
    self =
      switch rejection {
      case .malformed: .malformed
      case .issuer: .issuer
      case .audience: .audience
      case .authorizedParty: .authorizedParty
      case .algorithm: .algorithm
      case .unknownKey: .unknownKey
      case .ambiguousKey: .ambiguousKey
      case .signature: .signature
      case .expired: .expired
      case .issuedAt: .issuedAt
      case .nonce: .nonce
      case .accessTokenHash: .accessTokenHash
      case .subject: .subject
      }
  }
}
