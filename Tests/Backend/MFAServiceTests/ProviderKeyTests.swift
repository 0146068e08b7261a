import ByteCoding
import Crypto
import Foundation
import Locking
import MFADomain
import MFAService
import OIDCClient
import Testing

/// A provider whose keys have no identifiers.
@Suite("Keys without identifiers")
struct ProviderKeyTests {
  private static func keys(_ key: P256.Signing.PrivateKey) throws -> ProviderKeys {
    let point = Array(key.publicKey.rawRepresentation)
    let (x, y) = (Base64URL.encode(Array(point[..<32])), Base64URL.encode(Array(point[32...])))
    return try ProviderKeys(json: Array(#"{"keys":[{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}]}"#.utf8))
  }

  private static func token(_ key: P256.Signing.PrivateKey, at now: Timestamp) throws -> String {
    let claims =
      #"{"iss":"https://login.example.com","sub":"ada","aud":"app","nonce":"n","iat":\#(now.seconds),"#
      + #""exp":\#(now.seconds + 300)}"#
    let text = [#"{"alg":"ES256"}"#, claims].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
    return text + "." + Base64URL.encode(Array(try key.signature(for: Array(text.utf8)).rawRepresentation))
  }

  @Test("A signature that fits none of the keys leads to another fetch, and is judged by its result")
  func rotation() async throws {
    let (old, new, foreign) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
    let fetches = LockedValue(0)
    let tokens = ProviderTokens(
      issuer: "https://login.example.com", audiences: ["app"], keys: { _ in try Self.keys(old) },
      changedKeys: {
        fetches.withLock { $0 += 1 }
        return try? Self.keys(new)
      })
    let now = Timestamp(seconds: 1_800_000_000)
    _ = try await tokens.subject(of: Self.token(old, at: now), nonce: "n", at: now)
    #expect(fetches.withLock { $0 } == 0)
    _ = try await tokens.subject(of: Self.token(new, at: now), nonce: "n", at: now)
    await #expect(throws: FederationRejection.signature) {
      try await tokens.subject(of: Self.token(foreign, at: now), nonce: "n", at: now)
    }
    #expect(fetches.withLock { $0 } == 2)
  }
}
