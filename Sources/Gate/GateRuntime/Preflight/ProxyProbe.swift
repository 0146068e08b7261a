internal import ACME
internal import ConfigurationEngine
internal import Wire
internal import Settings

/// Reports through which proxy the gate reaches the servers that it asks itself, if the environment names one.
struct ProxyProbe {
  let settings: GateSettings
  let proxies: ProxyVariables

  func run() -> [ProbeResult] {
    var report = ProbeReport(settings)
    for (key, server) in servers {
      do throws(ProxyVariableError) {
        if let proxy = try proxies.proxy(for: server.scheme, host: server.host, port: server.port),
          proxy.scheme == .https
        {
          report.fail(
            key, "\(ProxyTunnelError(proxy: proxy, fault: .secureProxy))",
            hint: "name a proxy without TLS, or a relay on this machine")
        } else if let text = try proxies.summary(for: server.scheme, host: server.host, port: server.port) {
          report.pass(key, "\(server.host) is \(text)")
        }
      } catch {
        report.fail(key, "\(error.variable): \(error.reason)", hint: error.hint)
      }
    }
    return report.results
  }

  private typealias Server = (scheme: ProxyVariables.Scheme, host: String, port: UInt16)

  /// The servers with the keys that name them.
  private var servers: [(String, Server)] {
    var servers: [(String, Server)] = []
    func add(_ key: String, _ url: String) {
      guard let place = HTTPSPlace(url) else { return }
      servers.append((key, (.https, place.host, place.port)))
    }
    if let acme = settings.tls.acme { add("tls.acme.directory", acme.directory) }
    if let list = settings.appAttest.statusList, case .url(let url, _) = list.place {
      add("app_attest.android.status_list", url)
    }
    for url in Set(settings.appAttest.apps.flatMap(\.dataServices)).sorted() { add("app_attest.apps[].risk", url) }
    if let collector = settings.telemetry?.collector {
      servers.append(("telemetry.otlp", (collector.isSecure ? .https : .http, collector.host, collector.port)))
    }
    if let receiver = settings.webhooks?.receiver {
      servers.append(("webhooks.url", (receiver.isSecure ? .https : .http, receiver.host, receiver.port)))
    }
    // By http it is on loopback, which no proxy serves.
    if let provider = settings.console?.provider { add("admin.console.oidc.issuer", provider.issuer) }
    return servers
  }
}

extension GateSettings.App {
  /// The URLs at which receipts of the app are exchanged. That of a simulated service may be `http` on loopback.
  fileprivate var dataServices: [String] {
    guard let risk else { return [] }
    if let endpoint = risk.endpoint { return [endpoint] }
    return zip([Environment.production, .development], Risk.appleEndpoints)
      .filter { environments.contains($0.0) }.map(\.1)
  }
}
