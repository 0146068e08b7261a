import Foundation
import Wire
import Locking
import Testing

@testable import OIDCClient

@Suite("A logged transport")
struct LoggedTransportTests {
  private static let secrets: [String] = [
    "s3cret-code", "s3cret-verifier", "s3cret-token", "s3cret-password", "s3cret-client", "s3cret-device",
    "s3cret-query",
    "s3cret-user",
  ]

  private let lines = LockedValue<[String]>([])

  private func logged(_ answers: [Result<HTTPResponse, TransportError>]) -> (LoggedTransport, ScriptedTransport) {
    let transport = ScriptedTransport(answers)
    return (LoggedTransport(transport) { [lines] line in lines.withLock { $0.append(line) } }, transport)
  }

  private var text: String { lines.withLock { $0.joined(separator: "\n") } }

  @Test("C-022, C-042 The lines of every grant show what was done, and no token, code, password or proof")
  func grants() async throws {
    let grants: [TokenRequest.Grant] = [
      .authorizationCode(Self.secrets[0], redirectURI: "http://127.0.0.1/cb", verifier: Self.secrets[1]),
      .refreshToken(Self.secrets[2]), .deviceCode(Self.secrets[5]),
      .password(Credentials(username: Self.secrets[7], password: Self.secrets[3]), scopes: ["files"]),
    ]
    let (transport, script) = logged(grants.map { _ in .success(.tokens(1)) })
    let dependencies = SignInDependencies(transport: transport)
    let provider = IdentityProvider.plain(secret: Self.secrets[4], authentication: .post, dpop: .required)
    for grant in grants {
      _ = try await TokenEndpoint(provider: provider, dependencies: dependencies).redeem(grant, boundTo: DPoPKey())
    }
    #expect(!text.contains("s3cret") && !text.contains("eyJ") && !text.contains("access-1"))
    #expect(text.contains("POST https://login.example.com/token") && text.contains("-> 200, "))
    #expect(text.contains("grant_type=refresh_token") && text.contains("code_verifier=..."))
    #expect(script.sent.count == 4 && lines.withLock { $0.count } == 4)
  }

  private static let bodies: [String] = [
    #"{"access_token":"s3cret-token"}"#, "s3cret-token", "s3cret-token=1", "a=1&a=s3cret-token", "%ZZs3cret-token",
    "password=s3cret-password&password%00=s3cret-password", "", "\u{0}s3cret-token",
  ]

  @Test("Bodies that are no form, addresses with secrets and header fields show nothing of them", arguments: bodies)
  func hidden(body: String) async throws {
    let (transport, _) = logged([.success(.json("s3cret-token", status: 400, [HTTPField("X", "s3cret-token")]))])
    let request = HTTPRequest(
      method: .post, url: url("https://s3cret-user:s3cret-password@a.example/x?code=s3cret-query#s3cret-query"),
      headers: [HTTPField("Authorization", "Bearer s3cret-token"), HTTPField("Cookie", "s3cret-token")],
      body: Array(body.utf8))
    _ = try await transport.send(request)
    #expect(!text.contains("s3cret"), "\(text)")
    #expect(text.contains("POST https://a.example/x") && text.contains("-> 400, 12 bytes"))
  }

  @Test("A failure is logged with its reason, and thrown unchanged")
  func failure() async {
    let (transport, _) = logged([.failure(.untrusted("expired"))])
    await #expect(throws: TransportError.untrusted("expired")) {
      try await transport.send(HTTPRequest(url: url("https://a.example/x?code=s3cret-query")))
    }
    #expect(text == "GET https://a.example/x -> no trusted connection: expired")
  }

  @Test("A refusal that repeats a refresh token does not get into the error")
  func echo() async {
    let bench = Bench([
      .success(.json(#"{"error":"invalid_grant","error_description":"no token s3cret-token"}"#, status: 400))
    ])
    let endpoint = TokenEndpoint(provider: .plain(), dependencies: bench.dependencies)
    await #expect(throws: OIDCError.refused(ProviderRefusal(error: "invalid_grant"))) {
      try await endpoint.redeem(.refreshToken("s3cret-token"))
    }
  }
}
