import ByteCoding
import Foundation
import Testing

@testable import OIDCClient

@Suite("The rules of a client attestation")
struct AttestationRulesTests {
  @Test("An attestation for another client or key, without an end, or that is no JWT, is refused before it is sent")
  func unusable() throws {
    let (key, other) = (DPoPKey(), DPoPKey())
    func reason(_ text: String) -> String? {
      do throws(OIDCError) {
        _ = try AttestedClient(attestation: text, key: key, clientID: "app", now: SampleAttestation.now)
        return nil
      } catch {
        return "\(error.code): \(error)"
      }
    }
    let sample = SampleAttestation(key)
    func changed(_ change: (inout SampleAttestation) -> Void) -> String {
      var copy = sample
      change(&copy)
      return copy.text
    }
    #expect(reason(sample.text) == nil)
    #expect(
      reason(
        changed {
          $0.claims["nbf"] = "1800000299"; $0.claims["iat"] = "1800000299"
        }) == nil)
    #expect(reason(changed { $0.header["alg"] = #""RS256""# }) == nil)
    for (text, part) in [
      (SampleAttestation(other).text, "another key"), (changed { $0.jwk["x"] = #""AA""# }, "another key"),
      (changed { $0.claims["sub"] = #""wallet""# }, #"for "wallet", not for this client"#),
      (changed { $0.claims["sub"] = "[]" }, "not for this client"),
      (changed { $0.claims["exp"] = #""1800000600""# }, #"exp is "1800000600", not a number"#),
      (changed { $0.claims["exp"] = "null" }, "no exp"), (changed { $0.claims["exp"] = "1800000000" }, "has ended"),
      (changed { $0.claims["nbf"] = "1800000301" }, "its nbf is in the future"),
      (changed { $0.claims["iat"] = "1800000301" }, "its iat is in the future"),
      (changed { $0.claims["iat"] = #""now""# }, #"iat is "now", not a number"#),
      (changed { $0.header["typ"] = #""JWT""# }, #"its typ is "JWT""#),
      (changed { $0.header["typ"] = nil }, "its typ is"),
      (changed { $0.header["alg"] = #""none""# }, #"its alg is "none""#),
      (changed { $0.header["alg"] = #""NONE""# }, #"its alg is "NONE""#),
      (changed { $0.header["alg"] = #""HS256""# }, #"its alg is "HS256""#),
      (changed { $0.header["alg"] = nil }, "its alg is"), (changed { $0.header["alg"] = "1" }, "its alg is"),
      (changed { $0.jwk["kty"] = #""RSA""# }, "not one on P-256"),
      (changed { $0.jwk["crv"] = nil }, "not one on P-256"),
      (changed { $0.jwk["d"] = #""AA""# }, "contains the private key (d)"),
      (changed { $0.jwk["k"] = #""AA""# }, "contains the private key (k)"),
      (changed { $0.jwk = [:] }, "not one on P-256"),
      (Base64URL.encode(Array("no JSON".utf8)) + sample.text.drop { $0 != "." }, "its header is no JSON object"),
      ("", "no signed JWT"), ("a.b.c", "no signed JWT"), ("a.b", "no signed JWT"), ("a b", "no JWT"),
      (sample.text + "\r\nX: 1", "no JWT"), (String(repeating: "a", count: 8193), "no JWT"),
    ] {
      let found = try #require(reason(text), "\(part)")
      #expect(found.hasPrefix("client_attestation_unusable: ") && found.contains(part), "\(found)")
    }
  }
}
