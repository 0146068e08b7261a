import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import GateRuntime
import SimulatedDevice

/// A registered key whose device received its first receipt an hour ago.
struct Scene: Sendable {
  static let now = Timestamp(seconds: 1_800_000_000)
  static let hour = Duration.seconds(3600)
  static let day = Duration.seconds(86400)
  static let app = "AAABBBCCC1.com.example.app"

  /// Made once: generating keys takes longer than most tests.
  private static let sharedAuthority = Result { try TestAuthority(appID: app, at: now.advanced(by: day * -100)) }

  let authority: TestAuthority
  let device: MintedDevice
  let key: AttestedKey
  /// The receipt of the registration.
  let first: [UInt8]

  init(registeredAt instant: Timestamp = Scene.now.advanced(by: Scene.hour * -1)) throws {
    authority = try Self.sharedAuthority.get()
    device = try MintedDevice(app: SimulatedApp(appID: Self.app), authority: authority)
    let object = try device.attestations.attestation(
      of: device.key, clientDataHash: SHA256.hash([1]), at: instant)
    first = try AttestationObject(object).receipt.bytes
    guard let app = AppID(Self.app) else { throw FixtureError.unexpected }
    key = AttestedKey(
      keyID: device.keyID, publicKey: device.key.publicKey.x963, appID: app, environment: .development)
  }

  func due(failures: Int = 0) -> DueReceipt { DueReceipt(key: key, receipt: first, failures: failures) }

  var judge: AnswerJudge { AnswerJudge(roots: [authority.receiptRoot.certificate]) }

  /// A receipt of the type `RECEIPT`, whose content and message may be changed.
  func risk(
    _ metric: UInt32 = 3, at instant: Timestamp = Scene.now, of device: MintedDevice? = nil,
    _ alter: (inout AttestationAlterations) -> Void = { _ in }
  ) throws -> [UInt8] {
    var device = device ?? self.device
    alter(&device.attestations.alterations)
    return try device.attestations.riskReceipt(of: device.key, metric: metric, at: instant)
  }

  /// The judgement of a 200 with this receipt.
  func judgement(on receipt: [UInt8], at now: Timestamp = Scene.now) throws -> Judgement {
    judge.judge(
      ExchangeAnswer(status: 200, body: Array(Base64.encode(receipt).utf8)), to: try Receipt(first), of: key, at: now)
  }
}

extension Judgement {
  /// The code of an unusable answer.
  var fault: String? { if case .unusable(let fault) = self { fault.code } else { nil } }
}

extension DeveloperKey {
  static func sample(_ keyID: String = "KEY1234567") throws -> (key: DeveloperKey, publicKey: P256PublicKey) {
    let key = try P256PrivateKey()
    return (DeveloperKey(teamID: "AAABBBCCC1", keyID: keyID, key: key), key.publicKey)
  }
}
