internal import AppAttest
internal import ArgumentParser
internal import ByteCoding
internal import Cryptography
internal import GateRuntime

/// The time of verification and the trusted roots.
struct VerifyTrust: ParsableArguments {
  @Option(
    help: ArgumentHelp("The time of verification in RFC 3339 form; the default is now.", valueName: "time"),
    transform: VerifyArgument.timestamp)
  var at: Timestamp?

  @Option(
    name: .customLong("root"),
    help: ArgumentHelp("Trust the certificates in this PEM file instead of Apple's. May be repeated.", valueName: "pem")
  )
  var rootFiles: [String] = []

  /// Returns the certificates of `--root`, or `standard` without that option.
  func roots(insteadOf standard: Certificate) throws(SallyportError) -> [Certificate] {
    if rootFiles.isEmpty { return [standard] }
    var roots: [Certificate] = []
    for path in rootFiles {
      let pem = String(decoding: try InputFile(path: path).read(), as: UTF8.self)
      do throws(CryptographyError) {
        roots += try Certificate.certificates(pem: pem)
      } catch {
        throw SallyportError(
          .usage, error: "--root \(path): \(error)",
          hint: "use a PEM file of certificates: -----BEGIN CERTIFICATE-----"
        )
      }
    }
    return roots
  }
}

/// The hash of the data that the device signed.
struct VerifyHash: ParsableArguments {
  @Option(
    name: .customLong("client-data-hash"),
    help: ArgumentHelp(
      "The client data hash: 0 to 64 bytes in hex; for a nonce, its SHA-256.", valueName: "hex"),
    transform: VerifyArgument.clientDataHash)
  var value: ClientDataHash
}

/// The attested public key.
struct VerifyKey: ParsableArguments {
  @Option(
    name: .customLong("public-key"),
    help: ArgumentHelp("The attested public key: base64 of its 65 bytes in X9.62 form.", valueName: "base64"),
    transform: VerifyArgument.publicKey)
  var value: P256PublicKey
}

/// Parses option values. Errors describe the expected form.
enum VerifyArgument {
  private static let longestHash = 64

  static func appID(_ text: String) throws(ValidationError) -> AppID {
    guard let app = AppID(text) else {
      throw ValidationError("an app ID is the team's ten letters and digits, a dot, and the bundle identifier")
    }
    return app
  }

  static func keyID(_ text: String) throws(ValidationError) -> KeyID {
    guard let keyID = KeyID(base64: text) else { throw ValidationError("a key id is the base64 of 32 bytes") }
    return keyID
  }

  static func clientDataHash(_ text: String) throws(ValidationError) -> ClientDataHash {
    guard let bytes = Hex.decode(text), bytes.count <= longestHash else {
      throw ValidationError("a hash is 0 to \(longestHash) bytes in hex, two digits per byte")
    }
    return ClientDataHash(bytes: bytes)
  }

  static func publicKey(_ text: String) throws(ValidationError) -> P256PublicKey {
    guard let bytes = Base64.decode(text) else { throw ValidationError("a public key must be base64") }
    guard let key = try? P256PublicKey(x963: bytes) else {
      throw ValidationError("these \(bytes.count) bytes are not a point on P-256: expected 65 bytes that start with 04")
    }
    return key
  }

  static func timestamp(_ text: String) throws(ValidationError) -> Timestamp {
    guard let timestamp = Timestamp(rfc3339: text) else {
      throw ValidationError("a time is a date, T, a time and a zone, for example 2026-04-21T18:13:12Z")
    }
    return timestamp
  }
}
