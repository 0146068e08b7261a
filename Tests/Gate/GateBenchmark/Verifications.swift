import AppAttest
import ArgumentParser
import ByteCoding
import Cryptography
import Foundation
import GateFixtures
import SimulatedDevice

/// One attestation and the input of its verifier, made at the current time so that other verifiers accept it.
struct Fixture {
  let authority: TestAuthority
  let object: [UInt8]
  let keyID: KeyID
  let nonce: [UInt8]
  let instant = Timestamp.now()

  init() throws {
    authority = try TestAuthority(appID: GateBench.appID, at: instant)
    let device = try MintedDevice(app: SimulatedApp(appID: GateBench.appID), authority: authority)
    nonce = SecureRandom.bytes(32)
    keyID = device.keyID
    object = try device.attestations.attestation(
      of: device.key, clientDataHash: SHA256.hash(nonce), at: instant)
  }
}

struct Verifications: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Verifies one attestation repeatedly, on one thread and without a store.")

  enum Part: String, ExpressibleByArgument, CaseIterable { case attestation, chain }

  @Option(help: "The whole attestation with its receipt, or only its certificate chain.")
  var part = Part.attestation

  @Option(help: "The time to measure in seconds.")
  var seconds = 5.0

  @Option(help: "Verify this number of times instead.")
  var count: Int?

  @Flag(help: "Print one JSON object.")
  var json = false

  func run() throws {
    let specimen = try Fixture()
    guard let appID = AppID(GateBench.appID) else { throw FixtureError.unexpected }
    let roots = (specimen.authority.attestationRoot.certificate, specimen.authority.receiptRoot.certificate)
    let verifier = AttestationVerifier(
      apps: [appID: [.development]], attestationRoots: [roots.0], receiptRoots: [roots.1])
    let chains = ChainValidator(roots: [roots.0])
    let hash = ClientDataHash(bytes: SHA256.hash(specimen.nonce))
    try measure {
      let object = try AttestationObject(specimen.object)
      switch part {
      case .attestation:
        _ = try verifier.verify(object, keyID: specimen.keyID, clientDataHash: hash, at: specimen.instant)
      case .chain:
        _ = try chains.validate(leaf: object.leaf, intermediates: [object.intermediate], at: specimen.instant)
      }
    }
  }

  private func measure(_ verify: () throws -> Void) throws {
    try verify()
    var result = BenchResult(operation: "\(part) verification", inFlight: 1)
    let start = (wall: ContinuousClock.now, cpu: CPUTime.now)
    while count.map({ result.operations < $0 }) ?? (result.seconds < seconds) {
      try verify()
      result.operations += 1
      result.seconds = (ContinuousClock.now - start.wall) / .seconds(1)
    }
    let cpu = CPUTime.now
    result.userSeconds = cpu.user - start.cpu.user
    result.systemSeconds = cpu.system - start.cpu.system
    print(json ? try result.json() : result.text)
  }
}

struct Mint: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes an attestation for other verifiers: attestation.cbor, root.pem and claim.json.")

  @Argument(help: "An existing folder.")
  var folder: String

  func run() throws {
    let specimen = try Fixture()
    try Data(specimen.object).write(to: URL(filePath: folder + "/attestation.cbor"))
    let root = specimen.authority.attestationRoot.certificate
    try root.pem.write(toFile: folder + "/root.pem", atomically: true, encoding: .utf8)
    let claim = ["app_id": GateBench.appID, "key_id": specimen.keyID.base64, "nonce": Hex.encode(specimen.nonce)]
    try JSONEncoder().encode(claim).write(to: URL(filePath: folder + "/claim.json"))
  }
}
