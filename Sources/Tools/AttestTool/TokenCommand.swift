internal import ArgumentParser
internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import Foundation

struct TokenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token",
    abstract: "Get an access token for a service that verifies tokens of the gate.",
    discussion: """
      Prints the token, which is valid for a few minutes and bound to the device's DPoP key (RFC 9449). With --for, \
      prints the two header lines of one request to the service instead; each request needs its own. The device is \
      registered first if need be.

      Example:
        attest token wss://localhost:6200/ --authority DIR \\
          --audience https://api.example.com \\
          --for 'GET https://api.example.com/v1/items' > headers
        curl -H @headers https://api.example.com/v1/items
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "The gate, like wss://localhost:6200/.")
  var url: String

  @Option(help: ArgumentHelp("The service, as the gate's tokens.audiences names it.", valueName: "name"))
  var audience: String

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("A request to the service, like 'GET https://api.example.com/x'.", valueName: "request"))
  var request: String?

  @Option(
    help: ArgumentHelp(
      "The DPoP key (PEM, made if it is not there), instead of the device's own.", valueName: "pem"))
  var key: String?

  func run() async throws {
    let request = try self.request.map { text throws(Failure) in try ServiceRequest(text) }
    let work = try await DeviceSession(options, address: GateURL(url), engine: DeviceSession.makeEngine())
    let keyPath = try self.key ?? options.deviceStore().tokenKeyPath(work.device.name)
    let key = FileDPoPKey(key: try DPoPKeyFile.key(at: keyPath))
    let token: AccessToken
    let fields: [HTTPField]?
    do throws(AttestError) {
      token = try await work.session.accessToken(for: audience, boundTo: key)
      fields = try Self.fields(for: request, token, key)
    } catch {
      throw work.failure(error)
    }
    work.lock.release()
    if options.json {
      let answer = TokenOutput(
        access_token: token.text, token_type: "DPoP", expires_in: token.lifetime.components.seconds,
        audience: audience, keyFile: keyPath,
        headers: fields.map { Dictionary(uniqueKeysWithValues: $0.map { ($0.name, $0.value) }) })
      JSONOutput.print(answer)
    } else if let fields {
      StandardOutput.write(fields.map { "\($0.name): \($0.value)\n" }.joined())
    } else {
      StandardOutput.write(token.text + "\n")
    }
  }

  private static func fields(
    for request: ServiceRequest?, _ token: AccessToken, _ key: FileDPoPKey
  ) throws(AttestError) -> [HTTPField]? {
    guard let request else { return nil }
    do throws(KeyServiceError) {
      return try token.fields(for: request.method, request.url, key: key)
    } catch {
      throw .keyService(error)
    }
  }
}

private struct TokenOutput: Encodable {
  let access_token: String
  let token_type: String
  let expires_in: Int64
  let audience: String
  let keyFile: String
  let headers: [String: String]?
}

/// The method and the URL of a request to a service.
struct ServiceRequest {
  let method: String
  let url: URL

  init(_ text: String) throws(Failure) {
    let parts = text.split(separator: " ")
    guard parts.count == 2, parts[0].utf8.allSatisfy({ (0x41...0x5A).contains($0) }),
      let url = URL(string: String(parts[1])), ["https", "http"].contains(url.scheme?.lowercased()),
      url.host?.isEmpty == false
    else {
      throw Failure(
        .usage, "not a request to a service: \(text)",
        hint: "write its method and its URL: --for 'GET https://api.example.com/items'")
    }
    method = String(parts[0])
    self.url = url
  }
}

/// A DPoP key in a file of its owner, mode 0600.
enum DPoPKeyFile {
  /// Reads the key, or makes it if there is no file.
  static func key(at path: String) throws(Failure) -> P256PrivateKey {
    let bytes: [UInt8]
    do throws(PrivateFile.AccessError) {
      bytes = try PrivateFile.read(path)
    } catch  where error.isAbsence {
      return try make(at: path)
    } catch {
      throw Failure(.noInput, "\(error)")
    }
    do throws(CryptographyError) {
      return try P256PrivateKey(pkcs8PEM: String(decoding: bytes, as: UTF8.self))
    } catch {
      throw Failure(
        .badData, "\(path) has no private key on P-256 (PKCS #8, PEM)",
        hint: "remove it, and the next command makes one"
      )
    }
  }

  private static func make(at path: String) throws(Failure) -> P256PrivateKey {
    let (key, pem): (P256PrivateKey, String)
    do throws(CryptographyError) {
      key = try P256PrivateKey()
      pem = try key.pkcs8PEM
    } catch {
      throw Failure(.internalError, "cannot make a key: \(error)")
    }
    do throws(PrivateFile.AccessError) {
      try PrivateFile.write(Array(pem.utf8), to: path)
    } catch {
      throw Failure(.cannotCreate, "\(error)")
    }
    return key
  }
}

/// A DPoP key of this program.
struct FileDPoPKey: DPoPKey {
  let key: P256PrivateKey

  var publicKey: [UInt8] { key.publicKey.x963 }

  func signature(for message: [UInt8]) throws(KeyServiceError) -> [UInt8] {
    do throws(CryptographyError) {
      return try key.es256Signature(for: message)
    } catch {
      throw .systemFailure("\(error)")
    }
  }
}
