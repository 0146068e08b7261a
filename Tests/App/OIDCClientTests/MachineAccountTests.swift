import ByteCoding
import Foundation
import Wire
import TestSupport
import Testing

@testable import OIDCClient

@Suite("A machine account", .timeLimit(.minutes(2)))
struct MachineAccountTests {
  private static let provider: IdentityProvider = .machine()

  private func session(_ bench: Bench, _ store: MemoryStore, _ provider: IdentityProvider = Self.provider)
    -> AccountSession
  {
    AccountSession(account: "work", client: bench.client(provider), store: store)
  }

  /// The access token, or the code of the error.
  private func outcome(_ session: AccountSession, rejecting rejected: String? = nil) async -> String {
    do throws(SessionError) { return try await session.tokens(rejecting: rejected).tokens.accessToken } catch {
      return error.code
    }
  }

  @Test("The request has the client's credentials, scopes and parameters; of the answer, the access token is kept")
  func request() async throws {
    let bench = Bench([.success(.tokens(1, refresh: true, idToken: "x.y.z"))])
    let store = MemoryStore()
    #expect(await outcome(session(bench, store)) == "access-1")
    #expect(
      bench.transport.forms == [
        ["grant_type": "client_credentials", "scope": "files mail", "audience": "https://api.example"]
      ])
    #expect(bench.transport.sent[0].value(of: "Authorization")?.hasPrefix("Basic ") == true)
    let stored = try #require(store.stored)
    #expect(stored.isOfMachine && stored.tokens.refreshToken == nil && stored.tokens.idToken == nil)
    let copy = try JSONDecoder().decode(StoredAccount.self, from: JSONEncoder().encode(stored))
    #expect(copy == stored)
  }

  @Test("The token is asked for again when less than a minute of it remains, or a service rejects it")
  func renewal() async throws {
    let bench = Bench(ScriptedTransport { _, number throws(TransportError) in .tokens(number, refresh: false) })
    let session = session(bench, MemoryStore())
    #expect(await outcome(session) == "access-1")
    bench.clock.advance(by: 239)
    #expect(await outcome(session) == "access-1")
    bench.clock.advance(by: 2)
    #expect(await outcome(session) == "access-2")
    #expect(await outcome(session, rejecting: "access-1") == "access-2")
    #expect(await outcome(session, rejecting: "access-2") == "access-3")
  }

  @Test("An answer that was lost is asked for again; without one, the old token serves as long as it is valid")
  func lost() async throws {
    let lost = Result<HTTPResponse, TransportError>.failure(.lost("reset"))
    let bench = Bench([lost, lost, .success(.tokens(1)), lost, lost, lost, lost, lost, lost])
    let session = session(bench, MemoryStore())
    #expect(await outcome(session) == "access-1")
    bench.clock.advance(by: 270)
    #expect(await outcome(session) == "access-1")
    bench.clock.advance(by: 60)
    #expect(await outcome(session) == "answer_lost")
  }

  @Test("A provider that asks to wait is not asked again until then")
  func busy() async throws {
    let bench = Bench([
      .success(.tokens(1)), .success(.refusal("slow", status: 429, [HTTPField("Retry-After", "100")])),
      .success(.tokens(2)),
    ])
    let session = session(bench, MemoryStore())
    #expect(await outcome(session) == "access-1")
    for _ in 0..<2 { #expect(await outcome(session, rejecting: "access-1") == "provider_busy") }
    #expect(await outcome(session) == "access-1")
    bench.clock.advance(by: 101)
    #expect(await outcome(session, rejecting: "access-1") == "access-2")
  }

  @Test("An account that is deleted while its token is asked for stays deleted")
  func deleted() async throws {
    let door = Door()
    let bench = Bench(
      ScriptedTransport { _, number throws(TransportError) in
        if number > 1 { await door.pass() }
        return .tokens(number)
      })
    let store = MemoryStore()
    let session = session(bench, store)
    #expect(await outcome(session) == "access-1")
    let renewal = Task { await outcome(session, rejecting: "access-1") }
    _ = try await bench.transport.requests.wait(for: "the second request") { $0.count > 1 ? true : nil }
    try store.delete("work")
    door.open()
    #expect(await renewal.value == "not_signed_in")
    #expect(store.stored == nil)
  }

  @Test("Tokens of a person are not those of the client, and the reverse")
  func person() async throws {
    let bench = Bench([.success(.tokens(1))])
    let person = MemoryStore(
      .sample(
        at: bench.clock.now, remaining: 300, refresh: "r", state: .settled, provider: Self.provider, user: nil,
        idToken: nil))
    #expect(await outcome(session(bench, person)) == "other_client")
    let machine = MemoryStore()
    #expect(await outcome(session(bench, machine)) == "access-1")
    #expect(await outcome(session(bench, machine, .plain(secret: "s"))) == "other_client")
    let client = bench.client(.plain(secret: "s"))
    await #expect(throws: OIDCError.self) { try await client.ownTokens() }
  }

  @Test("A client with a certificate uses the endpoints for certificates, and sends its name alone")
  func aliases() async throws {
    let more =
      #","mtls_endpoint_aliases":{"token_endpoint":"https://mtls.example.com/token","revocation_endpoint":"http://x.example/"}"#
    let transport = Discovery.transport(more, keys: { "" }) { _, number throws(TransportError) in
      number == 3 ? .json("{}") : .tokens(1)
    }
    var provider: IdentityProvider = .machine(authentication: .tlsClientAuth, discovers: true)
    let bench = Bench(transport)
    #expect(await outcome(session(bench, MemoryStore(), provider)) == "access-1")
    #expect(transport.sent.last?.url.absoluteString == "https://mtls.example.com/token")
    #expect(transport.sent.last?.value(of: "Authorization") == nil && transport.forms.last?["client_id"] == "app")
    // An alias that is not https is not used, and reported.
    let report = await bench.client(provider).report()
    #expect(report.problems.map(\.text).contains { $0.contains("mtls_endpoint_aliases: revocation_endpoint is") })
    #expect(report.grants == ["client credentials"])
    provider = .machine(discovers: true)
    #expect(await outcome(session(bench, MemoryStore(), provider)) == "access-1")
    #expect(transport.sent.last?.url.absoluteString == "https://login.example.com/token")
  }

  @Test(
    "The claim cnf of a token is read, and nothing else is taken for one",
    arguments: [
      (#"{"cnf":{"x5t#S256":"A4DtL2JmUMhAsvJj5tKyn64SqzmuXbMrJa0n761y5v0"}}"#, "certificate"),
      (#"{"cnf":{"jkt":"0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}}"#, "key"), (#"{"cnf":{"jkt":"x"}}"#, nil),
      (#"{"cnf":"x"}"#, nil), (#"{"cnf":{"x5t#S256":7}}"#, nil), ("{}", nil), ("[]", nil), ("no JSON", nil),
    ] as [(String, String?)])
  func confirmation(claims: String, kind: String?) {
    let token = ["{}", claims].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".") + ".c2ln"
    let found: String? =
      switch TokenConfirmation(accessToken: token) {
      case .certificate: "certificate"
      case .key: "key"
      case nil: nil
      }
    #expect(found == kind)
    #expect(TokenConfirmation(accessToken: String(repeating: "a", count: 70_000)) == nil)
    #expect(TokenConfirmation(accessToken: "opaque") == nil)
  }

  @Test("The rules: a machine account authenticates, and has no person and no browser")
  func rules() {
    func faults(_ provider: IdentityProvider) -> [String] { provider.faults.map(\.field) }
    #expect(faults(.machine()) == [])
    #expect(faults(.machine(discovers: true)) == [])
    #expect(faults(.machine(secret: nil)) == ["grant"])
    #expect(faults(.machine(authentication: .tlsClientAuth)) == ["client_secret", "cert_file"])
    #expect(
      faults(.machine(secret: nil, authentication: .tlsClientAuth, certificate: nil)) == ["authentication"])
    #expect("\(ClientAuthentication.tlsClientAuth)" == "tls_client_auth")
  }
}

extension IdentityProvider {
  /// A machine account, with a certificate that no rule accepts.
  fileprivate static func machine(
    secret: String? = "s", authentication: ClientAuthentication? = nil, discovers: Bool = false,
    certificate: ClientCertificate? = ClientCertificate(chain: "", key: "")
  ) -> IdentityProvider {
    let trust = ConnectionTrust(clientCertificate: authentication == .tlsClientAuth ? certificate : nil)
    let variations = ProviderVariations(
      parameters: ["audience": "https://api.example"], grant: .clientCredentials)
    guard discovers else {
      return IdentityProvider(
        id: "work", name: "Work", tokenEndpoint: url("https://login.example.com/token"), clientID: "app",
        clientSecret: secret, scopes: ["files", "mail"], type: .oauth2, authentication: authentication, dpop: .off,
        trust: trust, variations: variations)
    }
    return IdentityProvider(
      id: "work", name: "Work", issuer: url("https://login.example.com"), clientID: "app", clientSecret: secret,
      scopes: [], authentication: authentication, dpop: .off, trust: trust, variations: variations)
  }
}
