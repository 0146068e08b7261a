/// A parser of outside input, and the invariants that pass for every input.
struct FuzzTarget: Sendable {
  /// The name on the command line and in file names.
  let name: String
  /// The length of the longest input in bytes. Longer inputs from libFuzzer are cut off.
  var longest = 4096
  /// The words that libFuzzer puts into inputs.
  var words: [String] = []
  /// The first inputs: the invariants pass for all of them, and at least one is accepted.
  let seeds: @Sendable () throws -> [[UInt8]]
  /// Reports whether the parser accepts `input`. Throws the violated invariant.
  let accepts: @Sendable (_ input: [UInt8]) throws(InvariantViolation) -> Bool

  #if GATE_ONLY
    static let all = ofGate
  #else
    static let all =
      ofGate + [.aegis, .base32, .idToken, .migration, .otpauth, .provider, .twoFAS, .vault] + strangerFiles
  #endif

  /// The parsers of the gate and of what it shares with the tools.
  private static let ofGate: [FuzzTarget] = [
    .androidChain, .androidKeyDescription, .androidStatusList, .asn1, .assertedRequest, .assertion, .attestation,
    .authenticatorData, .body, .cbor, .certificate, .clientHello, .configuration, .dotEnv, .encodings, .frameHeader,
    .frameTracker, .headerSanitizer, .inspection, .nonce, .proxyHeader, .proxyTunnel, .receipt, .registration,
    .requestHead, .responseHead, .token, .upgradeAnswer, .webSocket,
  ]

  static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}

/// An invariant that an input violates: a finding.
struct InvariantViolation: Error, CustomStringConvertible {
  let invariant: String
  let detail: String
  var description: String { detail.isEmpty ? invariant : "\(invariant): \(detail)" }
}

/// Throws a violation of `invariant` unless `isTrue`.
func require(_ isTrue: Bool, _ invariant: String, _ detail: @autoclosure () -> String = "") throws(InvariantViolation) {
  if !isTrue { throw InvariantViolation(invariant: invariant, detail: detail()) }
}
