import Crypto
import Foundation
import Wire
import TestSupport
import Testing

@testable import OIDCClient

/// A provider may put what it got into the text of its error.
@Suite("Texts of a provider that repeat secrets", .timeLimit(.minutes(1)))
struct WithheldTextTests {
  private static let secret = "s3cret/of the client+1"

  /// Refuses each request with a text that `repeating` makes of it.
  private func failure(
    _ provider: IdentityProvider, attester: (any ClientAttester)? = nil,
    repeating part: @escaping @Sendable (HTTPRequest) -> String?,
    _ call: (ProviderClient) async throws(OIDCError) -> Void
  ) async throws -> (text: String, repeated: String) {
    let repeated = Watched("")
    let more =
      #","challenge_endpoint":"https://login.example.com/challenge","pushed_authorization_request_endpoint":"#
      + #""https://login.example.com/par","device_authorization_endpoint":"https://login.example.com/device""#
    let transport = Discovery.transport(more, keys: { "{}" }) { request, _ in
      if request.url.path == "/challenge" {
        return .json(
          #"{"attestation_challenge":"a-challenge-of-the-provider"}"#, [HTTPField("DPoP-Nonce", "a-nonce-1")])
      }
      let text = part(request) ?? "nothing to repeat"
      repeated.update { $0 = text }
      let document = try? JSONEncoder().encode(["error": "invalid_client", "error_description": "got \(text)"])
      return .json(String(decoding: document ?? Data(), as: UTF8.self), status: 400)
    }
    let client = ProviderClient(provider: provider, dependencies: Bench(transport).dependencies(attester))
    do throws(OIDCError) {
      try await call(client)
      return ("", repeated.value)
    } catch {
      return ("\(error)", repeated.value)
    }
  }

  private static func provider(
    _ authentication: ClientAuthentication, secret: String? = nil, dpop: DPoPUse = .off
  ) -> IdentityProvider {
    IdentityProvider(
      id: "work", name: "Work", issuer: url("https://login.example.com"), clientID: "app", clientSecret: secret,
      scopes: [], authentication: authentication, dpop: dpop,
      variations: ProviderVariations(grant: .clientCredentials))
  }

  private static let begin: @Sendable (ProviderClient) async throws(OIDCError) -> Void = { client in
    _ = try await client.ownTokens()
  }

  @Test("The client secret, as it is and as it was sent, is withheld", arguments: [ClientAuthentication.post, .basic])
  func secrets(authentication: ClientAuthentication) async throws {
    let provider = Self.provider(authentication, secret: Self.secret)
    for part in [
      { _ in Self.secret }, { _ in FormEncoding.encode(Self.secret) },
      { $0.value(of: "Authorization").map { String($0.dropFirst(6)) } ?? Self.secret },
    ] as [@Sendable (HTTPRequest) -> String?] {
      let (text, repeated) = try await failure(provider, repeating: part, Self.begin)
      #expect(text == "the provider refuses: invalid_client" && !repeated.isEmpty, "\(text)")
    }
    // Another text is shown.
    let (text, _) = try await failure(provider, repeating: { _ in "an unknown client" }, Self.begin)
    #expect(text == "the provider refuses: invalid_client (got an unknown client)")
  }

  @Test(
    "Attestation, proofs, challenge and nonce are withheld, each part alone too",
    arguments: ["OAuth-Client-Attestation", "OAuth-Client-Attestation-PoP", "DPoP"])
  func attestations(field: String) async throws {
    let isCombined = field == "DPoP"
    let provider = Self.provider(.attestation(isCombined ? .dpop : .pop), dpop: isCombined ? .automatic : .off)
    for index in 0..<3 {
      let (text, repeated) = try await failure(
        provider, attester: SampleAttester(),
        repeating: { request in
          request.value(of: field).map { String($0.split(separator: ".")[index]) }
        }, Self.begin)
      #expect(text == "the provider refuses: invalid_client" && repeated != "nothing to repeat", "\(text)")
    }
    for value in ["a-challenge-of-the-provider"] + (isCombined ? ["a-nonce-1"] : []) {
      let (text, _) = try await failure(
        provider, attester: SampleAttester(), repeating: { _ in value }, Self.begin)
      #expect(text == "the provider refuses: invalid_client", "\(value): \(text)")
    }
  }

  @Test("Pushed requests and the device grant withhold the same, and the state of the sign-in")
  func otherEndpoints() async throws {
    var variations = ProviderVariations()
    variations.pushing = .required
    let provider = IdentityProvider(
      id: "work", name: "Work", issuer: url("https://login.example.com"), clientID: "app", clientSecret: Self.secret,
      authentication: .post, dpop: .off, variations: variations)
    for name in ["client_secret", "state", "nonce"] {
      let (text, repeated) = try await failure(
        provider, repeating: { $0.form[name] },
        { client throws(OIDCError) in _ = try await client.begin(redirectURI: "http://127.0.0.1:1/a") })
      #expect(text == "the provider refuses: invalid_client" && repeated != "nothing to repeat", "\(name): \(text)")
    }
    let (text, repeated) = try await failure(
      provider, repeating: { $0.form["client_secret"] },
      { client throws(OIDCError) in _ = try await client.beginDeviceGrant() })
    #expect(text == "the provider refuses: invalid_client" && repeated == Self.secret, "\(text)")
  }

  @Test("The assertion of a key is withheld")
  func assertions() async throws {
    let (text, repeated) = try await failure(
      Self.provider(.privateKeyJWT(pem: P256.Signing.PrivateKey().pemRepresentation, keyID: nil)),
      repeating: { $0.form["client_assertion"].map { String($0.split(separator: ".")[1]) } }, Self.begin)
    #expect(text == "the provider refuses: invalid_client" && repeated != "nothing to repeat", "\(text)")
  }
}
