internal import ArgumentParser
internal import AttestClient
internal import ByteCoding
internal import Commands
internal import SimulatedDevice

struct AssertionCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "assertion",
    abstract: "Sign a nonce with an attested key, without a network.",
    discussion: """
      Prints the three header lines of one request, as `attest headers` does. Each call of an iOS device takes the \
      next counter. Without --key the key is the one that `attest attestation` made last, or the only one.

      Example:
        attest assertion --nonce "$NONCE" --authority DIR > headers
        curl --cacert DIR/tls-ca.pem -H @headers https://localhost:6200/attest/verify
      """)

  @OptionGroup var options: GlobalOptions
  @OptionGroup var signed: SignedChallengeOptions

  @Option(help: ArgumentHelp("The attested key, by its identifier.", valueName: "base64"))
  var key: String?

  @Flag(help: "Print the header lines, as without an option for the output.")
  var headers = false

  @Option(
    help: ArgumentHelp("Write the assertion of an iOS device to a file, - for standard output.", valueName: "file"))
  var cbor: String?

  func validate() throws {
    guard [headers, options.json, cbor != nil].count(where: { $0 }) <= 1 else {
      throw ValidationError("--headers, --json and --cbor exclude each other")
    }
    guard signed.clientDataHash == nil || options.json || cbor != nil else {
      throw ValidationError("the headers have the nonce: --client-data-hash needs --json or --cbor FILE")
    }
  }

  func run() async throws {
    let signed = try signed.value()
    let work = try await PrimitiveDevice(options)
    if work.device.platform == .android, cbor != nil {
      throw Failure(
        .usage, "--cbor: the proof of an Android device is a signature in DER, which is no CBOR",
        hint: "--headers and --json have it in base64")
    }
    if let cbor { try ObjectFile.check(cbor) }
    let report = try DeviceReport(work.device, in: work.store)
    let key = try work.store.attestedKey(key, of: report)
    let proof = try await proof(by: key.keyId, over: signed, with: work)
    let counter: UInt32?
    do throws(KeyStoreError) {
      counter = try work.device.platform == .ios ? work.keys.key(key.keyId)?.signCount : nil
    } catch {
      throw Failure(error)
    }
    work.release()
    if options.json {
      JSONOutput.print(
        AssertionOutput(
          keyID: key.keyId, data: Base64.encode(proof), nonce: signed.challenge?.nonce,
          clientDataHash: work.device.platform == .ios ? Hex.encode(signed.clientDataHash) : nil, counter: counter,
          publicKey: key.publicKey.x963, app: work.device.appName, device: work.device.name,
          platform: work.device.platform))
    } else if let cbor {
      try ObjectFile.write(proof, to: cbor)
    } else if let challenge = signed.challenge {
      let headers = AssertionHeaders(keyID: key.keyId, assertion: proof, challenge: challenge)
      StandardOutput.write(headers.lines)
    }
  }

  private func proof(
    by keyID: String, over signed: SignedChallenge, with work: PrimitiveDevice
  ) async throws(Failure) -> [UInt8] {
    switch work.device.model {
    case .ios(let app):
      let service = SimulatedKeyService(authority: work.authority, app: app, keys: work.keys)
      do throws(KeyServiceError) {
        return try await service.generateAssertion(keyID, clientDataHash: signed.clientDataHash)
      } catch {
        throw work.failure(error)
      }
    case .android(let profile):
      let challenge = try PrimitiveDevice.challenge(for: signed)
      let service = SimulatedAndroidKeyService(
        authority: try work.authority.androidAuthority(), profile: profile, keys: work.keys)
      do throws(KeyServiceError) {
        return try await service.proof(by: keyID, nonce: challenge.bytes)
      } catch {
        throw work.failure(error)
      }
    }
  }
}

/// The output of `--json`: the header fields, as `attest headers --json` prints them, and more.
private struct AssertionOutput: Encodable {
  let keyID: String
  let data: String
  let nonce: String?
  let clientDataHash: String?
  let counter: UInt32?
  let publicKey: String
  let app: String
  let device: String
  let platform: Platform

  private enum CodingKeys: String, CodingKey {
    case keyID = "X-App-Assert-KeyId"
    case data = "X-App-Assert-Data"
    case nonce = "X-App-Assert-Nonce"
    case clientDataHash, counter, publicKey, app, device, platform
  }
}

extension AssertionHeaders {
  /// The lines `Name: value`, for curl and websocat.
  var lines: String { fields.map { "\($0.name): \($0.value)\n" }.joined() }
}
