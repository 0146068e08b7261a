internal import ByteCoding
public import MFADomain

/// An entry of the history in the forms of exports.
public enum AuditLine {
  /// The entry as one JSON object.
  public static func json(_ entry: AuditEntry, hash: [UInt8]) -> String {
    "{\"sequence\":\(entry.sequence),"
      + JSONText.object([
        "at": entry.at.description, "event": entry.event, "account": entry.account ?? "", "actor": entry.actor,
        "requestId": entry.requestID, "detail": entry.detail, "previous": Hex.encode(entry.previous),
        "hash": Hex.encode(hash), "key": entry.keyNumber.map { "\($0)" } ?? "",
      ]).dropFirst()
  }
}

/// An entry of the history as a syslog message (RFC 5424).
struct SyslogMessage {
  /// The longest message, in bytes. Receivers are asked to accept 2048, and most accept more.
  static let longest = 8192
  /// The number of RFC 5612 for documentation: the project has no enterprise number of its own.
  private static let identifier = "audit@32473"

  /// The numbers of facilities by the names of syslog.conf.
  static let facilities = [
    "user": 1, "daemon": 3, "auth": 4, "authpriv": 10, "local0": 16, "local1": 17, "local2": 18, "local3": 19,
    "local4": 20, "local5": 21, "local6": 22, "local7": 23,
  ]

  let facility: Int
  let host: String
  let process: Int32

  func text(_ entry: AuditEntry, hash: [UInt8]) -> String {
    // Refusals are warnings; all else is information.
    let severity = AuditEvent(rawValue: entry.event)?.isWarning == true ? 4 : 6
    let values: [(String, String)] = [
      ("sequence", "\(entry.sequence)"), ("event", entry.event), ("account", entry.account ?? ""),
      ("actor", entry.actor), ("requestId", entry.requestID), ("hash", Hex.encode(hash)),
    ]
    let data = values.filter { !$0.1.isEmpty }.map { " \($0.0)=\"\(Self.escaped($0.1))\"" }.joined()
    let message =
      "<\(facility * 8 + severity)>1 \(entry.at) \(host) mfa-backend \(process) audit [\(Self.identifier)\(data)] "
      + entry.event + (entry.detail.isEmpty ? "" : " " + Self.line(entry.detail))
    guard message.utf8.count > Self.longest else { return message }
    // Of whole characters.
    return String(decoding: message.utf8.prefix(Self.longest - 4), as: UTF8.self).filter { $0 != "\u{FFFD}" }
  }

  /// The value of a parameter (section 6.3.3), without control characters: a receiver may write one line each.
  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in line(text).unicodeScalars {
      if scalar == "\"" || scalar == "\\" || scalar == "]" { result += "\\" }
      result.unicodeScalars.append(scalar)
    }
    return result
  }

  private static func line(_ text: String) -> String {
    String(
      String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
  }

  /// The message with its length in front (RFC 6587, section 3.4.1; RFC 5425, section 4.3).
  static func framed(_ message: String) -> String { "\(message.utf8.count) \(message)" }

  /// The name of this machine: printable ASCII, or `-` (section 6.2.4).
  static func hostName(_ name: String) -> String {
    let isName = (1...255).contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    return isName ? name : "-"
  }
}
