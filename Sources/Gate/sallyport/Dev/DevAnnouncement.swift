internal import ByteCoding
internal import CommandSupport
internal import Cryptography
internal import Glibc
internal import QREncoding
internal import SimulatedDevice

/// What a developer needs for the next step, when a development gate serves.
struct DevAnnouncement {
  let authority: TestAuthority
  let folder: String
  let appID: String
  let isReal: Bool
  let upstream: String
  let host: DevHost?
  let port: UInt16
  /// The URL of the profile for phones.
  let profile: String?

  func print(asJSON: Bool) { Console.print(asJSON ? json : text) }

  private var url: String { "wss://\(host?.urlText ?? "localhost"):\(port)/" }
  private var fingerprint: String { Hex.encode(authority.server.certificate.fingerprint) }
  private var authorityFingerprint: String { Hex.encode(authority.tlsAuthority.certificate.fingerprint) }
  /// A command with a simulated device; a gate for real devices refuses it.
  private var next: String? { isReal ? nil : "attest connect \(url) --authority \(ShellWord.quoting(folder))" }

  private var json: String {
    var members = ["url": url, "fingerprint": fingerprint, "folder": folder, "app": appID, "upstream": upstream]
    if let next { members["next"] = next }
    if let profile {
      members["profile"] = profile
      members["authority_fingerprint"] = authorityFingerprint
    }
    return JSONText.encoding(members)
  }

  private var text: String {
    var lines = [
      "url          \(url)", "fingerprint  SHA-256 \(fingerprint)", "folder       \(folder)",
      "app          \(appID) (environment development, \(isReal ? "Apple's" : "simulated") roots)",
      "upstream     \(upstream)",
    ]
    if let next { lines.append("next         \(next)") }
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
    guard Terminal.isTerminal(STDOUT_FILENO), let profile, let code = try? QRCode(profile, correction: .low) else {
      return nil
    }
    return String(code.terminalText().dropLast())
  }
}
