internal import AppAttest
internal import ArgumentParser
internal import ByteCoding
internal import Commands
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
  func roots(insteadOf standard: Certificate) throws(Failure) -> [Certificate] {
    if rootFiles.isEmpty { return [standard] }
    var roots: [Certificate] = []
    for path in rootFiles {
      let pem = String(decoding: try InputFile(path: path).read(), as: UTF8.self)
      do throws(CryptographyError) {
        roots += try Certificate.certificates(pem: pem)
      } catch {
        throw Failure(
          .usage, "--root \(path): \(error)",
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
    help: ArgumentHelp(
      "The nonce of the challenge, in hex: the device signs the SHA-256 of its bytes. By default that of the file, "
        + "which the body of a registration and the headers of an assertion have.", valueName: "hex"),
    transform: VerifyArgument.nonce)
  var nonce: [UInt8]?

  @Option(
    name: .customLong("client-data-hash"),
    help: ArgumentHelp("The client data hash, instead of a nonce: 0 to 64 bytes in hex.", valueName: "hex"),
    transform: VerifyArgument.clientDataHash)
  var value: ClientDataHash?

  func validate() throws {
    guard nonce == nil || value == nil else {
      throw ValidationError("--nonce and --client-data-hash exclude each other: the hash is the SHA-256 of the nonce")
    }
  }

  /// The nonce of the option, or of the file; `nil` for a hash.
  func nonce(in content: VerifyContent) -> [UInt8]? { value == nil ? nonce ?? content.nonce : nil }

  /// The hash of the options, or that of the nonce in the file.
  func clientDataHash(in content: VerifyContent) throws(Failure) -> ClientDataHash {
    if let value { return value }
    guard let nonce = nonce(in: content) else {
      throw Failure(
        .usage, "what the device signed is not known",
        hint: "add --nonce with the 64 hex digits of the challenge, or --client-data-hash")
    }
    return ClientDataHash(bytes: SHA256.hash(nonce))
  }
}

/// A hash that clients make of a nonce by mistake.
enum NonceMistake: CaseIterable {
  case nonceItself
  case digits
  case base64

  private func hash(of nonce: [UInt8]) -> ClientDataHash {
    switch self {
    case .nonceItself: ClientDataHash(bytes: nonce)
    case .digits: ClientDataHash(bytes: SHA256.hash(Array(Hex.encode(nonce).utf8)))
    case .base64: ClientDataHash(bytes: SHA256.hash(Array(Base64.encode(nonce).utf8)))
    }
  }

  private var text: String {
    switch self {
    case .nonceItself: "the nonce itself, not its SHA-256"
    case .digits: "the SHA-256 of the nonce's hex digits, not of its bytes"
    case .base64: "the SHA-256 of the nonce in base64, not of its bytes"
    }
  }

  /// The hint for a device that signed one of these hashes; `nil` for none. `isSigned` says of a hash whether the device
  /// signed it.
  static func hint(for nonce: [UInt8]?, _ isSigned: (ClientDataHash) -> Bool) -> String? {
    guard let nonce, let mistake = allCases.first(where: { isSigned($0.hash(of: nonce)) }) else { return nil }
    return "the device signed \(mistake.text): use the SHA-256 of the nonce's \(nonce.count) bytes"
  }
}

/// The attested public key.
struct VerifyKey: ParsableArguments {
  @Option(
    name: .customLong("public-key"),
    help: ArgumentHelp("The attested public key: base64 of its 65 bytes in X9.62 form.", valueName: "base64"),
    transform: VerifyArgument.publicKey)
  var value: P256PublicKey
}

/// Parses option values. Errors describe the expected form. Base64 is read as the gate reads it, in any form that
/// `Base64.decode(anyForm:)` accepts.
enum VerifyArgument {
  private static let longestHash = 64

  static func appID(_ text: String) throws(ValidationError) -> AppID {
    guard let app = AppID(text) else {
      throw ValidationError("an app ID is the team's ten letters and digits, a dot, and the bundle identifier")
    }
    return app
  }

  static func keyID(_ text: String) throws(ValidationError) -> KeyID {
    guard let keyID = KeyID(received: text) else { throw ValidationError("a key id is the base64 of 32 bytes") }
    return keyID
  }

  static func clientDataHash(_ text: String) throws(ValidationError) -> ClientDataHash {
    guard let bytes = Hex.decode(text), bytes.count <= longestHash else {
      throw ValidationError("a hash is 0 to \(longestHash) bytes in hex, two digits per byte")
    }
    return ClientDataHash(bytes: bytes)
  }

  static func nonce(_ text: String) throws(ValidationError) -> [UInt8] {
    guard let bytes = Hex.decode(text), (1...longestHash).contains(bytes.count) else {
      throw ValidationError("a nonce is 1 to \(longestHash) bytes in hex, two digits per byte; the gate's have 32")
    }
    return bytes
  }

  static func publicKey(_ text: String) throws(ValidationError) -> P256PublicKey {
    guard let bytes = Base64.decode(anyForm: text) else { throw ValidationError("a public key must be base64") }
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
