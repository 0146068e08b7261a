internal import ByteCoding

extension BackendStatus {
  /// The status for people, in lines of `name value`.
  public var text: String {
    let heading =
      "mfa-backend \(version): \(ready ? "ready" : "not ready"), up \(Self.span(uptimeSeconds)), "
      + "listening at \(TerminalText.printable(address))"
    let lines = rows.map { name, value in
      "  " + name + String(repeating: " ", count: max(1, 15 - name.count)) + TerminalText.printable(value)
    }
    return ([heading] + lines).joined(separator: "\n")
  }

  private var rows: [(name: String, value: String)] {
    var rows = checks.map { ($0.name, $0.detail) }
    rows.append(("sockets", "\(sockets) open"))
    rows += delivery.map { queue in
      let retrying = queue.retrying == 0 ? "" : ", \(queue.retrying) to be tried again"
      let failed = queue.failed == 0 ? "" : ", \(queue.failed) not delivered"
      let fault = queue.fault.map { ", STOPPED: \($0)" } ?? ""
      return (Self.name(ofKind: queue.kind), "\(queue.provider), \(queue.queued) waiting\(retrying)\(failed)\(fault)")
    }
    rows.append(("store at", store))
    rows.append(("configuration", "\(configuration.file.map { "\($0), " } ?? "")loaded \(configuration.loadedAt)"))
    let faults = configuration.fault?.split(whereSeparator: \.isNewline) ?? []
    rows += faults.enumerated().map { ($0 == 0 ? "NOT RELOADED" : "", String($1)) }
    return rows
  }

  /// The name of a queue for people.
  public static func name(ofKind kind: String) -> String {
    switch kind {
    case "sms": "SMS"
    case "email": "e-mail"
    case "apns": "APNs push"
    default: kind.uppercased() + " push"
    }
  }

  /// A time in its two largest units.
  public static func span(_ seconds: Int64) -> String {
    switch seconds {
    case ..<60: "\(seconds)s"
    case ..<3600: "\(seconds / 60)m \(seconds % 60)s"
    case ..<86400: "\(seconds / 3600)h \(seconds % 3600 / 60)m"
    default: "\(seconds / 86400)d \(seconds % 86400 / 3600)h"
    }
  }
}
