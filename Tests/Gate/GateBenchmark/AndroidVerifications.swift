import AndroidKeyAttestation
import ArgumentParser
import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice

struct AndroidVerifications: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "android-verifications",
    abstract: "Verifies one Android certificate chain repeatedly, on one thread and without a store.",
    discussion: """
      Parses the chain and checks every rule. A minted chain has four certificates, of which three are signed with
      P-384. A chain from a file breaks some rules, such as the one about the challenge; that costs the same.
      """)

  @Option(help: "A chain in PEM or a JSON array of base64, instead of a minted one.")
  var chain: String?

  @Flag(help: "Forget the verified authorities each time, as for the first chain of a gate.")
  var forget = false

  @Option(help: "The time to measure in seconds.")
  var seconds = 3.0

  @Flag(help: "Print one JSON object.")
  var json = false

  func run() throws {
    let mint = try AndroidMint.factory()
    let encodings =
      try chain.map { try AndroidCertificateChain.encodings(in: Array(Data(contentsOf: URL(filePath: $0)))) }
      ?? mint.chain()
    let roots = chain == nil ? [try IssuerKey(spki: mint.rootKey)] : GoogleRoots.all
    let list = try AndroidStatusList(Array(#"{"entries":{"abc":{"status":"REVOKED"}}}"#.utf8))
    var cache = VerifiedSignatureCache()
    try measure {
      if forget { cache = VerifiedSignatureCache() }
      let verifier = AndroidAttestationVerifier(
        policy: AndroidAppPolicy(package: AndroidMint.package, signers: [AndroidMint.signer]), roots: roots,
        remembering: cache)
      do throws(AndroidAttestationRejection) {
        _ = try verifier.verify(
          AndroidCertificateChain(encodings), challenge: AndroidMint.challenge, statusList: list,
          at: AndroidMint.instant)
      } catch {
        let required: Set<AndroidAttestationStep> = [.format, .nameChaining, .signatures, .root, .authorities]
        if chain == nil || error.rules.contains(where: { required.contains($0.step) }) { throw error }
      }
    }
  }

  private func measure(_ verify: () throws -> Void) throws {
    try verify()
    var result = BenchResult(operation: "Android chain verification", inFlight: 1)
    let start = (wall: ContinuousClock.now, cpu: CPUTime.now)
    while result.seconds < seconds {
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
