internal import Glibc
public import Settings
public import Transport
internal import TransportEngine

/// Whether the gate could listen, at each of its addresses. A gate that listens there already is not disturbed.
struct ListeningProbe {
  let settings: GateSettings

  func run() -> [ProbeResult] {
    var report = ProbeReport(settings)
    let (host, port) = (settings.listen.address, settings.listen.port)
    if let address = SocketAddress(literal: host, port: port) {
      probe(address, "listen.address", "listen.port", hint: "see listen.address and listen.port", &report)
    } else {
      report.fail("listen.address", "\(host) is no address")
    }
    if let admin = settings.admin {
      let hint = "the folder of the socket has to be there, and this user's to write; nothing else may have its name"
      switch admin.address {
      case .unix(let path): probe(path, "admin.listen", hint: hint, &report)
      case .loopback:
        if let address = admin.address.socket { probe(address, "admin.listen", "admin.listen", hint: nil, &report) }
      }
    }
    if let address = settings.metrics?.socket {
      let hint = "the address has to be one of this machine"
      probe(address, "metrics.listen", "metrics.listen", hint: hint, &report)
    }
    return report.results
  }

  private func probe(
    _ address: SocketAddress, _ key: String, _ portKey: String, hint: String?, _ report: inout ProbeReport
  ) {
    do throws(Engine.StartFault) {
      try Engine.tryListening(at: address)
      report.pass(portKey, "\(address) is free")
    } catch {
      if error.isAddressInUse {
        Self.warn(that: "\(address) is held by another process", portKey, &report)
      } else {
        report.fail(key, "cannot listen at \(error)", hint: hint)
      }
    }
  }

  /// A socket cannot be tried without making its file, so its place is looked at.
  private func probe(_ path: String, _ key: String, hint: String, _ report: inout ProbeReport) {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    guard access(folder, W_OK | X_OK) == 0 else {
      let reason = String(cString: strerror(errno))
      report.fail(key, "no socket can be made in \(folder): \(reason)", hint: hint)
      return
    }
    switch UnixSocketFile.state(at: path) {
    case .absent, .abandoned: report.pass(key, "unix:\(path) is free")
    case .live: Self.warn(that: "unix:\(path) is held by another process", key, &report)
    case .occupied: report.fail(key, "\(path) is there, and no socket", hint: hint)
    case .unknown(let reason): report.fail(key, "unix:\(path): \(reason)", hint: hint)
    }
  }

  private static func warn(that text: String, _ key: String, _ report: inout ProbeReport) {
    report.warn(
      key, text,
      hint: "if that is the gate that runs, all is well; otherwise stop it, or set \(key) to another one")
  }
}

extension GateSettings.Admin.Address {
  /// `nil` if it is none, which checked settings are not.
  public var socket: SocketAddress? {
    switch self {
    case .unix(let path): .unix(path)
    case .loopback(let host, let port): SocketAddress(literal: host, port: port)
    }
  }
}

extension GateSettings.Metrics {
  /// `nil` if it is none, which checked settings are not.
  public var socket: SocketAddress? { SocketAddress(literal: address, port: port) }
}
