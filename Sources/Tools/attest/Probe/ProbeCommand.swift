internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Foundation
internal import SimulatedDevice

struct ProbeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "probe",
    abstract: "Try every known attack on a gate and print the results.",
    discussion: """
      Each attack uses its own connection. With --authority, a device is registered first, whose key stays in the \
      gate's store, and one genuine socket is opened. Without it, only attacks are tried that need no registered key. \
      With --platform android the device is an Android one, and so are the attacks; --device names one whose app, \
      hardware and provisioning it has. With --audience, tokens of the gate are attacked, too.

      Exits 0 if no attack passed the gate, 1 if one did, and 75 if the result is unclear: the gate was too busy, \
      for example because of its limits for an address, or its answer cannot be parsed. The gate logs each attack as \
      a refusal.

      Example:

        attest probe wss://localhost:6200/ --authority DIR
        attest probe wss://localhost:6200/ --platform android --authority DIR
        attest probe wss://localhost:6200/ --authority DIR \\
          --audience https://api.example.com
        attest probe wss://chat.example.com/ --json
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "The gate, like wss://localhost:6200/.")
  var url: String

  @Option(
    help: ArgumentHelp(
      "One of the gate's tokens.audiences, to attack its tokens, too. Needs --authority.", valueName: "name"))
  var audience: String?

  func run() async throws {
    let address = try GateURL(url)
    guard audience == nil || options.authorityFolder != nil else {
      throw Failure(
        .usage, "--audience without --authority: a token is for a device that the gate trusts",
        hint: "name the folder of the gate's authority: --authority DIR")
    }
    let authority = try options.authorityFolder.map { _ throws(Failure) in try options.loadAuthority() }
    let transport = EngineTransport(engine: try DeviceSession.makeEngine(), tls: try options.makeTLS())
    let model = try authority.map { authority throws(Failure) in try options.model(under: authority) }
    let prober = try Prober(
      address, authority: authority, model: model, audience: audience, transport: transport)
    _ = try await prober.challenge()
    if authority != nil { try await prober.beHonest() }
    let all = Attack.all(on: prober.platform) + (audience == nil ? [] : Attack.tokens)
    let attacks = all.filter { authority != nil || !$0.needsDevice }
    let (findings, end) = await prober.findings(of: attacks)
    let report = ProbeReport(url: url, findings: findings, skipped: all.count - attacks.count)
    if options.json { JSONOutput.print(report) } else { StandardOutput.write(TerminalText.printableLines(report.text)) }
    let through = report.countOfThrough
    guard through == 0 else {
      let messages: [Message] = [
        .error("\(through) of \(findings.count) attacks got through"),
        .hint("a gate with `enforcement: off` or `monitor` lets everybody through"),
      ]
      throw Failure(.problems, messages + (end?.messages ?? []))
    }
    if let end { throw end }
    guard report.countOfUnclear == 0 else {
      throw Failure(
        .retryLater,
        "\(report.countOfUnclear) of \(findings.count) attacks prove nothing: the gate was too busy, or gave "
          + "no answer that can be read",
        hint: Prober.patience)
    }
  }
}

extension Prober {
  /// Returns the gate's reply to `attack`, or to an earlier step for which it was too busy.
  func reply(to attack: Attack) async throws(Failure) -> Reply {
    do throws(Failure) {
      return try await attack.run(self)
    } catch {
      guard error.status == .retryLater else { throw error }
      return .busy
    }
  }

  /// The results of `attacks`, and why those after them were not tried, as when an attack has ended the gate.
  func findings(of attacks: [Attack]) async -> (findings: [Finding], end: Failure?) {
    var findings: [Finding] = []
    for attack in attacks {
      do throws(Failure) {
        findings.append(Finding(attack, try await reply(to: attack)))
      } catch {
        let end = "the probe ended at \"\(attack.name)\": \(error.message)"
        return (findings, Failure(error.status, end, hint: error.hint))
      }
    }
    return (findings, nil)
  }

  /// Registers the device, opens a socket and gets a token, if there is an audience: a gate that refuses everybody would
  /// withstand every attack.
  func beHonest() async throws(Failure) {
    let registration = try await registerHonestDevice()
    guard !registration.isBusy else {
      throw Failure(.retryLater, "the gate is too busy to register a device: \(registration.text)", hint: Self.patience)
    }
    guard registration.status == 200 else {
      throw Failure(
        .refused, "the gate does not register an honest device: \(registration.text)",
        hint: platform == .ios
          ? "--authority has to name the folder of the authority that the gate trusts"
          : "the gate needs an app with `platform: android`, the package and signer of the device, and its root: "
            + "`attest device show NAME` shows them")
    }
    let upgrade = try await upgrade(credentials())
    guard !upgrade.isBusy else {
      throw Failure(.retryLater, "the gate is too busy to open a socket: \(upgrade.text)", hint: Self.patience)
    }
    guard upgrade.status == 101 || upgrade.code != nil else {
      throw Failure(
        .refused, "the server behind the gate does not open a socket: \(upgrade.text)",
        hint: "the probe needs one that opens WebSockets, such as `attest echo`")
    }
    guard upgrade.status == 101 else {
      throw Failure(
        upgrade.status == 502 ? .unavailable : .refused, "the gate does not open an honest socket: \(upgrade.text)",
        hint: upgrade.status == 502 ? "start the server behind the gate" : nil)
    }
    if audience != nil { _ = try await token() }
  }

  private func registerHonestDevice() async throws(Failure) -> Reply {
    let nonce = try await challenge()
    switch platform {
    case .ios:
      return try await register(iPhone, attestation: iPhone.attestation(over: nonce, by: authority), nonce: nonce)
    case .android: return try await register(chain: android.chain(over: nonce), nonce: nonce)
    }
  }
}

extension GlobalOptions {
  /// The kind of device that is imitated with a key of its own: that of the named device, or one that fulfils any policy.
  func model(under authority: TestAuthority) throws(Failure) -> Device.Model {
    if let device { return try deviceStore().load(device).model }
    var model = Device(name: "", on: platform ?? .ios, authority: authority, createdAt: .now()).model
    if case .android(var profile) = model {
      (profile.securityLevel, profile.provisioning) = (.strongBox, .remote)
      model = .android(profile)
    }
    return model
  }
}
