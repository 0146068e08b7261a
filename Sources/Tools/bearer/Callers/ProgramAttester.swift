internal import Commands
internal import Dispatch
internal import Foundation
internal import OIDCClient

/// Gets client attestations from a program of the user's, such as `attest token --client-attestation`.
///
/// The attestation is kept for the requests of this process. It runs the program again when the attestation is about to
/// end, or when the provider asks for a newer one.
actor ProgramAttester: ClientAttester {
  /// The time that the program has: it may have to register a device first.
  private static let limit = 60
  /// An attestation that ends sooner is not used any more, in seconds: it has to reach the provider.
  private static let margin: TimeInterval = 30

  private let source: ProviderUse.AttestationSource
  private let clientID: String
  private let now: @Sendable () -> Date
  private var current: AttestedClient?

  init(_ source: ProviderUse.AttestationSource, clientID: String, now: @escaping @Sendable () -> Date = { Date() }) {
    self.source = source
    self.clientID = clientID
    self.now = now
  }

  func attestedClient(isRenewed: Bool) async throws(OIDCError) -> AttestedClient {
    if let current, !isRenewed, current.expiresAt.timeIntervalSince(now()) > Self.margin { return current }
    let text = try await printed()
    let made = try AttestedClient(attestation: text, key: try key(), clientID: clientID, now: now())
    current = made
    return made
  }

  /// What the program prints, without line breaks at the end. Its errors appear among those of this program.
  private func printed() async throws(OIDCError) -> String {
    let program = source.command[0]
    let outcome = await withCheckedContinuation { continuation in
      // The call blocks, so that it has a thread of its own.
      DispatchQueue(label: "attester").async { [source] in
        continuation.resume(
          returning: HelperProgram.run(
            source.command, input: [], keepsOutput: true, within: Self.limit, mostOutput: AttestedClient.longest + 1
          ) { StandardError.write($0) })
      }
    }
    guard let outcome else { throw .attestation("cannot start \(program): check its name and PATH") }
    guard let status = outcome.status else {
      throw .attestation("\(program) did not end within \(Self.limit) s, or printed more than an attestation")
    }
    guard status == 0 else {
      let end = outcome.signal.map { "by signal \($0)" } ?? "with exit code \((status >> 8) & 0xFF)"
      throw .attestation("\(program) ended \(end)")
    }
    var bytes = outcome.output[...]
    while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The key of the attestation. The program may have just made it.
  private func key() throws(OIDCError) -> DPoPKey {
    let text: String
    do throws(SecretFileError) { text = try SecretFile.text(source.keyFile) } catch {
      throw .attestation(error.reason)
    }
    guard let key = DPoPKey(pem: text) else {
      throw .attestation("\(source.keyFile) has no private key on P-256 in PEM")
    }
    return key
  }
}
