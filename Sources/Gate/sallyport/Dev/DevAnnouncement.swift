internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Cryptography
internal import Glibc
internal import QREncoding
internal import Settings
internal import SimulatedDevice

/// What a developer needs for the next step, when a development gate serves.
struct DevAnnouncement {
  let authority: TestAuthority
  let folder: String
  let appID: String
  let isReal: Bool
  let settings: GateSettings
  let host: DevHost?
  let port: UInt16
  /// The URL of the profile for phones.
  let profile: String?
  /// The operator's configuration file; `nil` without one.
  let configuration: String?
  /// Where the gate differs from that file.
  let differences: [Rehearsal.Difference]

  func print(asJSON: Bool) { Console.print(asJSON ? json : text) }

  private var url: String { "wss://\(host?.urlText ?? "localhost"):\(port)/" }
  private var fingerprint: String { Hex.encode(authority.server.certificate.fingerprint) }
  private var authorityFingerprint: String { Hex.encode(authority.tlsAuthority.certificate.fingerprint) }
  /// A command with a simulated device; a gate for real devices refuses it.
  private var next: String? {
    guard !isReal, let route = settings.routes.first(where: { $0.path == "/" }) ?? settings.routes.first
    else { return nil }
    let path = route.path == "/" ? "" : ShellWord.quoting(String(route.path.dropFirst()))
    return "attest connect \(url)\(path) --authority \(ShellWord.quoting(folder))"
  }

  /// The upstream; with an operator's configuration, each route with its upstream.
  private var upstream: String {
    let texts = settings.routes.indices.map { index -> String in
      let upstream = settings.effective.first { $0.key == "routes[\(index)].upstream" }?.text ?? "none"
      return configuration == nil ? upstream : "\(settings.routes[index].path) to \(upstream)"
    }
    return texts.isEmpty ? "none" : texts.joined(separator: ", ")
  }

  private var json: String {
    var members: [String: JSONValue] = [
      "url": .text(url), "fingerprint": .text(fingerprint), "folder": .text(folder), "app": .text(appID),
      "upstream": .text(upstream),
    ]
    if let next { members["next"] = .text(next) }
    if let profile {
      members["profile"] = .text(profile)
      members["authority_fingerprint"] = .text(authorityFingerprint)
    }
    if let configuration {
      members["configuration"] = .text(configuration)
      members["differences"] = .array(differences.map(JSONValue.init))
    }
    return JSONText.encoding(JSONValue.object(members))
  }

  private var text: String {
    var lines = [
      "url          \(url)", "fingerprint  SHA-256 \(fingerprint)", "folder       \(folder)",
      "app          \(appID) (environment development, \(isReal ? "Apple's" : "simulated") roots)",
      "upstream     \(upstream)",
    ]
    if let next { lines.append("next         \(next)") }
    if let configuration {
      lines.append("file         \(TerminalText.printable(configuration)), except for:")
      lines += differences.map { "             \(TerminalText.printable($0.text))" }
    }
    if let profile { lines += ["profile      \(profile)", ""] + steps(profile) }
    return lines.joined(separator: "\n")
  }

  /// What to do on the phone. The code is for a camera, so that only a terminal gets it.
  private func steps(_ profile: String) -> [String] {
    var lines = [
      "On the phone, once:", "  1. open the profile in Safari" + (code == nil ? "" : ", or scan this code:"),
    ]
    if let code { lines.append(code) }
    return lines + [
      "  2. Settings, Profile Downloaded: compare the certificate's SHA-256, install",
      "     \(authorityFingerprint.prefix(32))",
      "     \(authorityFingerprint.suffix(32))",
      "  3. Settings, General, About, Certificate Trust Settings: turn it on",
      "The phone then trusts every certificate of this CA, whose key is in",
      "\(folder)/tls-ca.key: remove the profile after the tests.",
    ]
  }

  private var code: String? {
    guard StandardOutput.isTerminal, let profile, let code = try? QRCode(profile, correction: .low) else {
      return nil
    }
    return String(code.terminalText().dropLast())
  }
}

extension JSONValue {
  /// `{"file", "key", "rehearsal"}`; a side without a value has no member.
  fileprivate init(_ difference: Rehearsal.Difference) {
    var members: [String: JSONValue] = ["key": .text(difference.key)]
    members["file"] = difference.file.map { .text($0) }
    members["rehearsal"] = difference.rehearsal.map { .text($0) }
    self = .object(members)
  }
}
