internal import CSourceCommit

/// The version of the project, which all its programs share.
public enum ProjectVersion {
  /// The number of the release, after semver.org.
  public static let number = "0.1.0"

  /// The first twelve digits of the commit that was built, with `+` if files differed from it; `nil` unless a script
  /// built the program and knew it (`SALLYPORT_COMMIT`).
  public static let commit: String? = {
    let text = String(cString: sallyport_source_commit())
    return text.isEmpty ? nil : text
  }()

  /// What `--version` prints: `sallyport 0.1.0 (commit 1d20428ea6c1, OpenSSL 3.0.17)`.
  ///
  /// - Parameter cryptography: The library that does the program's cryptography, with its version if it has one of its
  ///   own.
  public static func line(of program: String, cryptography: String) -> String {
    "\(program) \(number) (commit \(commit ?? "unknown"), \(cryptography))"
  }
}
