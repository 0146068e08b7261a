import AppAttest
import ByteCoding
import Cryptography
import Foundation
import Locking
import Testing

@testable import GateRuntime

@Suite("Requests to Apple's data service")
struct RequestTests {
  private struct Header: Decodable { let alg: String, kid: String }
  private struct Claims: Decodable { let iss: String, iat: Int64 }

  @Test("Endpoint: the host is that of the key's environment")
  func hosts() {
    #expect(DataService.host(for: .production) == "data.appattest.apple.com")
    #expect(DataService.host(for: .development) == "data-development.appattest.apple.com")
    #expect(DataService.path == "/v1/attestationData")
  }

  @Test("Authorization: a JWT with ES256, the kid, the team and the time, without Bearer")
  func authorization() throws {
    let (key, publicKey) = try DeveloperKey.sample()
    let parts = try key.authorization(at: Scene.now).split(separator: ".", omittingEmptySubsequences: false)
    try #require(parts.count == 3)
    let decoder = JSONDecoder()
    let header = try decoder.decode(Header.self, from: Data(try #require(Base64URL.decode(parts[0]))))
    let claims = try decoder.decode(Claims.self, from: Data(try #require(Base64URL.decode(parts[1]))))
    #expect(header.alg == "ES256" && header.kid == "KEY1234567")
    #expect(claims.iss == "AAABBBCCC1" && claims.iat == Scene.now.seconds)
    let signature = try #require(Base64URL.decode(parts[2]))
    #expect(publicKey.isValidES256Signature(signature, for: Array("\(parts[0]).\(parts[1])".utf8)))
  }

  @Test("Authorization: one is used for half an hour, and never after the clock was set back")
  func renewal() throws {
    let (key, _) = try DeveloperKey.sample()
    var made = Authorizations()
    let first = try made.current(of: key, at: Scene.now)
    #expect(try made.current(of: key, at: Scene.now.advanced(by: .seconds(1799))) == first)
    let second = try made.current(of: key, at: Scene.now.advanced(by: .seconds(1800)))
    #expect(second != first)
    let earlier = try made.current(of: key, at: Scene.now.advanced(by: Scene.hour * -1))
    #expect(earlier != second)
    made.forget(key.name)
    #expect(try made.current(of: key, at: Scene.now.advanced(by: Scene.hour * -1)) != earlier)
  }

  @Test("Body: the newest receipt in base64 and nothing else, to the environment of the registration")
  func body() async throws {
    let scene = try Scene()
    let transport = ScriptedTransport([.init(status: 304)])
    let exchanger = ReceiptExchanger(transport: transport, judge: scene.judge)
    _ = await exchanger.exchange(scene.due(), with: try DeveloperKey.sample().key, at: Scene.now)
    let request = try #require(transport.requests.first)
    #expect(request.body == Array(Base64.encode(scene.first).utf8))
    #expect(request.environment == .development)
    #expect(request.authorization.split(separator: ".").count == 3 && !request.authorization.contains(" "))
  }
}

/// Answers in turn; throws an entry that is an error. The last one answers every further request.
final class ScriptedTransport: ExchangeTransport {
  private let script: LockedValue<[Result<ExchangeAnswer, ExchangeTransportError>]>
  private let sent = LockedValue<[ExchangeRequest]>([])

  init(results: [Result<ExchangeAnswer, ExchangeTransportError>]) { script = LockedValue(results) }
  convenience init(_ answers: [ExchangeAnswer]) { self.init(results: answers.map { .success($0) }) }

  var requests: [ExchangeRequest] { sent.withLock { $0 } }

  func send(_ request: ExchangeRequest) async throws(ExchangeTransportError) -> ExchangeAnswer {
    sent.withLock { $0.append(request) }
    return try script.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }.get()
  }
}
