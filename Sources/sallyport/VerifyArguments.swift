internal import AppAttest
internal import ArgumentParser
internal import ByteCoding
internal import Cryptography

/// When and under which roots certificates are judged.
struct VerifyTrust: ParsableArguments {
  @Option(help: ArgumentHelp("The time of verification, as RFC 3339; now if left out.", valueName: "time"))
  var at: TimestampArgument?

  @Option(
    name: .customLong("root"),
    help: ArgumentHelp("Trust the certificates in this PEM file instead of Apple's. May be repeated.", valueName: "pem")
  )
  var rootFiles: [String] = []

  /// The roots that were named, or else `standard`.
  func roots(insteadOf standard: Certificate) throws(CommandFailure) -> [Certificate] {
    if rootFiles.isEmpty { return [standard] }
    var roots: [Certificate] = []
    for path in rootFiles {
      let pem = String(decoding: try InputFile(path: path).read(), as: UTF8.self)
      do throws(CryptographyError) {
        roots += try Certificate.certificates(pem: pem)
      } catch {
        throw CommandFailure(
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
      "What the device was to sign for: 0 to 64 bytes in hex; of a nonce, its SHA-256.", valueName: "hex"))
  var argument: ClientDataHashArgument

  var value: ClientDataHash { argument.value }
}

/// The key that is attested.
struct VerifyKey: ParsableArguments {
  @Option(
    name: .customLong("public-key"),
    help: ArgumentHelp("The attested key: base64 of its 65 bytes in X9.62 form.", valueName: "base64"))
  var argument: PublicKeyArgument

  var value: P256PublicKey { argument.value }
}

struct AppIDArgument: ExpressibleByArgument {
  let value: AppID

  init?(argument: String) {
    guard let value = AppID(argument) else { return nil }
    self.value = value
  }
}

struct KeyIDArgument: ExpressibleByArgument {
  let value: KeyID

  init?(argument: String) {
    guard let value = KeyID(base64: argument) else { return nil }
    self.value = value
  }
}

struct ClientDataHashArgument: ExpressibleByArgument {
  static let longest = 64

  let value: ClientDataHash

  init?(argument: String) {
    guard let bytes = Hex.decode(argument), bytes.count <= Self.longest else { return nil }
    value = ClientDataHash(bytes: bytes)
  }
}

struct PublicKeyArgument: ExpressibleByArgument {
  let value: P256PublicKey

  init?(argument: String) {
    guard let bytes = Base64.decode(argument), let value = try? P256PublicKey(x963: bytes) else { return nil }
    self.value = value
  }
}

struct TimestampArgument: ExpressibleByArgument {
  let value: Timestamp

  init?(argument: String) {
    guard let value = Timestamp(rfc3339: argument) else { return nil }
    self.value = value
  }
}
