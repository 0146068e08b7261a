internal import ArgumentParser
internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Wire
internal import Transport
internal import TransportEngine

struct ConnectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "connect",
    abstract: "Open an authenticated WebSocket as a pipe between standard input and output.",
    discussion: """
      Each line of the input is sent as a text message, and each received message is printed on a line. The device is \
      made and registered first if necessary. Example:
        attest connect wss://localhost:6200/ --authority DIR
        attest connect wss://localhost:6200/ --authority DIR --once hello
        attest connect wss://localhost:6200/ --ca ca.pem \\
          --cert client.crt --key client.key    # debug builds
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "The socket, like wss://localhost:6200/.")
  var url: String

  @Option(help: ArgumentHelp("Send one message, print the first answer, and close.", valueName: "message"))
  var once: String?

  @Flag(help: "Send the input as binary messages, unchanged, and print messages without line ends.")
  var binary = false

  @Flag(help: "After the end of the input, continue to receive until the server closes.")
  var stay = false

  @Option(
    help: ArgumentHelp(
      "After the end of the input, close when the server has been silent this long.", valueName: "seconds"))
  var linger = 1.0

  @Option(help: ArgumentHelp("Present this certificate (PEM) instead of an assertion.", valueName: "pem"))
  var cert: String?

  @Option(help: ArgumentHelp("The certificate's private key (PEM).", valueName: "pem"))
  var key: String?

  @Flag(help: "Measure a Ping first.")
  var ping = false

  @Flag(help: "Print the opening handshake on standard error, with a shortened assertion.")
  var showHandshake = false

  @Option(help: ArgumentHelp("How long to wait for the answer of --once.", valueName: "seconds"))
  var timeout: UInt32 = 10

  func validate() throws {
    guard (cert == nil) == (key == nil) else { throw ValidationError("--cert and --key belong together") }
    guard once == nil || !stay else { throw ValidationError("--once and --stay exclude each other") }
    guard (0...86400).contains(linger) else { throw ValidationError("--linger takes 0 to 86400 seconds") }
  }

  func run() async throws {
    let engine = try DeviceSession.makeEngine()
    let socket = try await open(GateURL(url), through: engine)
    if showHandshake { StandardError.write(Handshake.text(of: socket.response)) }
    let pipe = SocketPipe(
      engine: engine, socket: socket, isBinary: binary, isJSON: options.json, hasCertificate: cert != nil)
    if ping { try await pipe.measurePing() }
    if let once {
      try await pipe.exchange(once, timeout: .seconds(Int64(timeout)))
    } else {
      try await pipe.run(linger: stay ? nil : .seconds(linger))
    }
  }

  private func open(_ address: GateURL, through engine: ClientEngine) async throws(Failure) -> ClientWebSocket {
    if cert != nil { return try await openWithCertificate(address, through: engine) }
    let work = try await DeviceSession(options, address: address, engine: engine)
    defer { work.lock.release() }
    let (transport, shows) = (work.transport, showHandshake)
    do throws(AttestError) {
      return try await work.session.open { headers throws(UpgradeError) in
        if shows { StandardError.write(Handshake.text(of: headers, to: address)) }
        let fields = headers.fields.map { HeaderFields.Field(name: $0.name, value: $0.value) }
        return try await transport.openWebSocket(address, headers: HeaderFields(fields))
      }
    } catch {
      throw work.failure(error)
    }
  }

  /// The path of debug builds: the certificate is the credential, and no device is needed.
  private func openWithCertificate(
    _ address: GateURL, through engine: ClientEngine
  ) async throws(Failure) -> ClientWebSocket {
    let options = options.ca == nil ? options.forGate(at: address) : options
    let transport = EngineTransport(engine: engine, tls: try options.makeTLS(certificate: cert, key: key))
    if showHandshake { StandardError.write(Handshake.text(of: nil, to: address)) }
    do throws(UpgradeError) {
      return try await transport.openWebSocket(address, headers: HeaderFields())
    } catch {
      throw Failure(certificatePath: error)
    }
  }
}

extension Failure {
  /// Why a certificate opened no socket.
  fileprivate init(certificatePath error: UpgradeError) {
    switch error {
    case .transport(.lost(let reason)) where Self.isRefusedCertificate(reason),
      .transport(.untrusted(let reason)) where Self.isRefusedCertificate(reason):
      self.init(
        .protocolFault, "the gate refuses this client certificate: \(reason)",
        hint:
          "it has to be issued by an authority in `debug_mtls.client_ca_file` of the gate, and be neither expired nor "
          + "revoked")
    case .transport(let error): self.init(error)
    case .refused(let refusal):
      let failure = Failure(.assertionFailed(refusal))
      let isUnasked = refusal.code == .noCredentials
      self.init(
        failure.status, failure.message,
        hint: isUnasked ? "the gate did not ask for a certificate: see `debug_mtls.client_ca_file`" : failure.hint)
    }
  }

  /// Whether `reason`, OpenSSL's text, is an alert about this side's certificate (RFC 8446 section 6.2).
  private static func isRefusedCertificate(_ reason: String) -> Bool {
    reason.contains("alert") && ["certificate", "unknown ca", "access denied"].contains(where: reason.contains)
  }
}

/// The texts of `--show-handshake`.
enum Handshake {
  static func text(of headers: AssertionHeaders?, to address: GateURL) -> String {
    var lines = ["> GET \(address.target) HTTP/1.1", "> Host: \(address.hostField)"]
    if let headers {
      // The nonce is spent and the assertion is long, so neither is printed.
      lines.append("> \(AssertionHeaders.keyIDName): \(headers.keyID)")
      lines.append("> \(AssertionHeaders.dataName): \(headers.data.prefix(24))… (\(headers.data.count) characters)")
      lines.append("> \(AssertionHeaders.nonceName): \(headers.nonce.prefix(16))…")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  static func text(of response: Response) -> String {
    let lines =
      ["< HTTP/1.1 \(response.status)"]
      + response.headers.fields.map { TerminalText.printable("< \($0.name): \($0.value)") }
    return lines.joined(separator: "\n") + "\n"
  }
}
