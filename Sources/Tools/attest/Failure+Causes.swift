internal import AttestClient
internal import Commands
internal import Wire
internal import SimulatedDevice

extension Failure {
  /// The failure of a device of `platform`: a gate that serves only iOS does not understand the others.
  init(_ error: AttestError, of platform: Platform) {
    let failure = Failure(error)
    guard platform == .android, case .registrationFailed(let refusal) = error,
      [.malformedJSON, .malformedValue, .malformedAttestation, .notConfigured].contains(refusal.code)
    else {
      self = failure
      return
    }
    self.init(
      failure.status, failure.message,
      hint: "does the gate serve Android devices? It needs an app with `platform: android` in `app_attest.apps`; "
        + "earlier versions of sallyport serve iOS alone")
  }

  init(_ error: AttestError) {
    switch error {
    case .missingNonce:
      self.init(.protocolFault, "\(error)", hint: "is it a gate that answers at this address?")
    case .challengeFailed(let refusal), .registrationFailed(let refusal), .assertionFailed(let refusal):
      self.init(Self.status(of: refusal), "\(error)\(Self.reference(refusal))", hint: Self.hint(for: refusal))
    case .keyRevoked(let refusal):
      self.init(
        .refused, "\(error)\(Self.reference(refusal))",
        hint: "an operator can restore it with `sallyport keys restore`; another device: `--device NAME`")
    case .serviceUnavailable:
      self.init(.noInput, "\(error)", hint: "`attest register URL` registers it")
    case .renewedTooRecently:
      self.init(
        .retryLater, "\(error)",
        hint:
          "does the gate keep its store? `attest device rm NAME` makes a new device at once, `--device NAME` "
          + "names another"
      )
    case .unusableAddress:
      self.init(.usage, "\(error)", hint: "an address is like wss://localhost:6200/")
    case .keyService(let error): self.init(error)
    case .transport(let error): self.init(error)
    case .store(let error): self.init(error)
    case .cancelled: self.init(.retryLater, "interrupted")
    }
  }

  init(_ error: TransportError) {
    let text = error.description(of: "the gate")
    switch error {
    case .unreachable: self.init(.unavailable, text, hint: "is the gate running, and the address right?")
    case .untrusted(let reason):
      self.init(.protocolFault, text, hint: Self.handshakeHint(for: reason))
    case .lost: self.init(.unavailable, text, hint: "the gate's log may say why")
    case .malformed, .tooLarge:
      self.init(.protocolFault, text, hint: "is it a gate that answers at this address?")
    }
  }

  /// Returns the hint for a handshake that failed for `reason`, a text of OpenSSL or the system.
  static func handshakeHint(for reason: String) -> String {
    let plaintext = ["wrong version number", "packet length too long", "http request", "record layer failure"]
    if plaintext.contains(where: reason.contains) {
      return "what answers there does not speak TLS: name the port of the gate, not of the server behind it"
    }
    if ["closed the connection", "unexpected eof", "reset by peer", "Connection reset"].contains(where: reason.contains)
    {
      return
        "does the gate expect the PROXY protocol (listen.proxy_protocol)? then name the address of the proxy "
        + "before it; its log says why it closed"
    }
    if ["hostname mismatch", "IP address mismatch"].contains(where: reason.contains) {
      return "name the gate as its certificate does, or give it a certificate with this name"
    }
    if reason.contains("certificate has expired") {
      return "the gate needs a new certificate; `sallyport dev` renews its own when it starts"
    }
    if reason.contains("certificate is not yet valid") { return "compare the clocks of this machine and the gate's" }
    return "name the gate's authority with --authority DIR, or its TLS root with --ca PEM"
  }

  init(_ error: KeyServiceError) {
    switch error {
    case .invalidKey, .invalidInput, .systemFailure: self.init(.internalError, "\(error)")
    case .featureUnsupported, .serverUnavailable: self.init(.unavailable, "\(error)")
    }
  }

  init(_ error: KeyStoreError) {
    switch error {
    case .unreadable: self.init(.noInput, "\(error)")
    case .unwritable: self.init(.cannotCreate, "\(error)")
    case .malformed: self.init(.badData, "\(error)", hint: "`attest device rm NAME` removes a damaged device")
    }
  }

  init(_ error: AuthorityFolderError) {
    switch error {
    case .absent, .unreadable: self.init(.noInput, "\(error)", hint: error.hint)
    case .incomplete, .malformed: self.init(.badData, "\(error)", hint: error.hint)
    case .halfDone: self.init(.retryLater, "\(error)", hint: error.hint)
    case .unwritable: self.init(.cannotCreate, "\(error)", hint: error.hint)
    }
  }

  private static func reference(_ refusal: GateRefusal) -> String {
    refusal.requestID.map { " (request \($0))" } ?? ""
  }

  private static func status(of refusal: GateRefusal) -> Status {
    switch refusal.code {
    case .upstreamUnavailable, .storeUnavailable, .statusListUnavailable: .unavailable
    case .overloaded, .rateLimited, .clockWrong: .retryLater
    default: .refused
    }
  }

  private static func hint(for refusal: GateRefusal) -> String? {
    switch refusal.code {
    case .notConfigured: "the gate has no app configured: see `app_attest.apps`"
    case .rpIDMismatch: "the authority's app is not one of the gate's"
    case .chainUntrusted: "the gate does not trust this authority: see `app_attest.trust`"
    case .environmentMismatch: "simulated devices are of the environment `development`"
    case .appRefused:
      "compare package and signer, which `attest device show NAME` prints, with `app_attest.apps` of the gate"
    case .deviceRefused:
      "the app's policy in `app_attest.apps` refuses this kind of device: `attest device show NAME` describes it"
    case .attestationRevoked:
      "the status list has the device's attestation key: make a device with another one, with `--provisioning rkp`"
    case .statusListUnavailable: "see `app_attest.android` of the gate, and its log"
    case .clockWrong:
      "set the clock of the gate's machine (timedatectl), then try again with the same device: its key is not at fault"
    case .upstreamUnavailable: "is the backend behind the gate running?"
    case nil where refusal.isFromUpstream:
      "the gate admitted this client; the log of the server behind it may say why it answered so"
    case nil where refusal.codeText == nil && refusal.status == 404:
      "is it a gate that answers at this address, and does it have this path?"
    case nil where refusal.codeText == nil: "is it a gate that answers at this address?"
    default: refusal.status == 404 ? "the gate has no such path: see `routes`, and for tokens `tokens.audiences`" : nil
    }
  }
}
