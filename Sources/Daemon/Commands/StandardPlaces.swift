/// The standard places of installed programs, such as `/etc/sallyport` and `/run/mfa`.
///
/// `SALLYPORT_ROOT=DIR` puts all of them below `DIR`. Commands then find only the servers that have their places there,
/// and never one of the machine. The places of a user, which `HOME` and the variables of the XDG Base Directory
/// specification name, do not depend on it.
public enum StandardPlaces {
  /// The environment variable that names the folder.
  public static let variable = "SALLYPORT_ROOT"

  /// Returns `path`, which is absolute, below the folder that the variable names; `path` itself if the variable is unset
  /// or empty. Container tools pass unset variables as empty ones.
  ///
  /// A relative folder gives a relative path, so that a mistake cannot lead to the places of the machine.
  public static func path(_ path: String, in environment: [String: String]) -> String {
    var root = environment[variable] ?? ""
    while root.utf8.count > 1, root.hasSuffix("/") { root.removeLast() }
    return root == "/" ? path : root + path
  }

  /// The variables with which a command that is shown to be copied uses the same places, as `NAME=value`.
  public static func shownVariables(in environment: [String: String]) -> [String] {
    environment[variable].flatMap { $0.isEmpty ? nil : ["\(variable)=\($0)"] } ?? []
  }
}
