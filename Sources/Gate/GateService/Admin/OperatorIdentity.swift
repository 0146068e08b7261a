internal import Glibc
internal import Logging
internal import Observability
internal import Transport

/// The person who asks the admin server for a change, for the log.
enum OperatorIdentity {
  /// Returns the fields of a log line about a change that `request` asked for: its id, the user and process at the other
  /// end of the Unix socket, and the person at a console over TLS, as the client names them. Over TCP the kernel names
  /// neither user nor process.
  static func fields(of request: AdminRequest) -> Logger.Metadata {
    var fields: Logger.Metadata = ["request_id": "\(request.id)"]
    if let person = request.person { fields["person"] = "\(person)" }
    guard let process = request.process else { return fields }
    fields["uid"] = .number(process.user)
    if let name = name(of: process.user) { fields["user"] = "\(name)" }
    fields["process"] = .number(process.id)
    return fields
  }

  /// The longest line of the list of users that is read.
  private static let longestLine = 4096

  /// Returns the name of a local user, as `/etc/passwd` has it.
  ///
  /// `getpwuid` would also ask the directory services of the machine, which may not answer for a minute.
  static func name(of user: UInt32, in file: String = "/etc/passwd") -> String? {
    guard let stream = fopen(file, "re") else { return nil }
    defer { fclose(stream) }
    var buffer = [CChar](repeating: 0, count: longestLine)
    var entry = passwd()
    var found: UnsafeMutablePointer<passwd>?
    while fgetpwent_r(stream, &entry, &buffer, buffer.count, &found) == 0 {
      guard entry.pw_uid == user, let name = entry.pw_name else { continue }
      return String(validatingCString: name)
    }
    return nil
  }
}
