import Foundation
import GateProcesses
import MFAFixtures
import QRCodes
import QREncoding
import SimulatedDevice
import TestSupport
import Testing

/// An app on the command line: `attest enroll`, `signin` and so on, with a device of its own.
private struct CommandLineApp: Sendable {
  let household: BackendBehindGate
  let device: String

  init(_ household: BackendBehindGate, device: String = "phone") async throws {
    self.household = household
    self.device = device
    let made = try await ChildProcess.run(
      Places.product("attest"), ["device", "new", device, "--authority", household.gate.folder.path],
      environment: environment)
    guard made.exit == .code(0) else { throw Unexpected(made.errors.joined(separator: "\n")) }
  }

  var environment: [String: String?] { ["XDG_DATA_HOME": household.data, "SALLYPORT_AUTHORITY": nil] }

  func arguments(_ command: [String]) -> [String] {
    [command[0], household.socketURL, "--authority", household.gate.folder.path, "--device", device]
      + command.dropFirst()
  }

  func run(_ command: String...) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await run(command)
  }

  func run(_ command: [String]) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ChildProcess.run(Places.product("attest"), arguments(command), environment: environment)
  }

  /// Runs a command of a group, such as `factor status`.
  func run(
    in group: String, _ command: [String]
  ) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ChildProcess.run(
      Places.product("attest"), [group] + arguments(command), environment: environment)
  }

  func phone(_ command: String...) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ChildProcess.run(
      Places.product("attest"), ["phone"] + command + ["--device", device], environment: environment)
  }

  /// The tokens of the session and of the trust, as the files of the device have them.
  func keptSecrets() throws -> [String] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: household.data)
    let files = names.filter { $0.hasSuffix(".session.json") || $0.hasSuffix(".trust.json") }
    return try files.flatMap { name in
      let members = try JSONValue(Data(contentsOf: URL(fileURLWithPath: household.data + "/" + name))).members ?? [:]
      return members.filter { $0.key.lowercased().contains("token") }.compactMap(\.value.text)
    }
  }

  /// The number of keys on the phone.
  func countKeys() async throws -> Int {
    let shown = try await phone("show", "--json")
    return try JSONValue(Data(try #require(shown.output.first).utf8))["keys"]?.count ?? -1
  }

  /// Starts a command and kills the process, as by a power cut, after `delay`.
  func kill(_ command: String..., after delay: Duration) async throws {
    let process = try ChildProcess(Places.product("attest"), arguments(command), environment: environment)
    try await Task.sleep(for: delay)
    process.send(SIGKILL)
    _ = try await process.exit()
  }
}

@Suite("The app on the command line, through the real gate", .serialized, .timeLimit(.minutes(5)))
struct AppCommandTests {
  @Test(
    "A-045 A-062 A-136 A-137 the device is enrolled, signs in, is changed and removed by commands",
    arguments: ["rest", "socket"])
  func life(_ way: String) async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      var run = try await app.run(
        "enroll", "--user", "ada", "--phone", "+15550100", "--answers", "approve,approve", "--by", way)
      #expect(run.output == ["enrolled ada: secureEnclave, unlocked by biometric"], "\(run.errors)")
      run = try await app.run("enroll")
      #expect(run.exit == .code(77) && run.errors.first == "error: this device is enrolled already")
      run = try await app.run("signin", "--answers", "approve", "--by", way)
      #expect(run.output == ["signed in as ada"], "\(run.errors)")
      run = try await app.run("upgrade", "--with", "passcode", "--answers", "approve", "--by", way)
      #expect(run.output == ["The server has the new key."], "\(run.errors)")
      #expect(try await app.phone("show").output.contains { $0.hasSuffix("devicePasscode, in the Secure Enclave") })
      #expect(try await app.countKeys() == 1)
      run = try await app.run("signin", "--answers", "approve", "--json", "--by", way)
      #expect(run.output == [#"{"scope":"full","user":"ada"}"#], "\(run.errors)")
      run = try await app.run("downgrade", "--by", way)
      #expect(run.output == ["This device signs in by SMS codes now."], "\(run.errors)")
      #expect(try await app.countKeys() == 0)
      run = try await app.run("signin", "--by", way)
      #expect(run.exit == .code(66) && run.errors.last?.contains("--messages FILE") == true, "\(run.errors)")
      run = try await app.run("signin", "--messages", household.log, "--by", way)
      #expect(run.output == ["signed in as ada"], "\(run.errors)")
      run = try await app.run("unenroll", "--by", way)
      #expect(run.output == ["This device is not enrolled any more."], "\(run.errors)")
      run = try await app.run("downgrade")
      #expect(run.exit == .code(77) && run.errors.last == "hint: `attest enroll` enrols it")
    }
  }

  @Test("A device that is not enrolled, or whose phone has no passcode, is told what it can do")
  func advice() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      var run = try await app.run("signin", "--user", "ada", "--answers", "approve")
      #expect(run.exit == .code(77) && run.errors.first == "error: This device is not enrolled - enroll it first")
      #expect(run.errors.last == "hint: `attest enroll URL --user NAME` enrols it", "\(run.errors)")
      run = try await app.run("upgrade")
      #expect(run.exit == .code(77) && run.errors.first == "error: this device is not enrolled", "\(run.errors)")
      run = try await app.run(
        "enroll", "--user", "ada", "--phone", "+15550100", "--with", "passcode", "--answers", "approve")
      #expect(run.exit == .code(0), "\(run.errors)")
      _ = try await app.phone("set", "--passcode", "off")
      run = try await app.run("signin", "--answers", "approve")
      #expect(run.exit == .code(77) && run.errors.first == "error: Critical: No device security", "\(run.errors)")
      #expect(
        run.errors.last?.hasPrefix("hint: `attest downgrade URL` lets the device sign in") == true, "\(run.errors)")
      run = try await app.run("downgrade")
      #expect(run.exit == .code(0), "\(run.errors)")
      run = try await app.run("upgrade", "--with", "passcode")
      #expect(
        run.errors.first == "error: the device signs in by SMS codes, and this change is not offered", "\(run.errors)")
    }
  }

  @Test("A phone without a face does not renew a key of the passcode for a user who asks for a face")
  func upgradeWithoutFace() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      var run = try await app.run(
        "enroll", "--user", "ada", "--phone", "+15550100", "--with", "passcode", "--answers", "approve")
      #expect(run.exit == .code(0), "\(run.errors)")
      _ = try await app.phone("set", "--face", "off")
      run = try await app.run("signin", "--answers", "approve")
      #expect(run.output == ["signed in as ada"], "\(run.errors)")
      run = try await app.run("upgrade", "--answers", "approve")
      #expect(run.exit == .code(77) && run.output.isEmpty, "\(run)")
      let refusal = "error: the device signs in by a key that the passcode unlocks, and this change is not offered"
      #expect(run.errors.first == refusal, "\(run.errors)")
      #expect(run.errors.last?.hasSuffix("--with passcode renews the key") == true, "\(run.errors)")
      run = try await app.run("upgrade", "--with", "passcode", "--answers", "approve")
      #expect(run.output == ["The server has the new key."], "\(run.errors)")
    }
  }

  @Test("A change of the phone that cannot be saved is a failure, and the phone is as it was")
  func unsavedPhone() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      // A limit of the file size stands for the end of the disk.
      let run = try await ChildProcess.run(
        "/bin/sh",
        [
          "-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", Places.product("attest"), "phone", "set", "--passcode",
          "off", "--device", app.device,
        ], environment: app.environment)
      #expect(run.exit == .code(73) && run.output.isEmpty, "\(run)")
      #expect(run.errors.first?.hasPrefix("error: the phone cannot be saved: cannot write ") == true, "\(run)")
      #expect(try await app.phone("show").output.contains("passcode    set"))
    }
  }

  @Test("Another phone enrols into an account by its link code, and not without it", arguments: [false, true])
  func linkCode(byCodes: Bool) async throws {
    try await BackendBehindGate.serving { household in
      let first = try await household.device("first")
      let token = try await first.signIn()
      let issued = try await first.call("POST", "/api/v1/mfa/link", [:], token: token)
      let code = try #require(issued["linkCode"]?.text, "\(issued.text)")
      let app = try await CommandLineApp(household, device: "second")
      let enroll =
        ["enroll", "--user", first.phone.username, "--phone", "+15550100"]
        + (byCodes ? ["--with", "sms"] : ["--answers", "approve,approve"])
      var run = try await app.run(enroll)
      #expect(run.exit != .code(0) && run.errors.contains { $0.contains("--link-code CODE") }, "\(run)")
      // As it is written down.
      run = try await app.run(enroll + ["--link-code", "\(code.prefix(4))-\(code.dropFirst(4))"])
      #expect(run.exit == .code(0), "\(run)")
      #expect(run.output.first?.hasPrefix("enrolled \(first.phone.username): ") == true, "\(run)")
    }
  }

  @Test("The example in the help of attest signin works as printed")
  func example() async throws {
    try await BackendBehindGate.serving { household in
      let environment = ["XDG_DATA_HOME": household.data, "SALLYPORT_AUTHORITY": nil]
      let enrolled = try await ChildProcess.run(
        Places.product("attest"),
        [
          "enroll", household.socketURL, "--authority", household.gate.folder.path, "--user", "ada", "--answers",
          "approve,approve",
        ], environment: environment)
      #expect(enrolled.exit == .code(0), "\(enrolled.errors)")
      let help = try await ChildProcess.run(Places.product("attest"), ["signin", "--help"]).output
      let start = try #require(help.firstIndex { $0.contains(" attest signin wss") })
      let lines = help[start...].prefix { !$0.hasPrefix("USAGE") && !$0.isEmpty }
      let script = lines.joined(separator: "\n")
        .replacing("wss://localhost:6200/", with: household.socketURL)
        .replacing("https://localhost:6200", with: household.gate.baseURL)
        .replacing("DIR", with: household.gate.folder.path)
      let run = try await ChildProcess.run(
        Places.tool("bash"), ["-euc", script],
        environment: environment.merging(["PATH": "\(Places.products):/usr/bin:/bin"]) { $1 }, in: household.data)
      #expect(run.exit == .code(0), "\(script) \(run)")
      #expect(run.output.joined().contains(#""enabled":false"#), "\(script) \(run)")
    }
  }

  @Test("A-014 A-022 a prompt that gets no answer, or is declined, ends the command with its reason")
  func prompts() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      var run = try await app.run("enroll")
      #expect(run.exit == .code(64) && run.errors.first == "error: which account?")
      run = try await app.run("enroll", "--user", "ada")
      #expect(run.exit == .code(66))
      #expect(run.errors.first?.hasPrefix("error: the phone's prompt got no answer: Allow") == true)
      #expect(run.errors.last == "hint: --answers approve answers it; several are separated by commas")
      run = try await app.run("enroll", "--user", "ada", "--answers", "decline")
      #expect(run.exit == .code(77) && run.errors.last == "hint: --with passcode uses the passcode", "\(run.errors)")
      #expect(try await app.countKeys() == 0)
      run = try await app.run("enroll", "--user", "ada", "--answers", "maybe")
      #expect(run.exit == .code(64))
      run = try await app.run("enroll", "--user", "ada", "--with", "passcode", "--answers", "approve")
      #expect(run.exit == .code(0), "\(run.errors)")
      run = try await app.run("upgrade", "--answers", "approve")
      #expect(run.exit == .code(77) && run.errors.first?.contains("phone does not") != true, "\(run.errors)")
    }
  }

  @Test("an enrolment that the backend refuses gets no advice about the phone's prompts")
  func refusedEnrolment() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      let name = String(repeating: "n", count: 129)
      let run = try await app.run("enroll", "--user", name, "--answers", "approve,approve")
      #expect(run.exit == .code(77) && run.errors == ["error: username has 1 to 128 characters"], "\(run.errors)")
    }
  }

  @Test("A-021 A-023 B-073 the second factor is given by a code of an authenticator, and the session is full")
  func secondFactor() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      _ = try await app.run("enroll", "--user", "ada", "--answers", "approve,approve")
      let token = try await app.run("signin", "--answers", "approve", "--token")
      let access = try #require(token.output.first)
      let registered = RegisteredDevice(servers: household, name: app.device, phone: TestPhone(deviceID: app.device))
      let offer = try await registered.call("POST", "/api/v1/auth/mfa/enroll", [:], token: access)
      let secret = try #require(offer["secret"]?.text)
      let backup = try #require(offer.body["backup_codes"]?[0]?.text)
      let code = try await ChildProcess.run(Places.tool("oathtool"), ["--totp", "-b", secret])
      _ = try await registered.call(
        "POST", "/api/v1/auth/mfa/verify-enrollment", ["code": .string(code.output[0])], token: access)
      var run = try await app.run("signin", "--answers", "approve")
      #expect(
        run.output == ["signed in as ada; the second factor is missing: `attest verify URL CODE`"], "\(run.errors)")
      run = try await app.run("verify", "12", "--kind", "totp")
      #expect(run.exit == .code(64) && run.errors.last == "hint: a code of --kind totp has 6 characters")
      run = try await app.run("verify", "AAAAAAAA", "--kind", "backup")
      #expect(run.exit == .code(77) && run.errors.first == "error: Invalid code. Please try again.", "\(run.errors)")
      run = try await app.run("verify", backup, "--kind", "backup")
      #expect(run.output == ["verified ada"], "\(run.errors)")
      run = try await app.run("unenroll")
      #expect(run.exit == .code(0), "\(run.errors)")
    }
  }

  @Test(
    "B-008 by commands alone: set up the factor, be remembered, be revoked, and switch it off",
    arguments: ["rest", "socket"])
  func factor(_ way: String) async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      _ = try await app.run("enroll", "--user", "ada", "--answers", "approve,approve")
      func output(_ group: String, _ words: [String]) async throws -> [String] {
        let run = try await app.run(in: group, words + ["--by", way])
        #expect(run.exit == .code(0), "\(group) \(words) \(run.errors)")
        return run.output
      }
      func factor(_ words: String...) async throws -> [String] { try await output("factor", words) }
      func trust(_ words: String...) async throws -> [String] { try await output("trust", words) }
      func signIn() async throws -> [String] { try await app.run("signin", "--answers", "approve", "--by", way).output }
      func verify(_ code: String) async throws -> [String] {
        try await app.run("verify", code, "--kind", "backup", "--trust", "--by", way).output
      }
      #expect(try await signIn() == ["signed in as ada"])
      #expect(try await factor("status").contains("second factor: off"))
      let offer = try JSONValue(Data(try #require(try await factor("setup", "--json").first).utf8))
      let secret = try #require(offer["secret"]?.text)
      let code = try await ChildProcess.run(Places.tool("oathtool"), ["--totp", "-b", secret])
      #expect(try await factor("confirm", code.output[0]).count == 1)
      let backup = try (0..<3).map { try #require(offer["backup_codes"]?[$0]?.text) }

      let asked = ["signed in as ada; the second factor is missing: `attest verify URL CODE`"]
      #expect(try await signIn() == asked)
      #expect(try await verify(backup[0]) == ["verified ada"])
      for _ in 1...2 { #expect(try await signIn() == ["signed in as ada"]) }
      let kept = try app.keptSecrets()
      #expect(kept.count == 3, "an access token, a refresh token and a trust token")
      let status = try await factor("status")
      #expect(status.contains("second factor: on") && status.contains("this device is trusted: yes"), "\(status)")
      #expect(status.contains("backup codes left: 9"), "\(status)")
      let listed = try await trust("list")
      let id = try #require(listed.first?.split(separator: "\t").first.map(String.init), "\(listed)")
      #expect(listed.count == 1)
      #expect(try await trust("revoke", id) == ["\(id)\trevoked"])
      #expect(try await trust("list").isEmpty)
      for _ in 1...2 { #expect(try await signIn() == asked) }

      #expect(try await verify(backup[1]) == ["verified ada"])
      #expect(try await trust("revoke", "--all").count == 1)
      // A security key, which the file of the phone keeps, gives the second factor until it is removed.
      let key = try #require(try await factor("add-key", "--name", "blue", "--answers", "approve").first)
      #expect(key.hasSuffix("\tblue"), "\(key)")
      #expect(try await signIn() == asked)
      let byKey = ["verify", "--kind", "security-key", "--by", way, "--answers"]
      let declined = try await app.run(byKey + ["decline"])
      #expect(declined.exit != .code(0) && declined.errors.first?.contains("security key was not used") == true)
      #expect(try await app.run(byKey + ["approve"]).output == ["verified ada"])
      let keys = try await factor("keys")
      #expect(keys.count == 1 && keys[0].hasPrefix(key) && !keys[0].hasSuffix("never"), "\(keys)")
      _ = try await factor("remove-key", String(key.prefix { $0 != "\t" }))
      #expect(try await factor("keys").isEmpty)
      // The app of a new phone takes the place of the first one.
      let further = try JSONValue(
        Data(try #require(try await factor("add-app", "--name", "New phone", "--json").first).utf8))
      let (added, seed) = (try #require(further["id"]?.text), try #require(further["secret"]?.text))
      let shown = try await ChildProcess.run(Places.tool("oathtool"), ["--totp", "-b", seed])
      #expect(try await factor("confirm-app", added, shown.output[0]) == ["\(added)\tNew phone"])
      #expect(try await factor("rename-app", added, "Phone") == ["\(added)\tPhone"])
      #expect(try await factor("remove-app", "first") == ["Authenticator removed"])
      let apps = try await factor("apps")
      #expect(apps.count == 1 && apps[0].hasPrefix("\(added)\tapp\tPhone\t"), "\(apps)")
      let codes = try await factor("backup-codes", backup[2])
      #expect(codes.count == 10 && !codes.contains(backup[2]), "\(codes)")
      #expect(try await factor("off", codes[0]).count == 1)
      #expect(try await signIn() == ["signed in as ada"])
      #expect(try await factor("status").contains("second factor: off"))
      let logs = household.gate.process.errors.lines + [try String(contentsOfFile: household.log, encoding: .utf8)]
      #expect(logs.contains { $0.contains("mfa.verify-login") } && logs.contains { $0.contains("key registered") })
      for text in kept + [secret, seed] + backup + codes {
        #expect(!logs.contains { $0.contains(text) }, "a secret is in a log: \(text)")
      }
    }
  }

  @Test("By commands alone an account gets an address for codes", arguments: ["rest", "socket"])
  func email(_ way: String) async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      _ = try await app.run("enroll", "--user", "ada", "--answers", "approve,approve")
      _ = try await app.run("signin", "--answers", "approve", "--by", way)
      func codes() throws -> [String] {
        try String(contentsOfFile: household.log, encoding: .utf8)
          .matches(of: /E-mail to ada@example\.com: Your OTP is ([0-9]+)/).map { String($0.1) }
      }
      let setup = try await app.run(in: "factor", ["setup", "--json", "--by", way])
      let offer = try JSONValue(Data(try #require(setup.output.first).utf8))
      let secret = try #require(offer["secret"]?.text)
      let shown = try await ChildProcess.run(Places.tool("oathtool"), ["--totp", "-b", secret])
      _ = try await app.run(in: "factor", ["confirm", shown.output[0], "--by", way])
      let sent = try await app.run(in: "factor", ["email", "ada@example.com", "--by", way])
      #expect(sent.output == ["Verification code sent"], "\(sent)")
      #expect(sent.errors.last == "hint: `attest factor email URL ADDRESS CODE` with the code that was sent")
      let wrong = try await app.run(in: "factor", ["email", "ada@example.com", "000000", "--by", way])
      #expect(wrong.exit == .code(77), "\(wrong)")
      let code = try #require(try codes().last)
      let confirmed = try await app.run(in: "factor", ["email", "ada@example.com", code, "--by", way])
      #expect(confirmed.output == ["E-mail address verified"], "\(confirmed)")
      _ = try await app.run("signin", "--answers", "approve", "--by", way)
      let status = try await app.run(in: "factor", ["status"])
      #expect(status.output.contains { $0.hasPrefix("kinds of codes") && $0.contains("email") }, "\(status)")
      let mailed = try await app.run("verify", "--kind", "email", "--json", "--by", way)
      let session = try JSONValue(Data(try #require(mailed.output.first, "\(mailed)").utf8))
      #expect(mailed.output.count == 1 && session["user"]?.text == "ada", "\(mailed)")
      #expect(session["scope"]?.text != nil && session["scope"]?.text != "full", "\(mailed)")
      let none = try await app.run(in: "factor", ["email", "ada", "--by", way])
      #expect(none.exit == .code(77), "\(none)")
    }
  }

  @Test("B-008 an account with a security key alone, and a taken name, get the hints that help")
  func keyHints() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      _ = try await app.run("enroll", "--user", "ada", "--answers", "approve,approve")
      _ = try await app.run("signin", "--answers", "approve")
      let key = try await app.run(in: "factor", ["add-key", "--answers", "approve"])
      #expect(key.exit == .code(0), "\(key.errors)")
      let codes = try await app.run(in: "factor", ["backup-codes", "000000"])
      #expect(codes.exit == .code(77) && codes.errors.last?.contains("attest factor setup URL") == true, "\(codes)")
      let asked = try await app.run("signin", "--answers", "approve")
      #expect(
        asked.output == ["signed in as ada; the second factor is missing: `attest verify URL --kind security-key`"],
        "\(asked)")
      let list = try await app.run(in: "trust", ["list"])
      #expect(list.exit == .code(77) && list.errors.last?.contains("attest verify URL") == true, "\(list)")
      let other = try await CommandLineApp(household, device: "other")
      let taken = try await other.run("enroll", "--user", "ada", "--answers", "approve,approve")
      #expect(taken.exit == .code(77) && taken.errors.last?.contains("another --user") == true, "\(taken)")
    }
  }

  @Test("B-008 an account that must have a second factor is led to its set-up")
  func setupHints() async throws {
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/policy.yaml"
      try "version: 1\npolicy: { second_factor_for: everyone, grace_period: 0s }\n".write(
        toFile: file, atomically: true, encoding: .utf8)
      try await BackendBehindGate.serving(options: ["-c", file]) { household in
        let app = try await CommandLineApp(household)
        _ = try await app.run("enroll", "--user", "ada", "--answers", "approve,approve")
        let run = try await app.run("signin", "--answers", "approve")
        #expect(run.output.first?.contains("attest factor setup URL") == true, "\(run)")
        let status = try await app.run(in: "factor", ["status"])
        #expect(status.output.first == "second factor: off, needed now: `attest factor setup URL`", "\(status)")
        let list = try await app.run(in: "trust", ["list"])
        #expect(list.exit == .code(77) && list.errors.last?.contains("attest factor setup URL") == true, "\(list)")
      }
    }
  }

  @Test("B-008 what a command cannot do is said with the way there")
  func factorRefusals() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      _ = try await app.run("enroll", "--user", "ada", "--answers", "approve,approve")
      let without = try await app.run(in: "factor", ["status"])
      #expect(without.exit == .code(77))
      #expect(without.errors.last == "hint: `attest signin URL` begins a session, which the server asks for")
      _ = try await app.run("signin", "--answers", "approve")
      let wrong = try await app.run(in: "factor", ["confirm", "000000"])
      #expect(wrong.exit == .code(77), "\(wrong.errors)")
      for words in [["revoke"], ["revoke", "3", "--all"]] {
        let both = try await app.run(in: "trust", words)
        #expect(both.exit == .code(64), "\(both.errors)")
      }
      let forms = try await app.run("signin", "--token", "--json")
      #expect(forms.exit == .code(64) && forms.output.isEmpty, "\(forms)")
      let nothing = try await app.run("verify")
      #expect(nothing.exit == .code(64), "\(nothing.errors)")
    }
  }

  @Test("D-050 B-080 the QR code of the backend is scanned by authenticator, whose code the backend accepts")
  func authenticator() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      _ = try await app.run("enroll", "--user", "ada", "--answers", "approve,approve")
      let access = try #require(try await app.run("signin", "--answers", "approve", "--token").output.first)
      let registered = RegisteredDevice(servers: household, name: app.device, phone: TestPhone(deviceID: app.device))
      let offer = try await registered.call("POST", "/api/v1/auth/mfa/enroll", [:], token: access)
      let uri = try #require(offer["qr_code_url"]?.text)
      // The app draws it; the user takes a picture.
      try Data(QRCode(uri).png()).write(to: URL(fileURLWithPath: household.data + "/picture.png"))
      try Data("correct horse\n".utf8).write(to: URL(fileURLWithPath: household.data + "/passphrase"))
      func authenticator(_ words: String...) async throws -> [String] {
        let run = try await ChildProcess.run(
          Places.product("authenticator"), words,
          environment: [
            "AUTHENTICATOR_VAULT": household.data + "/authenticator",
            "AUTHENTICATOR_PASSPHRASE_FILE": household.data + "/passphrase",
          ])
        #expect(run.exit == .code(0), "\(run.errors)")
        return run.output
      }
      #expect(try await authenticator("scan", household.data + "/picture.png").count == 1)
      let code = try #require(try await authenticator("code", "ada").first)
      let verified = try await registered.call(
        "POST", "/api/v1/auth/mfa/verify-enrollment", ["code": .string(code)], token: access)
      #expect(verified.status == 200, "\(verified)")
      let run = try await app.run("signin", "--answers", "approve")
      #expect(run.output.first?.contains("second factor is missing") == true, "\(run)")
    }
  }

  @Test("A revoked key and a gate that is down are reported as by the other commands")
  func gateRefuses() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      _ = try await app.run("enroll", "--user", "ada", "--answers", "approve,approve")
      let shown = try await ChildProcess.run(
        Places.product("attest"), ["device", "show", app.device, "--json"], environment: app.environment)
      let device = try JSONValue(Data(try #require(shown.output.first).utf8))
      let keyID = try #require(device["keys"]?[0]?["keyId"]?.text)
      let revoked = try await ChildProcess.run(
        Places.product("sallyport"),
        ["keys", "revoke", "-c", household.gate.folder.path + "/gate.yaml", keyID])
      #expect(revoked.exit == .code(0), "\(revoked.errors)")
      var run = try await app.run("signin", "--answers", "approve")
      #expect(run.exit == .code(77) && run.errors.first?.contains("this device's key was revoked") == true, "\(run)")
      #expect(run.errors.last?.contains("sallyport keys restore") == true)
      household.gate.process.kill()
      run = try await app.run("signin", "--answers", "approve")
      #expect(run.exit == .code(69), "\(run)")
      #expect(run.errors.last == "hint: is the gate running, and the address right?")
    }
  }

  @Test(
    "A-S08 the phone without a passcode has no keys, and offers nothing but codes; the next command tells the server")
  func phone() async throws {
    try await BackendBehindGate.serving { household in
      let app = try await CommandLineApp(household)
      _ = try await app.run("enroll", "--user", "ada", "--phone", "+15550100", "--answers", "approve,approve")
      var run = try await app.phone("set", "--passcode", "off", "--face", "on")
      #expect(run.exit == .code(64), "\(run)")
      run = try await app.phone("set", "--sensor", "none", "--face", "on")
      #expect(run.exit == .code(64), "\(run)")
      #expect(try await app.phone("show").output.contains("biometry    Face ID, enrolled"))
      #expect(try await app.countKeys() == 1)
      run = try await app.phone("set", "--passcode", "off")
      #expect(run.output.contains("offers      none") && !run.output.contains { $0.hasPrefix("key") })
      run = try await app.phone("set", "--face", "on")
      #expect(run.exit == .code(77) && run.errors.last == "hint: attest phone set --passcode on --face on")
      run = try await app.phone("set", "--sensor", "touchID", "--face", "on")
      #expect(run.exit == .code(77), "\(run)")
      #expect(try await app.phone("show").output.contains("biometry    Face ID, not enrolled"))
      run = try await app.run("signin", "--messages", household.log)
      #expect(run.exit == .code(77) && run.errors.first == "error: Critical: No device security", "\(run.errors)")
      run = try await app.run("downgrade")
      #expect(run.output == ["This device signs in by SMS codes now."], "\(run.errors)")
      run = try await app.run("downgrade")
      #expect(
        run.exit == .code(77) && run.errors.first == "error: the device signs in by codes already", "\(run.errors)")
      run = try await app.run("signin", "--messages", household.log)
      #expect(run.output == ["signed in as ada"], "\(run.errors)")
      // The server sends no second code within a minute, and the first one is spent.
      run = try await app.run("signin", "--messages", household.log)
      #expect(run.exit == .code(77) && run.errors.first?.contains("no new code came") == true, "\(run.errors)")
      #expect(run.errors.last?.hasPrefix("hint: try again in ") == true, "\(run.errors)")
    }
  }

  @Test("A-038 after kill -9 at any moment of an enrolment or a change, the device signs in, and has exactly one key")
  func killed() async throws {
    try await BackendBehindGate.serving { household in
      for number in 0..<8 {
        let app = try await CommandLineApp(household, device: "phone\(number)")
        let delay = Duration.milliseconds(20 + 30 * number)
        try await app.kill("enroll", "--user", "ada\(number)", "--answers", "approve,approve", after: delay)
        let again = try await app.run("enroll", "--user", "ada\(number)", "--answers", "approve,approve")
        let isEnrolled = again.exit == .code(0) || again.errors.first == "error: this device is enrolled already"
        #expect(isEnrolled, "after \(delay): \(again.errors)")
        var signedIn = try await app.run("signin", "--answers", "approve,approve,approve")
        #expect(signedIn.exit == .code(0), "after \(delay): \(signedIn.errors)")
        #expect(try await app.countKeys() == 1)
        try await app.kill("upgrade", "--with", "passcode", "--answers", "approve,approve", after: delay)
        signedIn = try await app.run("signin", "--answers", "approve,approve,approve")
        #expect(signedIn.exit == .code(0), "after \(delay): \(signedIn.errors)")
        #expect(try await app.countKeys() == 1, "after \(delay)")
      }
    }
  }
}
