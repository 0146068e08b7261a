internal import ACME
internal import ConfigurationEngine
internal import Wire
internal import Settings

/// Checks whether the ACME server answers with a directory. Nothing is ordered, and no account is made.
struct ACMEProbe {
  let settings: GateSettings
  let proxies: ProxyVariables

  /// How long the server may take for its directory. An order has more time.
  private static let patience = Duration.seconds(10)

  private static let directoryKey = "tls.acme.directory"

  private static func key(of error: ACMEError) -> String {
    if case .unknownProfile = error { "tls.acme.profile" } else { directoryKey }
  }

  func run() async -> [ProbeResult] {
    guard let acme = settings.tls.acme else { return [] }
    var report = ProbeReport(settings)
    let key = Self.directoryKey
    do throws(ACMEError) {
      let transport = try EngineTransport(authorityFile: acme.caFile, patience: Self.patience, proxies: proxies)
      let client = ACMEClient(directory: acme.directory, transport: transport)
      let directory = try await client.services()
      if directory.meta?.externalAccountRequired == true, acme.binding == nil {
        throw .bindingRequired
      }
      try directory.requireProfile(acme.profile)
      if let difference = await client.clockDifference, abs(difference.components.seconds) > 60 {
        report.warn(
          key, "the clock of this machine differs from the ACME server's by \(difference.components.seconds) s",
          hint: "set the clock of this machine (timedatectl)")
      }
      let terms = directory.meta?.termsOfService.map { "; its terms of service: \($0)" } ?? ""
      report.pass(key, "\(acme.directory) answers\(terms)")
      if let profile = acme.profile, let text = directory.meta?.profiles?[profile] {
        report.pass("tls.acme.profile", "\(profile): \(text)")
      }
    } catch {
      report.fail(Self.key(of: error), "\(error)", hint: error.hint)
    }
    Self.explain(acme, in: &report)
    return report.results
  }

  /// Says how control of the names is proven, as far as that needs more than the listener.
  private static func explain(_ acme: GateSettings.TLS.ACME, in report: inout ProbeReport) {
    switch acme.proof {
    case .tlsALPN: break
    case .http(let address):
      report.pass(
        "tls.acme.challenge", "port 80 of \(acme.domains.joined(separator: ", ")) must lead to \(address.text)")
    case .dns(.hook(let program), let wait):
      report.pass("tls.acme.dns.hook", "\(program) writes the records; validation begins \(seconds(wait)) s later")
    case .dns(.server(let server, _), let wait):
      let key = "tls.acme.dns.server"
      guard DynamicUpdates.program != nil else {
        return report.fail(key, "nsupdate is not installed", hint: "install it (Debian: apt install bind9-dnsutils)")
      }
      report.pass(
        key,
        "nsupdate writes the records at \(server.host) port \(server.port); validation begins \(seconds(wait)) s later")
    }
  }

  private static func seconds(_ wait: Duration) -> Int64 { wait.components.seconds }
}
