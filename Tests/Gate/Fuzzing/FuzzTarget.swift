/// A parser of outside input, and the laws that hold of it whatever it is given.
struct FuzzTarget: Sendable {
  /// The word for it on the command line and in file names.
  let name: String
  /// Bytes of the longest input; what libFuzzer gives beyond it is cut off.
  var longest = 4096
  /// What inputs are made of: libFuzzer puts these words into them.
  var words: [String] = []
  /// Inputs to begin with: the laws hold of them, and at least one is accepted.
  let seeds: @Sendable () throws -> [[UInt8]]
  /// Whether the parser accepts `input`. Throws the law that it breaks with it.
  let accepts: @Sendable (_ input: [UInt8]) throws(InvariantViolation) -> Bool

  static let all: [FuzzTarget] = [
    .asn1, .assertion, .attestation, .authenticatorData, .body, .cbor, .certificate, .clientHello, .configuration,
    .dotEnv, .encodings, .frameHeader, .frameTracker, .headerHygiene, .nonce, .proxyHeader, .receipt, .registration,
    .requestHead, .responseHead, .upgradeAnswer, .webSocket,
  ]

  static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}

/// A law that an input shows to be broken: a finding.
struct InvariantViolation: Error, CustomStringConvertible {
  let law: String
  let detail: String
  var description: String { detail.isEmpty ? law : "\(law): \(detail)" }
}

/// States that `law` holds.
func require(_ holds: Bool, _ law: String, _ detail: @autoclosure () -> String = "") throws(InvariantViolation) {
  if !holds { throw InvariantViolation(law: law, detail: detail()) }
}
