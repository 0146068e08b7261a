import AttestGate
import ByteCoding

@testable import GateService

extension FuzzTarget {
  static let registration = FuzzTarget(
    name: "registration", longest: 1024,
    words: ["\"keyId\":", "\"attestation\":", "\"nonce\":", "\\u00e9", "null", "{", "}"],
    seeds: { RegistrationInvariants.seeds.map { Array($0.utf8) } }, accepts: RegistrationInvariants.check)
}

/// A registration's JSON is three strings or is refused.
enum RegistrationInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let claim = claim(input) else { return false }
    let written = JSONText.object(["keyId": claim.keyID, "attestation": claim.attestation, "nonce": claim.nonce])
    try require(self.claim(Array(written.utf8)) == claim, "a written registration is read unchanged", written)
    try require(self.claim(input + Array("}".utf8)) == nil, "no byte may follow a registration")
    return true
  }

  private static func claim(_ json: [UInt8]) -> RegistrationClaim? { (try? RegistrationBody(json: json))?.claim }

  static let seeds = [
    #"{"keyId":"AAAA","attestation":"o2Nm","nonce":"00ff"}"#,
    #"{ "nonce" : "\u00e9\n\"", "attestation": "", "keyId": "a", "more": [1, {"x": null}] }"#,
    #"{"keyId":1,"attestation":null,"nonce":"0"}"#, "[]", "{}", "null", #"{"keyId":"a","keyId":"b"}"#,
  ]
}
