import Foundation
import OneTimePasswords
import TestSupport
import Testing

@Suite("One-time codes")
struct CodeVectorTests {
  private static let seed = "1234567890123456789012345678901234567890123456789012345678901234"

  /// The secrets of RFC 6238, appendix B: as long as the hash.
  private static func secret(_ algorithm: TOTPAlgorithm) -> [UInt8] { Array(seed.utf8.prefix(algorithm.hashLength)) }

  private static func date(_ seconds: Int) -> Date { Date(timeIntervalSince1970: TimeInterval(seconds)) }

  @Test(
    "D-001 D-006 the codes of RFC 4226, appendix D",
    arguments: zip(
      UInt64(0)...9,
      [
        "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
      ]))
  func hotp(_ counter: UInt64, _ code: String) {
    #expect(OneTimePassword.standard.code(secret: Self.secret(.sha1), counter: counter) == code)
  }

  @Test(
    "D-001 D-002 D-003 D-004 D-005 T-34 the codes of RFC 6238, appendix B",
    arguments: [
      (59, ["94287082", "46119246", "90693936"]), (1_111_111_109, ["07081804", "68084774", "25091201"]),
      (1_111_111_111, ["14050471", "67062674", "99943326"]), (1_234_567_890, ["89005924", "91819424", "93441116"]),
      (2_000_000_000, ["69279037", "90698825", "38618901"]), (20_000_000_000, ["65353130", "77737706", "47863826"]),
    ])
  func totp(_ seconds: Int, _ codes: [String]) throws {
    for (algorithm, code) in zip(TOTPAlgorithm.allCases, codes) {
      let secret = Data(Self.secret(algorithm))
      #expect(try generateTOTP(secret: secret, time: Self.date(seconds), digits: 8, algorithm: algorithm) == code)
    }
  }

  @Test("D-003 the specification's secret is that of the RFC, in Base32")
  func specifiedSecret() throws {
    let secret = try Base32.decode("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
    #expect(secret == Self.secret(.sha1))
    #expect(try generateTOTP(secret: Data(secret), time: Self.date(59), digits: 8) == "94287082")
  }

  @Test("T-35 digits, periods and times outside their bounds are errors, not traps")
  func bounds() {
    let secret = Data(Self.secret(.sha1))
    for digits in [Int.min, -1, 0, 4, 11, 99, .max] {
      #expect(throws: OTPError.digits(digits)) { try generateTOTP(secret: secret, time: Self.date(0), digits: digits) }
    }
    for period in [Int.min, -30, 0, 301, .max] {
      #expect(throws: OTPError.period(period)) { try generateTOTP(secret: secret, time: Self.date(0), period: period) }
    }
    for time in [-1.0, -.infinity, .infinity, .nan, 1e300] {
      #expect(throws: OTPError.time) {
        try generateTOTP(secret: secret, time: Date(timeIntervalSince1970: time))
      }
    }
    #expect(throws: Never.self) { try generateTOTP(secret: Data(), time: Self.date(0), digits: 10, period: 300) }
  }

  @Test("D-006 a code of ten digits has its leading zeros")
  func tenDigits() throws {
    let password = try OneTimePassword(digits: 10)
    // RFC 4226, appendix D: the truncated value of counter 0 is 1284755224, that of counter 3 is 1726969429.
    #expect(password.code(secret: Self.secret(.sha1), counter: 0) == "1284755224")
    #expect(password.code(secret: Self.secret(.sha1), counter: 5) == "0868254676")
  }

  @Test("A counter may have any value")
  func counters() {
    for counter in [UInt64.min, .max, 1 << 63] {
      #expect(OneTimePassword.standard.code(secret: [1], counter: counter).count == 6)
    }
  }

  @Test("Codes of Steam have five characters of its alphabet")
  func steam() {
    for counter in UInt64(0)..<1000 {
      let code = OneTimePassword.steam.code(secret: Self.secret(.sha1), counter: counter)
      #expect(code.count == 5 && code.allSatisfy { "23456789BCDFGHJKMNPQRTVWXY".contains($0) })
    }
    // The truncated value 1284755224 in base 26, the lowest digit first.
    #expect(OneTimePassword.steam.code(secret: Self.secret(.sha1), counter: 0) == "GG5F5")
  }

  @Test("D-001 D-002 D-008 D-009 pyotp computes the same codes, for 10,000 random instants", .timeLimit(.minutes(2)))
  func pyotp() async throws {
    var generator = SystemRandomNumberGenerator()
    var (lines, codes): ([String], [String]) = ([], [])
    for _ in 0..<10_000 {
      let algorithm = TOTPAlgorithm.allCases.randomElement(using: &generator) ?? .sha1
      let secret = (0..<Int.random(in: 20...64, using: &generator)).map { _ in
        UInt8.random(in: .min ... .max, using: &generator)
      }
      let (digits, period) = (Int.random(in: 6...8, using: &generator), Int.random(in: 1...300, using: &generator))
      let time = Int.random(in: 0...20_000_000_000, using: &generator)
      lines.append(
        "\(Base32.encode(secret, padded: true)) \(algorithm.rawValue.lowercased()) \(digits) \(period) \(time)")
      codes.append(
        try generateTOTP(
          secret: Data(secret), time: Self.date(time), digits: digits, period: period, algorithm: algorithm))
    }
    let program = """
      import hashlib, pyotp, sys
      for line in sys.stdin:
          secret, algorithm, digits, period, time = line.split()
          totp = pyotp.TOTP(secret, digits=int(digits), interval=int(period), digest=getattr(hashlib, algorithm))
          print(totp.generate_otp(int(time) // int(period)))
      """
    let run = try await ChildProcess.run(
      "/usr/bin/python3", ["-c", program], input: Array((lines.joined(separator: "\n") + "\n").utf8))
    #expect(run.exit == .code(0), "\(run.errors.suffix(3))")
    #expect(run.output == codes)
  }

  @Test("oathtool computes the same codes", arguments: TOTPAlgorithm.allCases, 6...8)
  func oathtool(_ algorithm: TOTPAlgorithm, _ digits: Int) async throws {
    let secret = Self.secret(algorithm)
    for seconds in [0, 59, 1_111_111_109, 4_000_000_000] {
      let run = try await ChildProcess.run(
        Places.tool("oathtool"),
        [
          "--totp=\(algorithm.rawValue)", "--digits=\(digits)", "--now=@\(seconds)", "--base32",
          Base32.encode(secret),
        ])
      let code = try generateTOTP(
        secret: Data(secret), time: Self.date(seconds), digits: digits, algorithm: algorithm)
      #expect(run.output == [code], "\(run.errors)")
    }
  }
}
