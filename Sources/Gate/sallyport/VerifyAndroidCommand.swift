internal import AndroidKeyAttestation
internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import GateRuntime

struct VerifyAndroidCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "android",
    abstract: "Explains the certificate chain of an attested key of an Android device.",
    discussion: """
      Lists every rule that fails, by the name that logs have. Without --status-list revocation is not checked.

      Example: a chain of today, against the list that Google publishes

        curl -so status.json https://android.googleapis.com/attestation/status
        sallyport verify android chain.pem --package com.example.app \\
          --signer "$SHA256" --nonce "$NONCE" --status-list status.json

      The body of `POST /attest/register`, as the app sends it, has the nonce in it: --nonce is not needed then.
      """)

  @Argument(
    help: "The chain, leaf first: PEM, a JSON array of base64, or the body of a registration; - is standard input.")
  var file: String

  @Option(
    help: ArgumentHelp("The app's package, for example com.example.app.", valueName: "name"),
    transform: VerifyArgument.package)
  var package: String

  @Option(
    name: .customLong("signer"),
    help: ArgumentHelp(
      "SHA-256 of the certificate that signs the app: 32 bytes in hex. May be repeated; without it no app is accepted.",
      valueName: "sha256-hex"),
    transform: VerifyArgument.digest)
  var signers: [[UInt8]] = []

  @Option(
    help: ArgumentHelp("The nonce that the device attested, in hex, as the gate issues it.", valueName: "hex"),
    transform: VerifyArgument.nonce)
  var nonce: [UInt8]?

  @Option(
    help: ArgumentHelp("The challenge that the device attested, in base64, instead of a nonce.", valueName: "base64"),
    transform: VerifyArgument.challenge)
  var challenge: [UInt8]?

  @Option(
    help: ArgumentHelp("The time of verification in RFC 3339 form; the default is now.", valueName: "time"),
    transform: VerifyArgument.timestamp)
  var at: Timestamp?

  @Option(help: ArgumentHelp("Google's list of revoked certificates, as JSON.", valueName: "file"))
  var statusList: String?

  @Option(
    help: ArgumentHelp(
      "Also accept systems signed by these keys: the JSON that GrapheneOS publishes, or lines of hex.",
      valueName: "file"))
  var bootKeys: String?

  @Option(
    name: .customLong("root"),
    help: ArgumentHelp(
      "Trust the keys of the certificates in this PEM file instead of Google's. May be repeated.", valueName: "pem"))
  var rootFiles: [String] = []

  @Option(
    help: ArgumentHelp("The least secure hardware that is accepted.", valueName: "tee|strongbox"),
    transform: VerifyArgument.securityLevel)
  var securityLevel = AndroidAppPolicy.MinimumSecurityLevel.trustedEnvironment

  @Option(
    help: ArgumentHelp("The oldest accepted month of security patches.", valueName: "yyyy-mm"),
    transform: VerifyArgument.patchLevel)
  var minPatchLevel: PatchLevel?

  @Flag(help: "Require a remotely provisioned attestation key, which no leaked factory key can imitate.")
  var requireRkp = false

  @Flag(help: "Print the steps and the parsed fields as JSON.")
  var json = false

  func validate() throws {
    guard nonce == nil || challenge == nil else {
      throw ValidationError("name what the device attested once: --nonce in hex, or --challenge in base64")
    }
  }

  func run() throws {
    let instant = at ?? .now().wholeSecond
    let verifier = AndroidAttestationVerifier(
      policy: AndroidAppPolicy(
        package: package, signers: Set(signers), minimumSecurityLevel: securityLevel,
        allowedBootKeys: try allowedBootKeys(), minimumPatchLevel: minPatchLevel,
        requiresRemoteProvisioning: requireRkp),
      roots: try roots())
    let statusList = try revoked()
    let content = try VerifyAndroidContent(InputFile(path: file).beginning(), named: file)
    guard let challenge = nonce ?? challenge ?? content.nonce else {
      throw Failure(
        .usage, "the nonce is not known", hint: "add --nonce in hex, or --challenge in base64: what the device attested"
      )
    }
    let explanation = verifier.explain(
      content: content.chain, challenge: challenge, statusList: statusList, at: instant)
    try VerifyReport(kind: "chain", instant: instant, explanation: explanation).conclude(asJSON: json)
  }

  private func revoked() throws(Failure) -> AndroidStatusList? {
    guard let statusList else { return nil }
    let content = try InputFile(path: statusList).beginning(longest: AndroidStatusList.maximumSize)
    do throws(AndroidStatusListError) {
      // Here an operator has named the file. The gate would not take a list without entries from a server.
      return try AndroidStatusList(content, allowsNone: true)
    } catch {
      throw Self.invalid(
        "--status-list", statusList, "\(error)",
        hint: "use the whole file from https://android.googleapis.com/attestation/status")
    }
  }

  private func allowedBootKeys() throws(Failure) -> Set<[UInt8]> {
    guard let bootKeys else { return [] }
    let content = try InputFile(path: bootKeys).beginning()
    do throws(AndroidBootKeysError) {
      return try AndroidBootKeys(content).keys
    } catch {
      throw Self.invalid(
        "--boot-keys", bootKeys, "\(error)",
        hint: "use lines with 64 hex digits each, or the JSON that GrapheneOS publishes")
    }
  }

  private func roots() throws(Failure) -> [IssuerKey] {
    if rootFiles.isEmpty { return GoogleRoots.all }
    var keys: [IssuerKey] = []
    for path in rootFiles {
      let pem = String(decoding: try InputFile(path: path).read(), as: UTF8.self)
      do throws(CryptographyError) {
        for certificate in try Certificate.certificates(pem: pem) {
          keys.append(try IssuerKey(spki: certificate.subjectPublicKeyInfo))
        }
      } catch {
        throw Self.invalid(
          "--root", path, "\(error)", hint: "use a PEM file of certificates: -----BEGIN CERTIFICATE-----")
      }
    }
    return keys
  }

  private static func invalid(_ option: String, _ path: String, _ reason: String, hint: String) -> Failure {
    Failure(
      .usage, "\(option) \(TerminalText.printable(path)): \(TerminalText.printable(reason))", hint: hint)
  }
}

extension VerifyArgument {
  static func package(_ text: String) throws(ValidationError) -> String {
    // Systems have packages of one word, such as android.
    guard (1...255).contains(text.utf8.count) else { throw ValidationError("a package has 1 to 255 characters") }
    return text
  }

  /// Hex as `apksigner` prints it, or with colons as the Play Console does.
  static func digest(_ text: String) throws(ValidationError) -> [UInt8] {
    guard let bytes = Hex.decode(text.filter { $0 != ":" }), bytes.count == SHA256.digestSize else {
      throw ValidationError("a signer is the SHA-256 of a certificate: 32 bytes in hex, for example from apksigner")
    }
    return bytes
  }

  static func challenge(_ text: String) throws(ValidationError) -> [UInt8] {
    guard let bytes = Base64.decode(anyForm: text) else { throw ValidationError("a challenge must be base64") }
    return bytes
  }

  static func securityLevel(_ text: String) throws(ValidationError) -> AndroidAppPolicy.MinimumSecurityLevel {
    guard let level = AndroidAppPolicy.MinimumSecurityLevel(rawValue: text) else {
      throw ValidationError("a security level is tee or strongbox")
    }
    return level
  }

  static func patchLevel(_ text: String) throws(ValidationError) -> PatchLevel {
    guard let level = PatchLevel(text) else { throw ValidationError("a patch level is a month, for example 2026-01") }
    return level
  }
}
