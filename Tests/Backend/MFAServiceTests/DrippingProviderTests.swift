import ByteCoding
import MFADomain
import MFAFixtures
import MFAService
import TestSupport
import Testing

@Suite("A provider whose answers drip", .timeLimit(.minutes(1)))
struct DrippingProviderTests {
  @Test("ten sign-ins that wait for the provider's documents fail in time, and the next one succeeds after its repair")
  func signIns() async throws {
    let server = try DrippingServer()
    defer { server.stop() }
    let provider = TestProvider(issuer: server.base)
    let tokens = ProviderTokens(
      issuer: server.base, audiences: [TestProvider.clientID], authorityFile: nil, exchangeTime: .seconds(4))
    let now = Timestamp.now()
    let challenge = String(repeating: "A", count: 43) + "="
    let token = try await provider.token(for: challenge, at: now)
    let failures = await withTaskGroup(of: (any Error)?.self) { group in
      for _ in 0..<10 {
        group.addTask {
          do {
            _ = try await tokens.subject(of: token, nonce: "-", at: now)
            return nil
          } catch {
            return error
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(failures.count == 10 && failures.allSatisfy { $0 is MFAStoreError }, "\(failures)")
    #expect(server.paths == ["/.well-known/openid-configuration"])
    server.mend(with: [
      "/.well-known/openid-configuration": #"{"issuer":"BASE","jwks_uri":"BASE/jwks"}"#, "/jwks": provider.jwks,
    ])
    // The documents are read again, and the rules of the token decide.
    await #expect(throws: FederationRejection.nonce) { try await tokens.subject(of: token, nonce: "-", at: now) }
  }
}
