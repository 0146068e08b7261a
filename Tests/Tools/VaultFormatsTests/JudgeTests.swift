import AuthenticatorVault
import Foundation
import OneTimePasswords
import TestSupport
import Testing

@testable import VaultFormats

/// Independent programs that read and write the same formats.
private let judges = PythonPackages(
  name: "vault-formats", packages: ["lib2fas==1.0.0", "otpa==0.0.2"], modules: "import lib2fas, otpa")

@Suite(
  "Independent programs and the files of authenticators", .serialized, .timeLimit(.minutes(10)),
  .enabled("lib2fas and otpa cannot be installed: that needs python3-venv and PyPI") { await judges.arePresent() })
struct JudgeTests {
  private let entries = (0..<25).map { number in
    VaultEntry(
      issuer: "Service \(number)", account: "user@example.org", secret: Array("the secret \(number)".utf8),
      kind: number % 3 == 0 ? .hotp : .totp(period: 30), algorithm: TOTPAlgorithm.allCases[number % 3],
      digits: number % 2 == 0 ? 6 : 8, counter: number % 3 == 0 ? UInt64(number) : 0, at: 5)
  }

  private func run(_ program: String, _ arguments: [String]) async throws -> [String] {
    let run = try await ChildProcess.run(judges.python, ["-c", program] + arguments)
    #expect(run.exit == .code(0), "\(run.errors)")
    return run.output
  }

  @Test("lib2fas opens what is written for 2FAS", arguments: [nil, "pass wörd"])
  func lib2fas(_ password: String?) async throws {
    let program = """
      import lib2fas, sys
      for s in lib2fas.load_services(sys.argv[1], passphrase=sys.argv[2] or None).all():
          print(s.name, s.otp.account, s.secret, s.otp.tokenType, s.otp.digits, s.otp.period, sep="|")
      """
    let written = try VaultWriter.write(entries, as: .twoFAS, password: password, at: 9)
    let lines = try await Places.withTemporaryFolder { folder in
      try Data(written.bytes).write(to: URL(fileURLWithPath: folder + "/backup.2fas"))
      return try await run(program, [folder + "/backup.2fas", password ?? ""])
    }
    let expected = entries.map { entry in
      let kind = entry.kind == .hotp ? "HOTP" : "TOTP"
      let period = entry.period.map(String.init) ?? "None"
      return "\(entry.issuer)|\(entry.account)|\(Base32.encode(entry.secret))|\(kind)|\(entry.digits)|\(period)"
    }
    #expect(Set(lines) == Set(expected) && lines.count == expected.count)
  }

  @Test func `otpa reads the migration links, and its own are read`() async throws {
    let program = "import sys; from otpa.cli import main; sys.exit(main(sys.argv[1:]))"
    func lines(_ format: VaultFormat) throws -> [String] {
      let written = try VaultWriter.write(entries, as: format, password: nil, at: 9)
      return String(decoding: written.bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }
    func read(_ lines: [String]) throws -> [VaultEntry] {
      let file = try VaultReader.read(Array(lines.joined(separator: "\n").utf8), at: 5) { "" }
      #expect(file.faults.isEmpty && file.missingParts.isEmpty)
      return file.entries
    }
    let theirList = try read(try await run(program, ["ca"] + lines(.google)))
    #expect(theirList.map(\.id) == entries.map(\.id) && theirList.map(\.counter) == entries.map(\.counter))
    #expect(try read(try await run(program, ["cm"] + lines(.otpauth)).shuffled()) == entries)
  }

  @Test("Python's cryptography opens what is encrypted for Aegis")
  func aegis() async throws {
    let program = """
      import base64, hashlib, json, sys
      from cryptography.hazmat.primitives.ciphers.aead import AESGCM
      file = json.load(sys.stdin)
      slot, = file["header"]["slots"]
      unhex = bytes.fromhex
      key = hashlib.scrypt(sys.argv[1].encode(), salt=unhex(slot["salt"]), n=slot["n"], r=slot["r"], p=slot["p"],
                           dklen=32, maxmem=1 << 28)
      def opened(key, params, text):
          return AESGCM(key).decrypt(unhex(params["nonce"]), text + unhex(params["tag"]), None)
      master = opened(key, slot["key_params"], unhex(slot["key"]))
      print(json.dumps(json.loads(opened(master, file["header"]["params"], base64.b64decode(file["db"])))))
      """
    let written = try VaultWriter.write(entries, as: .aegis, password: "pass wörd", at: 9)
    let run = try await ChildProcess.run("/usr/bin/python3", ["-c", program, "pass wörd"], input: written.bytes)
    #expect(run.exit == .code(0), "\(run.errors)")
    let plain = #"{"version":1,"header":{"slots":null,"params":null},"db":\#(run.output.joined())}"#
    #expect(try VaultReader.read(Array(plain.utf8), at: 5) { "" }.entries.map(EntryLook.removed) == entries)
  }
}
