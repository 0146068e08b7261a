import ByteCoding
import Crypto
import Foundation
import Wire
import Locking
import TestSupport

@testable import OIDCClient

/// A transport that answers by a script and keeps the requests.
final class ScriptedTransport: HTTPTransport {
  typealias Answer = @Sendable (HTTPRequest, _ number: Int) async throws(TransportError) -> HTTPResponse

  let requests = Watched<[HTTPRequest]>([])
  private let answer: Answer

  init(_ answer: @escaping Answer) { self.answer = answer }

  /// Gives `answers` one after the other, and fails afterwards.
  convenience init(_ answers: [Result<HTTPResponse, TransportError>]) {
    self.init { _, number throws(TransportError) in
      guard number <= answers.count else { throw .malformed("the script has ended") }
      return try answers[number - 1].get()
    }
  }

  func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    var number = 0
    requests.update {
      $0.append(request)
      number = $0.count
    }
    return try await answer(request, number)
  }

  var sent: [HTTPRequest] { requests.value }
  var forms: [[String: String]] { sent.map(\.form) }
  func forms(to path: String) -> [[String: String]] { sent.filter { $0.url.path == path }.map(\.form) }
  func count(of path: String) -> Int { sent.count { $0.url.path == path } }
}

extension HTTPRequest {
  var form: [String: String] { FormEncoding.decode(String(decoding: body, as: UTF8.self)) ?? [:] }
  func value(of name: String) -> String? { headers.first { $0.name == name }?.value }
}

extension HTTPResponse {
  static func json(_ text: String, status: Int = 200, _ headers: [HTTPField] = []) -> HTTPResponse {
    HTTPResponse(status: status, headers: headers, body: Array(text.utf8))
  }

