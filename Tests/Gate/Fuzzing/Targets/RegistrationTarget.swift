import AttestGate
import ByteCoding

@testable import GateService

extension FuzzTarget {
  static let registration = FuzzTarget(
    name: "registration", longest: 1024,
    words: [
      "\"keyId\":", "\"attestation\":", "\"nonce\":", "\"platform\":", "\"android\"", "\"chain\":[", "\\u00e9", "null",
      "{", "}",
    ],
    seeds: { RegistrationInvariants.seeds.map { Array($0.utf8) } }, accepts: RegistrationInvariants.check)
}

/// A registration's JSON is three strings, or those of a chain, or is refused.
enum RegistrationInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let body = body(input) else { return false }
    let written = Self.written(body)
    try require(self.body(Array(written.utf8)) == body, "a written registration is read unchanged", written)
    try require(self.body(input + Array("}".utf8)) == nil, "no byte may follow a registration")
    return true
  }

  private static func body(_ json: [UInt8]) -> RegistrationBody? { try? RegistrationBody(json: json) }

  private static func written(_ body: RegistrationBody) -> String {
    switch body {
    case .appAttest(let claim):
      JSONText.object(["keyId": claim.keyID, "attestation": claim.attestation, "nonce": claim.nonce])
    case .android(let claim):
      #"{"platform":"android","nonce":"# + JSONText.quote(claim.nonce) + #","chain":["#
        + claim.chain.map(JSONText.quote).joined(separator: ",") + "]}"
    }
  }

  static let seeds = [
    #"{"keyId":"AAAA","attestation":"o2Nm","nonce":"00ff"}"#,
    #"{ "nonce" : "\u00e9\n\"", "attestation": "", "keyId": "a", "more": [1, {"x": null}] }"#,
    #"{"platform":"android","chain":["MIIB","","\u00e9"],"nonce":"00ff"}"#, #"{"platform":"ios","chain":{}}"#,
    #"{"keyId":1,"attestation":null,"nonce":"0"}"#, "[]", "{}", "null", #"{"keyId":"a","keyId":"b"}"#,
  ]
}
