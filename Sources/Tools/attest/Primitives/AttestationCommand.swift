internal import ArgumentParser
internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import SimulatedDevice

struct AttestationCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "attestation",
    abstract: "Make a key and attest it over a nonce, without a network.",
    discussion: """
      Prints the body of `POST /attest/register`. Each call makes a new key; `attest assertion` uses the last one. \
      The device is made if need be.

      Example:
        attest attestation --nonce "$NONCE" --authority DIR > body.json
        curl --cacert DIR/tls-ca.pem -H 'Content-Type: application/json' \\
          --data-binary @body.json https://localhost:6200/attest/register
      """)

  @OptionGroup var options: GlobalOptions
  @OptionGroup var signed: SignedChallengeOptions

  @Flag(help: "Print the body of the registration, as without an option for the output.")
  var body = false

  @Option(
    help: ArgumentHelp(
      "Write the attestation object of an iOS device to a file, - for standard output.", valueName: "file"))
  var cbor: String?

  @Option(
    help: ArgumentHelp(
      "Write the certificate chain of an Android device to a file, - for standard output.", valueName: "file"))
  var pem: String?

  func validate() throws {
    let outputs = [body, options.json, cbor != nil, pem != nil].count { $0 }
    guard outputs <= 1 else { throw ValidationError("--body, --json, --cbor and --pem exclude each other") }
    guard signed.clientDataHash == nil || options.json || cbor != nil else {
      throw ValidationError("the body has the nonce: --client-data-hash needs --json or --cbor FILE")
    }
  }

  func run() async throws {
    let signed = try signed.value()
    let work = try await PrimitiveDevice(options)
    try check(work.device.platform)
    if let path = cbor ?? pem { try ObjectFile.check(path) }
    let attestation: Attestation =
      switch work.device.model {
      case .ios(let app): try await ios(app, over: signed, with: work)
      case .android(let profile): try await android(profile, over: signed, with: work)
      }
    do throws(KeyStoreError) {
      try work.store.lastKey(work.device.name).save(KeyRecord(keyID: attestation.keyID))
    } catch {
      throw Failure(error)
    }
    let report = try DeviceReport(work.device, in: work.store)
    let key = try work.store.attestedKey(attestation.keyID, of: report)
    work.release()
    if options.json {
      JSONOutput.print(AttestationOutput(attestation, by: work.device, signed, publicKey: key.publicKey.x963))
    } else if let path = cbor ?? pem {
      try ObjectFile.write(attestation.object, to: path)
    } else {
      StandardOutput.write(attestation.body ?? [])
      StandardOutput.write("\n")
    }
  }

  /// Before a key is made.
  private func check(_ platform: Platform) throws(Failure) {
    if platform == .android, cbor != nil {
      throw Failure(
        .usage, "--cbor: an Android device attests with a certificate chain, which is no CBOR",
        hint: "--pem FILE writes the chain, as `sallyport verify android` reads it")
    }
    if platform == .ios, pem != nil {
      throw Failure(
        .usage, "--pem: an iOS device attests with an attestation object",
        hint: "--cbor FILE writes it, as `sallyport verify attestation` reads it")
    }
  }

  private func ios(
    _ app: SimulatedApp, over signed: SignedChallenge, with work: PrimitiveDevice
  ) async throws(Failure) -> Attestation {
    let service = SimulatedKeyService(
      authority: work.authority, app: app, keys: work.keys, device: work.device.receiptName(in: work.store))
    do throws(KeyServiceError) {
      let keyID = try await service.generateKey()
      let object = try await service.attestKey(keyID, clientDataHash: signed.clientDataHash)
      return Attestation(
        keyID: keyID, object: object, chain: nil,
        body: signed.challenge.map { AppAttestKeys.body(keyID: keyID, attestation: object, challenge: $0) })
    } catch {
      throw work.failure(error)
    }
  }

  private func android(
    _ profile: AndroidProfile, over signed: SignedChallenge, with work: PrimitiveDevice
  ) async throws(Failure) -> Attestation {
    let challenge = try PrimitiveDevice.challenge(for: signed)
    let service = SimulatedAndroidKeyService(
      authority: try work.authority.androidAuthority(), profile: profile, keys: work.keys,
      device: work.device.receiptName(in: work.store))
    let (keyID, chain): (String, [[UInt8]])
    do throws(KeyServiceError) {
      keyID = try await service.generateKey()
      chain = try await service.chain(of: keyID, challenge: challenge.bytes)
    } catch {
      throw work.failure(error)
    }
    do throws(CryptographyError) {
      let pem = try chain.map { der throws(CryptographyError) in try Certificate(der: der).pem }.joined()
      return Attestation(
        keyID: keyID, object: Array(pem.utf8), chain: chain,
        body: SimulatedAndroidKeyService.body(chain: chain, challenge: challenge))
    } catch {
      throw Failure(.internalError, "cannot write the chain: \(error)")
    }
  }
}

/// What a device has attested.
private struct Attestation {
  let keyID: String
  /// The attestation object in CBOR, or the chain in PEM.
  let object: [UInt8]
  /// The chain of an Android device, leaf first.
  let chain: [[UInt8]]?
  /// The body of a registration; `nil` without a nonce.
  let body: [UInt8]?
}

/// The output of `--json`: the members of a registration's body, and more. Gates ignore the others.
private struct AttestationOutput: Encodable {
  let platform: Platform
  let keyId: String
  let attestation: String?
  let chain: [String]?
  let nonce: String?
  let clientDataHash: String?
  let publicKey: String
  let app: String
  let device: String

  init(_ attestation: Attestation, by device: Device, _ signed: SignedChallenge, publicKey: String) {
    platform = device.platform
    keyId = attestation.keyID
    self.attestation = attestation.chain == nil ? Base64.encode(attestation.object) : nil
    chain = attestation.chain?.map { Base64.encode($0) }
    nonce = signed.challenge?.nonce
    clientDataHash = device.platform == .ios ? Hex.encode(signed.clientDataHash) : nil
    self.publicKey = publicKey
    app = device.appName
    self.device = device.name
  }
}
