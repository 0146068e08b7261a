import ByteCoding
@testable import MFADomain
import OneTimePasswords
import Testing

@Suite("Codes of authenticator apps")
struct TOTPTests {
  struct Vector: CustomTestStringConvertible, Sendable {
    let seconds: Int64
    let algorithm: TOTPParameters.Algorithm
    let code: String

    var testDescription: String { "\(algorithm.rawValue) at \(seconds)" }
  }

  /// RFC 6238, appendix B.
  static let vectors: [Vector] = [
    (59, "94287082", "46119246", "90693936"), (1_111_111_109, "07081804", "68084774", "25091201"),
    (1_111_111_111, "14050471", "67062674", "99943326"), (1_234_567_890, "89005924", "91819424", "93441116"),
    (2_000_000_000, "69279037", "90698825", "38618901"), (20_000_000_000, "65353130", "77737706", "47863826"),
  ].flatMap { (seconds: Int64, sha1: String, sha256: String, sha512: String) in
    [
      Vector(seconds: seconds, algorithm: .sha1, code: sha1),
      Vector(seconds: seconds, algorithm: .sha256, code: sha256),
      Vector(seconds: seconds, algorithm: .sha512, code: sha512),
    ]
  }

  @Test("B-073 D-001 D-002 the codes are those of RFC 6238", arguments: vectors)
  func rfc6238(_ vector: Vector) throws {
    let parameters = try #require(TOTPParameters(checkedAlgorithm: vector.algorithm, digits: 8, period: 30))
    let digits = Array("1234567890".utf8)
    let secret = (0..<parameters.secretLength).map { digits[$0 % 10] }
    let step = parameters.step(at: Timestamp(seconds: vector.seconds))
    #expect(parameters.code(secret, step: step) == vector.code)
  }

  @Test("B-080 T-33 a secret has at least 160 bits", arguments: TOTPParameters.Algorithm.allCases)
  func secretLength(_ algorithm: TOTPParameters.Algorithm) throws {
    let parameters = try #require(TOTPParameters(checkedAlgorithm: algorithm, digits: 6, period: 30))
    #expect(parameters.secretLength * 8 >= 160)
  }

  @Test("D-007 the codes of one step before and after are accepted, each once, and those of two steps are not")
  func skew() throws {
    let parameters = TOTPParameters.standard
    let secret = Array("12345678901234567890".utf8)
    let now = Timestamp(seconds: 1_111_111_109)
    let step = parameters.step(at: now)
    for (offset, isAccepted) in [(-2, false), (-1, true), (0, true), (1, true), (2, false)] as [(Int64, Bool)] {
      let code = parameters.code(secret, step: step + offset)
      #expect((parameters.matchingStep(code, secret, at: now, after: -1) == step + offset) == isAccepted, "\(offset)")
      #expect(parameters.matchingStep(code, secret, at: now, after: step + offset) == nil)
    }
  }

  @Test("B-073 digits and periods out of bounds are refused", arguments: [(5, 30), (9, 30), (6, 0), (6, 301)])
  func bounds(_ digits: Int, _ period: Int) {
    #expect(TOTPParameters(checkedAlgorithm: .sha1, digits: digits, period: period) == nil)
  }
}
