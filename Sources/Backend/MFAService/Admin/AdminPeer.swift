internal import ByteCoding
internal import Foundation

/// The process at the other end of the admin socket, as the kernel names it (SO_PEERCRED in unix(7)).
struct AdminPeer: Sendable, Hashable {
  let user: UInt32
  /// The user who called `sudo`, as the client says. A client of this socket can do all that it could pretend.
  let caller: UInt32?
  /// The person at a console over TLS, as the client says.
  var person: String?

  /// The name for the history. A person's name has no quotation marks, so that it cannot pretend another suffix.
  var name: String { Self.name(of: user, calledBy: caller) + (person.map { " for \"\($0)\"" } ?? "") }

  static func name(of user: UInt32, calledBy caller: UInt32?) -> String {
    let suffix = caller.flatMap { $0 == user ? nil : " by sudo of uid \($0)" } ?? ""
    return "uid \(user)\(suffix)"
  }

  /// Returns the person that a request names: `nil` if it names none, or in a form that is not valid.
  static func person(in field: String?) -> String? { field.flatMap(ConsolePersonField.decode) }
}

/// The user who runs a command, for the history.
public enum OperatorName {
  /// The field of a request to the admin socket that names the user who called `sudo`.
  public static let field = "X-Sudo-Uid"

  /// The user who called `sudo`, by the environment of a process; `nil` without `sudo`.
  public static func caller(in environment: [String: String]) -> UInt32? {
    environment["SUDO_UID"].flatMap { UInt32($0) }
  }

  /// Returns the name of `user` for the history, with the user who called `sudo`.
  public static func name(of user: UInt32, in environment: [String: String]) -> String {
    AdminPeer.name(of: user, calledBy: caller(in: environment))
  }
}

/// The fields of a query, percent-encoded.
struct AdminQuery: Sendable {
  /// The maximum bytes of a query.
  static let mostBytes = 4096

  private let values: [String: String]

  /// - Throws: `AdminQueryError` for a query that is too long, repeats a field, or is no percent-encoded UTF-8.
  init(_ text: Substring) throws(AdminQueryError) {
    guard text.utf8.count <= Self.mostBytes else { throw AdminQueryError(reason: "the query is too long") }
    var values: [String: String] = [:]
    for part in text.split(separator: "&") {
      let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = halves.first, name.utf8.count <= 32,
        let value = (halves.count == 2 ? halves[1] : "").removingPercentEncoding,
        values.updateValue(value, forKey: String(name)) == nil
      else { throw AdminQueryError(reason: "the query is malformed") }
    }
    self.values = values
  }

  /// The value of a field; `nil` if it is absent or empty.
  subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

  /// The number of entries that a page may have: 1 to 200.
  var limit: Int { self["limit"].flatMap { Int($0) }.map { max(1, min($0, 200)) } ?? 50 }
}

struct AdminQueryError: Error, Sendable {
  let reason: String
}
