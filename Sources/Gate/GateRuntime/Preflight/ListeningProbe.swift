internal import ConfigurationEngine
internal import Glibc
public import Settings
public import Transport
internal import TransportEngine

/// Checks whether the gate can listen on each of its addresses. A gate that already listens there is not disturbed.
struct ListeningProbe {
  let settings: GateSettings

  func run() -> [ProbeResult] {
    var report = ProbeReport(settings)
    let (host, port) = (settings.listen.address, settings.listen.port)
    if let address = SocketAddress(literal: host, port: port) {
      probe(address, "listen.address", "listen.port", hint: "check listen.address and listen.port", &report)
    } else {
      report.fail("listen.address", "\(host) is not a valid address")
    }
    if let admin = settings.admin {
      let hint =
        "the socket's folder must exist and be writable for this user, and no other file may have the socket's name"
      switch admin.address {
      case .unix(let path):
        probe(path, "admin.listen", hint: hint, &report)
        probeGroup(of: admin, socket: path, &report)
      case .loopback:
        if let address = admin.address.socket { probe(address, "admin.listen", "admin.listen", hint: nil, &report) }
      }
    }
    if let address = settings.metrics?.socket {
      let hint = "the address must belong to this machine"
      probe(address, "metrics.listen", "metrics.listen", hint: hint, &report)
    }
    if let address = settings.tls.acme?.httpListen?.socket {
      let key = "tls.acme.http_listen"
      let hint = "the address must belong to this machine; ports below 1024 need CAP_NET_BIND_SERVICE"
      probe(address, key, key, hint: hint, &report)
    }
    return report.results
  }

  private func probe(
    _ address: SocketAddress, _ key: String, _ portKey: String, hint: String?, _ report: inout ProbeReport
  ) {
    do throws(Engine.StartError) {
      try Engine.tryListening(at: address)
      report.pass(portKey, "\(address) is available")
    } catch {
      if error.isAddressInUse {
        Self.warn(that: "\(address) is in use by another process", portKey, &report)
      } else {
        report.fail(key, "cannot listen at \(error)", hint: hint)
      }
    }
  }

  private func probeGroup(of admin: GateSettings.Admin, socket path: String, _ report: inout ProbeReport) {
    let group: AdminSocketGroup
    do throws(StartError) {
      guard let configured = try AdminSocketGroup.of(admin) else { return }
      group = configured
    } catch {
      report.fail(error)
      return
    }
    var status = stat()
    let (folder, key) = (Self.folder(of: path), "admin.group")
    let mayPass = { (bit: UInt32) in status.st_mode & bit != 0 }
    if !group.mayBeGivenFiles {
      report.warn(
        key, "this user is not a member of \(group.name)",
        hint: "expected if the gate runs as another user; otherwise run it with this group (Group= in a systemd unit)")
    } else if stat(folder, &status) == 0, !mayPass(status.st_gid == group.id ? 0o010 : 0o001) {
      report.warn(
        key, "members of \(group.name) cannot enter \(folder)",
        hint: "give the folder to the group with mode 0750 (RuntimeDirectoryMode= in a systemd unit)")
    } else {
      report.pass(key, "members of \(group.name) may use the socket")
    }
  }

  private static func folder(of path: String) -> String {
    path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
  }

  /// A bind would create the socket file, so the probe only checks the folder and the existing file.
  private func probe(_ path: String, _ key: String, hint: String, _ report: inout ProbeReport) {
    let folder = Self.folder(of: path)
    guard access(folder, W_OK | X_OK) == 0 else {
      let reason = String(cString: strerror(errno))
      report.fail(key, "cannot create a socket in \(folder): \(reason)", hint: hint)
      return
    }
    switch UnixSocketFile.state(at: path) {
    case .absent, .abandoned: report.pass(key, "unix:\(path) is available")
    case .live: Self.warn(that: "unix:\(path) is in use by another process", key, &report)
    case .occupied: report.fail(key, "\(path) exists and is not a socket", hint: hint)
    case .unknown(let reason): report.fail(key, "unix:\(path): \(reason)", hint: hint)
    }
  }

  private static func warn(that text: String, _ key: String, _ report: inout ProbeReport) {
    report.warn(
      key, text,
      hint: "expected if it is the running gate; otherwise stop that process, or change \(key)")
  }
}

extension GateSettings.Admin.Address {
  /// `nil` for an invalid address, which validated settings exclude.
  public var socket: SocketAddress? {
    switch self {
    case .unix(let path): .unix(path)
    case .loopback(let host, let port): SocketAddress(literal: host, port: port)
    }
  }
}

extension GateSettings.ListeningAddress {
  /// `nil` for an invalid address, which validated settings exclude.
  public var socket: SocketAddress? { SocketAddress(literal: address, port: port) }
}
