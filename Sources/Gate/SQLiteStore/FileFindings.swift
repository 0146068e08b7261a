internal import AttestGate
internal import Glibc

/// Findings about the permissions of the database file.
enum FileFindings {
  static func all(of path: String) -> [StoreFinding] {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & 0o077 != 0 else { return [] }
    let files = [path, path + "-wal", path + "-shm"].filter { access($0, F_OK) == 0 }.joined(separator: " ")
    return [
      StoreFinding(
        .problem, in: .settings,
        "users other than its owner can access the file, which holds the identity signing keys and challenge keys",
        advice: "chmod 600 \(files), then replace the keys: "
          + "sallyport store rotate --now --identity")
    ]
  }
}
