internal import AttestGate
internal import Glibc

/// What an operator should know about the file itself.
enum FileFindings {
  static func all(of path: String) -> [StoreFinding] {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & 0o077 != 0 else { return [] }
    return [
      StoreFinding(
        .problem, in: .settings,
        "others than its owner have access to the file, which holds the identity signing keys and the challenge keys",
        advice: "chmod 600 \(path) \(path)-wal \(path)-shm, and rotate: sallyport store rotate --now")
    ]
  }
}