  static func refusal(_ code: String, status: Int = 400, _ headers: [HTTPField] = []) -> HTTPResponse {
    json(#"{"error":"\#(code)"}"#, status: status, headers)
  }

  /// Tokens with numbers in their names.
  static func tokens(
    _ number: Int, refresh: Bool = true, type: String = "Bearer", lifetime: Int = 300, idToken: String? = nil
  ) -> HTTPResponse {
    let more =
      (refresh ? #","refresh_token":"refresh-\#(number)""# : "") + (idToken.map { #","id_token":"\#($0)""# } ?? "")
    return json(#"{"access_token":"access-\#(number)","token_type":"\#(type)","expires_in":\#(lifetime)\#(more)}"#)
  }
}

/// A clock that moves when it is told to, or when a task pauses.
final class ManualClock: Sendable {
  private let time = LockedValue(Date(timeIntervalSince1970: 1_800_000_000))
  let pauses = Watched<[Duration]>([])
  /// Where each pause waits, so that the clock does not run ahead of the test; `nil` for nowhere.
  private let door = LockedValue<Door?>(nil)

  var now: Date { time.withLock { $0 } }
  func advance(by seconds: TimeInterval) { time.withLock { $0.addTimeInterval(seconds) } }

  func stop(at door: Door) { self.door.withLock { $0 = door } }

  func sleep(_ duration: Duration) async {
    advance(by: Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18)
    pauses.update { $0.append(duration) }
    if let door = door.withLock({ $0 }) { await door.pass() } else { await Task.yield() }
  }
}

/// Random bytes that count upwards, so that a test knows them and no two texts are the same.
final class CountedRandom: Sendable {
  private let next = LockedValue<UInt64>(0)

  func bytes(_ count: Int) -> [UInt8] {
    let number = next.withLock { next in
      next += 1
      return next
    }
    return (0..<count).map { $0 < 8 ? UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) : 0x5A }
  }
}

/// A door that tasks wait at until it is opened.
struct Door: Sendable {
  private let isOpen = Watched(false)

  func open() { isOpen.update { $0 = true } }
  func pass() async { _ = try? await isOpen.wait(for: "the door") { $0 ? true : nil } }
}

/// What a client needs, with everything in the hands of the test.
struct Bench: Sendable {
  let transport: ScriptedTransport
  let clock = ManualClock()
  let random = CountedRandom()

  init(_ transport: ScriptedTransport) { self.transport = transport }
  init(_ answers: [Result<HTTPResponse, TransportError>]) { transport = ScriptedTransport(answers) }

  var dependencies: SignInDependencies {
    SignInDependencies(
      transport: transport, now: { [clock] in clock.now }, random: { [random] in random.bytes($0) },
      sleep: { [clock] in await clock.sleep($0) })
  }

  func client(_ provider: IdentityProvider = .plain()) -> ProviderClient {
    ProviderClient(provider: provider, dependencies: dependencies)
  }
}

/// The URL that `text` is: a constant of a test.
func url(_ text: String) -> URL { URL(string: text) ?? URL(fileURLWithPath: "/" + text) }

extension IdentityProvider {
  /// OAuth 2.0 with known endpoints, so that the first request is the grant.
  static func plain(
    id: String = "work", clientID: String = "app", secret: String? = nil, authentication: ClientAuthentication? = nil,
    allowsPasswordGrant: Bool = false, dpop: DPoPUse = .off, host: String = "login.example.com", issuer: String? = nil,
    variations: ProviderVariations = ProviderVariations()
  ) -> IdentityProvider {
    IdentityProvider(
      id: id, name: "Work", tokenEndpoint: url("https://\(host)/token"),
      authorizationEndpoint: url("https://\(host)/authorize?tenant=a%20b"), clientID: clientID, clientSecret: secret,
      scopes: ["files", "mail"], type: .oauth2, issuer: issuer,
      endpoints: FurtherEndpoints(
        revocation: url("https://\(host)/revoke"), endSession: url("https://\(host)/end?tenant=1"),
        deviceAuthorization: url("https://\(host)/device")),
      authentication: authentication, allowsPasswordGrant: allowsPasswordGrant, dpop: dpop, variations: variations)
  }

  /// OpenID Connect with discovery.
  static func discovered(
    dpop: DPoPUse = .off, allowsPasswordGrant: Bool = false, secret: String? = nil
  ) -> IdentityProvider {
    IdentityProvider(
      id: "work", name: "Work", issuer: url("https://login.example.com"), clientID: "app", clientSecret: secret,
      allowsPasswordGrant: allowsPasswordGrant, dpop: dpop)
  }
}

/// Mints ID tokens of https://login.example.com with P-256, under a key identifier of its own.
struct Minter: Sendable {
  private let key = P256.Signing.PrivateKey()
  let keyID: String
  /// Whether tokens and keys name the key.
  let namesKey: Bool

  init(_ keyID: String = "k1", namesKey: Bool = true) { (self.keyID, self.namesKey) = (keyID, namesKey) }

  private var member: String { namesKey ? #","kid":"\#(keyID)""# : "" }

  /// The public key as a member of a JWKS.
  var jwk: String {
    let point = Array(key.publicKey.rawRepresentation)
    let (x, y) = (Base64URL.encode(Array(point[..<32])), Base64URL.encode(Array(point[32...])))
    return #"{"kty":"EC","crv":"P-256"\#(member),"x":"\#(x)","y":"\#(y)"}"#
  }

  var jwks: String { #"{"keys":[\#(jwk)]}"# }

  func token(
    at now: Date, subject: String = "ada", nonce: String? = nil, audience: String = "app", more: String = ""
  ) throws -> String {
    try signed(
      at: now, subject: subject, audience: "\"\(audience)\"",
      more: (nonce.map { #","nonce":"\#($0)""# } ?? "") + more)
  }

  func token(at now: Date, audiences: [String], party: String?) throws -> String {
    try signed(
      at: now, subject: "ada", audience: "[\(audiences.map { "\"\($0)\"" }.joined(separator: ","))]",
      more: party.map { #","azp":"\#($0)""# } ?? "")
  }

  private func signed(at now: Date, subject: String, audience: String, more: String) throws -> String {
    let seconds = Int(now.timeIntervalSince1970)
    let claims =
      #"{"iss":"https://login.example.com","sub":"\#(subject)","aud":\#(audience),"iat":\#(seconds),"#
      + #""exp":\#(seconds + 300)\#(more)}"#
    let header = #"{"alg":"ES256"\#(member)}"#
    let text = [header, claims].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
    return text + "." + Base64URL.encode(Array(try key.signature(for: Array(text.utf8)).rawRepresentation))
  }
}

enum Discovery {
  /// The document of https://login.example.com, with further members.
  static func document(_ more: String = "", issuer: String = "https://login.example.com") -> String {
    #"{"issuer":"\#(issuer)","authorization_endpoint":"https://login.example.com/authorize","#
      + #""token_endpoint":"https://login.example.com/token","jwks_uri":"https://login.example.com/keys","#
      + #""revocation_endpoint":"https://login.example.com/revoke""# + more + "}"
  }

  static let path = "/.well-known/openid-configuration"

  /// A transport with discovery document and keys, which asks `answer` for the rest.
  static func transport(
    _ more: String = "", keys: @escaping @Sendable () -> String, _ answer: @escaping ScriptedTransport.Answer
  ) -> ScriptedTransport {
    ScriptedTransport { request, number throws(TransportError) in
      switch request.url.path {
      case path: .json(document(more))
      case "/keys": .json(keys())
      default: try await answer(request, number)
      }
    }
  }
}
