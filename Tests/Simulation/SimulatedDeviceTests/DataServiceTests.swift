import ByteCoding
import Cryptography
import Locking
import SimulatedDevice
import Testing

@Suite("The simulated data service")
struct DataServiceTests {
  private static let appID = "AAABBBCCC1.com.example.app"
  private static let now = Timestamp(seconds: 1_800_000_000)
  private static let authority = Result { try TestAuthority(appID: appID, at: now) }

  private let authority: TestAuthority
  private let key: P256PrivateKey

  init() throws {
    authority = try Self.authority.get()
    key = try P256PrivateKey()
  }

  private func service(at now: Timestamp = Self.now) -> SimulatedDataService {
    SimulatedDataService(authority: authority, keyID: "KEY1234567", publicKey: key.publicKey, now: { now })
  }

  private func authorization(
    alg: String = "ES256", kid: String = "KEY1234567", iss: String = "AAABBBCCC1", iat: Int64 = Self.now.seconds,
    key: P256PrivateKey? = nil
  ) throws -> String {
    let parts = [#"{"alg":"\#(alg)","kid":"\#(kid)"}"#, #"{"iss":"\#(iss)","iat":\#(iat)}"#]
    let signed = parts.map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
    return "\(signed).\(Base64URL.encode(try (key ?? self.key).es256Signature(for: Array(signed.utf8))))"
  }

  /// The first receipt of a key, in base64.
  private func receipt(_ device: SimulatedDeviceName? = nil, from authority: TestAuthority? = nil) throws -> [UInt8] {
    var mint = AttestationMint(authority: authority ?? self.authority, app: SimulatedApp(appID: Self.appID))
    mint.device = device
    let found = LockedValue<[UInt8]>([])
    mint.alterations.statement = { statement in found.withLock { $0 = statement.receipt ?? [] } }
    _ = try mint.attestation(of: P256PrivateKey(), clientDataHash: SHA256.hash([1]), at: Self.now)
    return Array(Base64.encode(found.withLock { $0 }).utf8)
  }

  @Test("Each rule of the authorization, broken alone, gives 401")
  func authorizationRules() throws {
    let (service, body) = (service(), try receipt())
    #expect(service.reply(to: body, authorization: try authorization()).status == 200)
    for text in [
      nil, "", "Bearer \(try authorization())", try authorization(alg: "RS256"), try authorization(kid: "OTHER12345"),
      try authorization(iss: "AAABBBCCC2"), try authorization(iat: Self.now.seconds - 3600),
      try authorization(iat: Self.now.seconds + 3600), try authorization(key: P256PrivateKey()),
    ] {
      #expect(service.reply(to: body, authorization: text).status == 401, "\(text ?? "none")")
    }
  }

  @Test("A receipt that is malformed or of another authority gives 400")
  func receipts() throws {
    let (service, token) = (service(), try authorization())
    let stranger = try TestAuthority(appID: Self.appID, at: Self.now)
    #expect(service.reply(to: Array("!".utf8), authorization: token).status == 400)
    #expect(service.reply(to: Array("AAAA".utf8), authorization: token).status == 400)
    #expect(service.reply(to: try receipt(from: stranger), authorization: token).status == 400)
  }

  @Test("The metric counts the keys of a device; the new receipt gets 304 until its not-before, and works after it")
  func metric() throws {
    let token = try authorization()
    var device = SimulatedDeviceName()
    device.attestedKeys = 7
    let reply = service().reply(to: try receipt(device), authorization: token)
    #expect(reply.status == 200 && reply.note.hasPrefix("metric 7"))
    #expect(service().reply(to: reply.body, authorization: token).status == 304)
    let later = Self.now.advanced(by: .seconds(86401))
    let next = service(at: later).reply(to: reply.body, authorization: try authorization(iat: later.seconds))
    #expect(next.status == 200 && next.note.hasPrefix("metric 7"))
    #expect(service().reply(to: try receipt(), authorization: token).note.hasPrefix("metric 1"))
  }

  @Test("Thirty days after the last attestation there is no data")
  func noData() throws {
    let later = Self.now.advanced(by: .seconds(31 * 86400))
    let reply = service(at: later).reply(to: try receipt(), authorization: try authorization(iat: later.seconds))
    #expect(reply.status == 404)
  }
}
