import AuthenticatorVault
import Foundation
import TestSupport
import Testing

@testable import VaultFormats

private let own = "Tests/World/authenticator/"
private let password = "pass wörd"

private func bytes(_ name: String) throws -> [UInt8] {
  Array(try Data(contentsOf: ProjectFile.url(own + name)))
}

private func shown(_ entry: VaultEntry) -> String {
  "\(entry.name) \(entry.kind) \(entry.algorithm) \(entry.digits) \(entry.tags) \(entry.note)"
}

/// A password was asked for.
private struct Asked: Error {}

/// Exports that their apps encrypt under a key of Argon2id. Python has made them: `Tests/World/README.md`.
@Suite("Encrypted exports with Argon2id", .timeLimit(.minutes(3)))
struct EncryptedExportTests {
  /// Stratum's backup, by argon2-cffi and Python's cryptography.
  private static let stratum = """
    QVVUSEVOVElDQVRPUlBSTyAhIiMkJSYnKCkqKywtLi8MDQ4PEBESExQVFhcYHUlKxLUeKiJ8I+OVPX0haBAz4TAntbrqOgIdKlGv
    wWg4rlefWyxrJZl6AYPfHhsifvPbri1XyQ8mdl+bS+6Xl8Q4WcHYPVHMYlvzVIp7v3VZrHwKOu7ZPpz8pecde5+fOX5+Z8b2JMg0
    mkg1Rn4fSXfWLZJF5+BZrhhoSvq0MdbHkoo2FeoApJBMKatsd5DKAk6T/8ZdXGUo8tDXrTo3m+cDvQErWRFNIKjKR2Uae88HCBC1
    PeijGWd1eeJhl0xrLE+l1eHxNipQoG53yDNpgqFmMTa01fw3ne+oDVA4o8LKLgoQ1bDDPE5GLwB8GDu1XObIPqVbF4oYDAOhllbh
    SKA3uQS9i/EdN1cVU1NN07BywsVYw5QrWuJxokslfk8sNKBwO2d6VIAi+pvOYGKJcPfAJEGct+rVCuk3kJFzryKenZSUOudFZcg=
    """

  private static func stratumBytes() throws -> [UInt8] { try decoded(stratum) }

