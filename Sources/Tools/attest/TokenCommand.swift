internal import ArgumentParser
internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import Foundation
internal import Glibc

struct TokenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token",
    abstract: "Get an access token for a service that verifies tokens of the gate, or a client attestation.",
    discussion: """
      Prints the token, which is valid for a few minutes and bound to the device's DPoP key (RFC 9449). With --for, \
      prints the two header lines of one request to the service instead; each request needs its own. The device is \
      registered first if need be.

      With --client-attestation, prints the attestation with which a client authenticates to an authorization server; \
      with --issuer, the two header lines of one request to that server; with --for, those with a DPoP proof of the \
      request in place of the other proof. The lines are secrets for some minutes.

      Example:
        attest token wss://localhost:6200/ --authority DIR \\
          --audience https://api.example.com \\
          --for 'GET https://api.example.com/v1/items' |
          curl -H @- https://api.example.com/v1/items
        attest token wss://localhost:6200/ --authority DIR \\
          --client-attestation wallet --for 'POST https://as.example.com/token' |
          curl -H @- -d grant_type=client_credentials https://as.example.com/token
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "The gate, like wss://localhost:6200/.")
  var url: String

  @Option(help: ArgumentHelp("The service, as the gate's tokens.audiences names it.", valueName: "name"))
  var audience: String?

  @Option(
    help: ArgumentHelp(
      "The client of an authorization server, as the gate's tokens.clients names it.", valueName: "id"))
  var clientAttestation: String?

  @Option(
    help: ArgumentHelp("The authorization server, by the URL that it calls itself.", valueName: "url"))
  var issuer: String?

  @Option(
    help: ArgumentHelp(
      "The challenge that the authorization server gave; with --for, the nonce for DPoP proofs.", valueName: "text"))
  var challenge: String?

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp(
      "A request to the service or the authorization server, like 'GET https://api.example.com/x'.",
      valueName: "request"))
  var request: String?

  @Option(
    help: ArgumentHelp(
      "The DPoP key (PEM, made if it is not there), instead of the device's own.", valueName: "pem"))
  var key: String?

  func validate() throws {
    guard (audience == nil) != (clientAttestation == nil) else {
      throw ValidationError("give either --audience or --client-attestation")
    }
    guard issuer == nil || request == nil else {
      throw ValidationError("--for and --issuer exclude one another: a request has one proof")
    }
    guard clientAttestation != nil || issuer == nil && challenge == nil else {
      throw ValidationError("--issuer and --challenge go with --client-attestation")
    }
    guard issuer != nil || request != nil || challenge == nil else {
      throw ValidationError("--challenge needs --issuer or --for")
    }
  }

  func run() async throws {
    let request = try self.request.map { text throws(Failure) in try ServiceRequest(text) }
    let work = try await DeviceSession(options, address: GateURL(url), engine: DeviceSession.makeEngine())
    let keyPath = try self.key ?? options.deviceStore().tokenKeyPath(work.device.name)
    let key = FileDPoPKey(key: try DPoPKeyFile.key(at: keyPath))
    do throws(AttestError) {
      if let audience {
        let token = try await work.session.accessToken(for: audience, boundTo: key)
        let fields = try Self.fields(for: request, token, key)
        print(token.text, fields) { headers in
          TokenOutput(
            access_token: token.text, token_type: "DPoP", expires_in: token.lifetime.components.seconds,
            audience: audience, keyFile: keyPath, headers: headers)
        }
      } else if let clientAttestation {
        let attestation = try await work.session.clientAttestation(for: clientAttestation, boundTo: key)
        let fields = try self.fields(of: attestation, for: request, key)
        print(attestation.text, fields) { headers in
          AttestationOutput(
            client_attestation: attestation.text, client_id: clientAttestation,
            expires_in: attestation.lifetime.components.seconds, keyFile: keyPath, headers: headers)
        }
      }
    } catch {
      throw work.failure(error)
    }
    work.lock.release()
  }

  /// Prints the JSON of `output`, the header lines, or the text alone.
  private func print(_ text: String, _ fields: [HTTPField]?, _ output: ([String: String]?) -> some Encodable) {
    if options.json {
      JSONOutput.print(output(fields.map { Dictionary(uniqueKeysWithValues: $0.map { ($0.name, $0.value) }) }))
    } else if let fields {
      StandardOutput.write(fields.map { "\($0.name): \($0.value)\n" }.joined())
    } else {
      StandardOutput.write(text + "\n")
    }
  }

  private func fields(
    of attestation: ClientAttestation, for request: ServiceRequest?, _ key: FileDPoPKey
  ) throws(AttestError) -> [HTTPField]? {
    do throws(KeyServiceError) {
      if let request {
        let proof = try DPoPProof.make(request.method, request.url, nonce: challenge, key: key)
        return [
          HTTPField(ClientAttestation.headerName, attestation.text), HTTPField(DPoPProof.headerName, proof),
        ]
      }
      guard let issuer else { return nil }
      return try attestation.fields(for: issuer, challenge: challenge, key: key)
    } catch {
      throw .keyService(error)
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

private struct AttestationOutput: Encodable {
  let client_attestation: String
  let client_id: String
  let expires_in: Int64
  let keyFile: String
  let headers: [String: String]?
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
      url.host?.isEmpty == false, url.user() == nil, url.password() == nil
    else {
      throw Failure(
        .usage, "not a request to a service: \(text)",
        hint: "write its method and its URL, without user and password: --for 'GET https://api.example.com/items'")
    }
    method = String(parts[0])
    self.url = url
  }
}

/// A DPoP key in a file of its owner, mode 0600.
enum DPoPKeyFile {
  /// Reads the key, or makes it if there is no file.
  static func key(at path: String) throws(Failure) -> P256PrivateKey {
    var status = stat()
    // `bearer` refuses the same file.
    guard stat(path, &status) != 0 || status.st_mode & 0o066 == 0 else {
      throw Failure(
        .badData, "group or others can read or change the key \(path)",
        hint: "run chmod 600, or remove the file if they may know the key: the next command makes another")
    }
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
