internal import AppAttest
internal import ArgumentParser
internal import ByteCoding
internal import Cryptography
internal import GateRuntime

/// When and under which roots certificates are judged.
struct VerifyTrust: ParsableArguments {
  @Option(
    help: ArgumentHelp("The time of verification, as RFC 3339; now if left out.", valueName: "time"),
    transform: VerifyArgument.timestamp)
  var at: Timestamp?

  @Option(
    name: .customLong("root"),
    help: ArgumentHelp("Trust the certificates in this PEM file instead of Apple's. May be repeated.", valueName: "pem")
  )
  var rootFiles: [String] = []

  /// The roots that were named, or else `standard`.
  func roots(insteadOf standard: Certificate) throws(SallyportError) -> [Certificate] {
    if rootFiles.isEmpty { return [standard] }
    var roots: [Certificate] = []
    for path in rootFiles {
      let pem = String(decoding: try InputFile(path: path).read(), as: UTF8.self)
      do throws(CryptographyError) {
        roots += try Certificate.certificates(pem: pem)
      } catch {
        throw SallyportError(
          .usage, error: "--root \(path): \(error)", hint: "a root is a certificate in PEM: -----BEGIN CERTIFICATE-----"
        )
      }
    }
    return roots
  }
}

/// What the device was to sign for.
struct VerifyHash: ParsableArguments {
  @Option(
    name: .customLong("client-data-hash"),
    help: ArgumentHelp(
      "What the device was to sign for: 0 to 64 bytes in hex; of a nonce, its SHA-256.", valueName: "hex"),
    transform: VerifyArgument.clientDataHash)
  var value: ClientDataHash
}

/// The key that is attested.
struct VerifyKey: ParsableArguments {
  @Option(
    name: .customLong("public-key"),
    help: ArgumentHelp("The attested key: base64 of its 65 bytes in X9.62 form.", valueName: "base64"),
    transform: VerifyArgument.publicKey)
  var value: P256PublicKey
}

/// What the values of options look like, said where one does not.
enum VerifyArgument {
  private static let longestHash = 64

  static func appID(_ text: String) throws(ValidationError) -> AppID {
    guard let app = AppID(text) else {
      throw ValidationError("an app ID is the team's ten letters and digits, a dot and the bundle identifier")
    }
    return app
  }

  static func keyID(_ text: String) throws(ValidationError) -> KeyID {
    guard let keyID = KeyID(base64: text) else { throw ValidationError("a key id is the base64 of 32 bytes") }
    return keyID
  }

  static func clientDataHash(_ text: String) throws(ValidationError) -> ClientDataHash {
    guard let bytes = Hex.decode(text), bytes.count <= longestHash else {
      throw ValidationError("a hash is 0 to \(longestHash) bytes in hex, two digits for each")
    }
    return ClientDataHash(bytes: bytes)
  }

  static func publicKey(_ text: String) throws(ValidationError) -> P256PublicKey {
    guard let bytes = Base64.decode(text) else { throw ValidationError("a public key is base64, and this is none") }
    guard let key = try? P256PublicKey(x963: bytes) else {
      throw ValidationError("these \(bytes.count) bytes are no point on P-256: 65 bytes, the first of them 04")
    }
    return key
  }

  static func timestamp(_ text: String) throws(ValidationError) -> Timestamp {
    guard let timestamp = Timestamp(rfc3339: text) else {
      throw ValidationError("a time is a date, T, a time and a zone, like 2026-04-21T18:13:12Z")
    }
    return timestamp
  }
}
