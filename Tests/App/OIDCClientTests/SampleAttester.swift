import ByteCoding
import Foundation
import TestSupport

@testable import OIDCClient

/// The parts of a client attestation. The members have their values as JSON.
struct SampleAttestation {
  /// The time of `ManualClock`.
  static let now = Date(timeIntervalSince1970: 1_800_000_000)

  var header = ["typ": #""oauth-client-attestation+jwt""#, "alg": #""ES256""#]
  var claims = ["sub": #""app""#, "exp": "1800000600", "iat": "1800000000"]
  var jwk: [String: String]

  init(_ key: DPoPKey) {
    let point = key.coordinates
    jwk = ["kty": #""EC""#, "crv": #""P-256""#, "x": "\"\(point.x)\"", "y": "\"\(point.y)\""]
  }

  var text: String {
    func object(_ members: [String: String]) -> String {
      "{" + members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
    }
    let claims = self.claims.merging(["cnf": #"{"jwk":\#(object(jwk))}"#]) { $1 }
    return [object(header), object(claims), "signature"].map { Base64URL.encode(Array($0.utf8)) }
      .joined(separator: ".")
  }
}

/// Attests with one key, and counts.
final class SampleAttester: ClientAttester {
  let key = DPoPKey()
  let calls = Watched<[Bool]>([])

  func attestedClient(isRenewed: Bool) async throws(OIDCError) -> AttestedClient {
    calls.update { $0.append(isRenewed) }
    var sample = SampleAttestation(key)
    sample.claims["number"] = "\(calls.value.count)"
    return try AttestedClient(attestation: sample.text, key: key, clientID: "app", now: SampleAttestation.now)
  }
}

extension Bench {
  /// Its dependencies with an attester.
  func dependencies(_ attester: (any ClientAttester)?) -> SignInDependencies {
    let own = dependencies
    return SignInDependencies(
      transport: own.transport, now: own.now, random: own.random, sleep: own.sleep, attester: attester)
  }
}