  private static func decoded(_ base64: String) throws -> [UInt8] {
    Array(try #require(Data(base64Encoded: base64, options: .ignoreUnknownCharacters)))
  }

  /// OTPClient's database of version 3, by libargon2 and Python's cryptography: one pass, 8 MiB, two lanes.
  private static let otpClient3 = """
    T1RQQ2xpZW50AAAAAwECAwQFBgcICQoLDA0ODxAgISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+PwAAAAEAACAAAAAAAmyw8UUt
    hwYN3sQyeqJRhZm/BuSJ/V0LlaMe8e/zZ/dnB62KiVJR/GatFHDohhl0nx6IoQZIhxllhlXdWM0DwPS1pkls0lrvlt6G/0mIOC9MuGqW
    sqM7kNtb1WA5deXHjtaFnfMN3u7FJ3w+RmHsmJ65/2Hv4MtDIQSXTZKQ7DpxKFInBHyUIybNk7E0er23jaNIavGM5fSh9fxu0qKyFcKi
    Cr+kIK8jXu3JrnE5P6J0mK2MFTwnqM+A3D5/xCYY8YqePWg7Vc4R7eeHpr5X94nxkTcWSu3v3xBV6z3Fi091O3Qgl1MkUsEE7WyGnAJS
    DS7NdhoSVFpT2LcH
    """
  /// One of version 2, whose password lacks its last byte.
  private static let otpClient2 = """
    T1RQQ2xpZW50AAAAAgAAAAECAwQFBgcICQoLDA0ODxAgISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+PwEAAAAAIAAAAgAAAOlf
    ePt1OG5GvcPI3ITcSMoIRuNABG+tV4ON0Cx1NjfVBlzZAije/Fv3JtF1n2msvP9qhRbFm2MZPbiG47fCnXFMrp8tKPitQjfXWSzmZXwl
    /Nnpn2/taJrWhXon5ExxUVGni7Vst9mt4lgYdLBNUfSe1yqYXEL3eEl99Yhkvay69EJnETCL4ofIEBl078w/gwEaSfLouuuAxQzHs+lr
    +DamKNdkaWdHgK46ycH84FO7SnF3xhgkyCPfa272hfje2D9fMuYjlru/bw9G6FZjVh1V15uFuTXl0N46/jjmVnyho3wBcrf+C8tigTZU
    +hqE0VIL5K2DnSAHZxAM4w==
    """

  /// ente's export with other members.
  private static func ente(_ change: (inout [String: Any], inout [String: Any]) -> Void) throws -> [UInt8] {
    let object = try JSONSerialization.jsonObject(with: Data(bytes("ente_encrypted.json")))
    var export = try #require(object as? [String: Any])
    var parameters = try #require(export["kdfParams"] as? [String: Any])
    change(&export, &parameters)
    export["kdfParams"] = parameters
    return Array(try JSONSerialization.data(withJSONObject: export))
  }

  @Test(
    "the export of ente Auth is opened by its password alone, with quoted links and groups, without thrown-away ones")
  func ente() throws {
    let content = try bytes("ente_encrypted.json")
    #expect(VaultReader.detect(content) == .ente)
    let file = try VaultReader.read(content, at: 5) { password }
    #expect(file.format == .ente && file.faults.isEmpty && file.discarded.map(\.place) == ["line 3"], "\(file)")
    #expect(
      file.entries.map(shown) == [
        #"Ente: bob totp(period: 30) sha1 6 ["t"] n"#, "Old: eve totp(period: 30) sha1 6 [] ",
      ])
    #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(content, at: 5) { "pass word" } }
    // A message that does not end its stream may be cut off.
    #expect(throws: VaultFormatError.wrongPassword) {
      try VaultReader.read(try bytes("ente_not_final.json"), at: 5) { password }
    }
  }

  @Test("an export of ente Auth that asks for too much or is malformed costs no question, and names its numbers")
  func bounds() throws {
    for (memory, passes, words) in [
      (1 << 30 + 1, 4, "1073741825 bytes of memory, more than 1 GiB"), (1 << 40, 1, "more than 1 GiB"),
      (Int.max, Int.max, "more than 1 GiB"), (8191, 4, "8191 bytes"), (0, 4, "0 bytes"), (-1, 4, "-1 bytes"),
      (1 << 30, 5, "5 passes and 1073741824 bytes of memory, which takes too long"), (8192, Int.max, "too long"),
      (1 << 20, 0, "0 passes"), (1 << 20, -1, "-1 passes"), (Int.min, Int.min, "passes"),
    ] {
      let export = try Self.ente { _, parameters in
        parameters["memLimit"] = memory
        parameters["opsLimit"] = passes
      }
      #expect {
        try VaultReader.read(export, at: 5) { throw Asked() }
      } throws: { error in
        if case VaultFormatError.keyDerivation(let what) = error { what.contains(words) } else { false }
      }
    }
    for (member, value) in [
      ("encryptionNonce", ""), ("encryptionNonce", "AAAA"), ("encryptedData", ""), ("encryptedData", "AAAA"),
      ("encryptedData", "?"),
    ] {
      let export = try Self.ente { export, _ in export[member] = value }
      #expect(throws: VaultFormatError.malformed(.ente)) { try VaultReader.read(export, at: 5) { throw Asked() } }
    }
    for salt in ["", "AAAA", Data(repeating: 0, count: 17).base64EncodedString()] {
      let export = try Self.ente { _, parameters in parameters["salt"] = salt }
      #expect(throws: VaultFormatError.malformed(.ente)) { try VaultReader.read(export, at: 5) { throw Asked() } }
    }
  }

  @Test("the exports of Proton Authenticator and Stratum are opened by their passwords alone")
  func others() throws {
    for (content, format, entries) in [
      (
        try bytes("proton_encrypted.json"), VaultFormat.proton,
        ["Proton: a totp(period: 30) sha1 6 [] n", "me steam sha1 5 [] "]
      ),
      (try Self.stratumBytes(), .stratum, [#"Stratum: a totp(period: 30) sha1 6 ["Web"] "#]),
    ] {
      let file = try VaultReader.read(content, at: 5) { password }
      #expect(file.format == format && file.faults.isEmpty && file.entries.map(shown) == entries, "\(file)")
      #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(content, at: 5) { "pass word" } }
    }
  }

  @Test("the database of OTPClient is opened by its password alone, in both versions, and unchanged")
  func otpClient() throws {
    let versions = [(try Self.decoded(Self.otpClient3), 73), (try Self.decoded(Self.otpClient2), 76)]
    for (content, header) in versions {
      #expect(VaultReader.detect(content) == .otpClient)
      let file = try VaultReader.read(content, at: 5) { password }
      #expect(file.format == .otpClient && file.faults.isEmpty, "\(file)")
      #expect(
        file.entries.map(shown) == [
          #"OTPClient: a totp(period: 30) sha1 6 ["g"] "#, "B: b hotp sha256 8 [] ",
        ])
      #expect(file.entries.last?.counter == 5)
      #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(content, at: 5) { "pass word" } }
      for position in [header - 60, header - 13, header, content.count - 1] {
        var changed = content
        changed[position] ^= 1
        #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(changed, at: 5) { password } }
      }
      for count in [13, header - 1, header + 15] {
        #expect(throws: VaultFormatError.malformed(.otpClient)) {
          try VaultReader.read(Array(content.prefix(count)), at: 5) { throw Asked() }
        }
      }
      // The highest byte of each number.
      let isBigEndian = header == 73
      for number in 0..<3 {
        var changed = content
        changed[header - 12 + 4 * number + (isBigEndian ? 0 : 3)] = 0xFF
        #expect {
          try VaultReader.read(changed, at: 5) { throw Asked() }
        } throws: { error in
          if case VaultFormatError.keyDerivation(let what) = error { what.hasPrefix("Argon2id with ") } else { false }
        }
      }
    }
    // Version 3 has the bytes of the password, all of them.
    #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(versions[0].0, at: 5) { "pass wör" } }
  }

  @Test("no beginning of an encrypted export and no changed byte is opened")
  func damage() throws {
    let stratum = try Self.stratumBytes()
    for count in [16, 31, 44, 59] {
      #expect(throws: VaultFormatError.malformed(.stratum)) {
        try VaultReader.read(Array(stratum.prefix(count)), at: 5) { throw Asked() }
      }
    }
    for position in [20, 40, 60, stratum.count - 1] {
      var changed = stratum
      changed[position] ^= 1
      #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(changed, at: 5) { password } }
    }
    for text in [#""salt":"AAAA""#, #""content":"AAAA""#] {
      let member = text.prefix { $0 != ":" }
      let export = String(decoding: try bytes("proton_encrypted.json"), as: UTF8.self)
        .replacing(try Regex(String(member) + #":"[^"]*""#), with: text)
      #expect(throws: VaultFormatError.malformed(.proton)) {
        try VaultReader.read(Array(export.utf8), at: 5) { throw Asked() }
      }
    }
    let text = try Self.enteData()
    let data = try #require(Data(base64Encoded: text))
    for position in [0, data.count / 2, data.count - 1] {
      var changed = data
      changed[position] ^= 1
      let export = try Self.ente { export, _ in export["encryptedData"] = changed.base64EncodedString() }
      #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(export, at: 5) { password } }
    }
  }

  private static func enteData() throws -> String {
    var data: String?
    _ = try ente { export, _ in data = export["encryptedData"] as? String }
    return try #require(data)
  }

  @Test("the memory that is left is that of the machine or of the narrowest control group, without cached files")
  func memory() async throws {
    try await Places.withTemporaryFolder { root in
      func write(_ text: String, _ path: String) throws {
        let file = URL(fileURLWithPath: root + path)
        try FileManager.default.createDirectory(
          at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
      }
      #expect(MemoryAllowance.available(under: root) == nil)
      try write("MemTotal: 9 kB\nMemAvailable:    2048 kB\n", "/proc/meminfo")
      #expect(MemoryAllowance.available(under: root) == 2 << 20)
      try write("1:cpu:/x\n0::/a/b\n", "/proc/self/cgroup")
      #expect(MemoryAllowance.available(under: root) == 2 << 20)
      try write("max\n", "/sys/fs/cgroup/a/b/memory.max")
      try write("4096\n", "/sys/fs/cgroup/a/memory.max")
      try write("3000\n", "/sys/fs/cgroup/a/memory.current")
      #expect(MemoryAllowance.available(under: root) == 1096)
      try write("anon 1\ninactive_file 500\nactive_file 500\nx\n", "/sys/fs/cgroup/a/memory.stat")
      #expect(MemoryAllowance.available(under: root) == 2096)
      try write("9000\n", "/sys/fs/cgroup/a/memory.current")
      #expect(MemoryAllowance.available(under: root) == 0)
      for text in ["", "MemAvailable:", "MemAvailable: x kB", "MemAvailable: 9223372036854775807 kB"] {
        try write(text, "/proc/meminfo")
        #expect(MemoryAllowance.available(under: root) == 0, "\(text)")
      }
      try write("9223372036854775807\n", "/sys/fs/cgroup/a/memory.max")
      #expect(MemoryAllowance.available(under: root) == nil)
    }
    let available = try #require(MemoryAllowance.available())
    #expect(available > 0)
    #expect {
      try FileCipher.checkMemory(.max)
    } throws: { error in
      if case VaultFormatError.memory(let needed, _) = error { needed == Int.max >> 20 } else { false }
    }
  }

  @Test("scrypt in more memory than is left is refused before it takes any")
  func scryptMemory() throws {
    let (salt, cost) = (Data(repeating: 1, count: 16), 1 << 14)
    #expect(throws: VaultFormatError.memory(needed: 16, available: 15)) {
      try FileCipher.scrypt("test", salt: salt, n: cost, r: 8, p: 1, available: 79 << 20)
    }
    for available in [80 << 20, nil] {
      _ = try FileCipher.scrypt("test", salt: salt, n: cost, r: 8, p: 1, available: available)
    }
  }
}
